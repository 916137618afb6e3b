#include "served_call.h"

#include <limits.h>
#include <string.h>

#include "call/shape.h"
#include "gpu/cache/told_inputs.h"
#include "ops/blas/abi.h"
#include "ops/op.h"
#include "ops/rules/rules.h"
#include "served_devices.h"

/* ---- Arguments ---- */

static bool is_letter_of(const struct accel_arg *arg, char letter)
{
    const bool trans =
        arg->slot == ACCEL_transa || arg->slot == ACCEL_transb || arg->slot == ACCEL_trans;
    return letter && (strchr(arg->allowed, letter) || (letter == 'R' && trans));
}

/* A client's bool may be any byte. */
static bool is_true(const bool *from)
{
    unsigned char byte;
    memcpy(&byte, from, 1);
    return byte != 0;
}

/* Takes over one argument, as a caller in column-major order would pass it. */
static bool take_argument(struct accel_call *call, const struct blas_arguments *from, int i)
{
    const struct accel_arg *arg = &call->routine->arg[i];
    struct blas_arguments *const to = &call->blas;
    int64_t *integer;
    switch (arg->kind) {
    case ACCEL_ARG_FLAG:
        to->given[i] = to->flag[arg->slot] = from->flag[arg->slot];
        if (arg->slot != ACCEL_side && to->given[i] == 'R') /* row-major callers pass C */
            to->given[i] = 'C';
        return is_letter_of(arg, from->flag[arg->slot]);
    case ACCEL_ARG_SCALAR:
    case ACCEL_ARG_REAL:
        to->scalar[arg->slot] = from->scalar[arg->slot];
        return true;
    case ACCEL_ARG_SIZE:
    case ACCEL_ARG_INTEGER:
    case ACCEL_ARG_LWORK:
        integer = blas_integer_of(call, arg);
        to->given[i] = *integer = from->size[arg->slot];
        return from->size[arg->slot] <= INT_MAX && from->size[arg->slot] >= -INT_MAX;
    default: /* operands are packed; nothing else is read */
        return true;
    }
}

static void describe_operands(struct accel_call *call)
{
    for (int i = 0; i < call->routine->args; i++) {
        const struct accel_arg *arg = &call->routine->arg[i];
        if (arg->kind != ACCEL_ARG_MATRIX && arg->kind != ACCEL_ARG_VECTOR)
            continue;
        struct accel_span *x = &call->span[arg->slot];
        x->name = arg->name;
        x->ld = 1;
        x->inc = arg->kind == ACCEL_ARG_VECTOR;
    }
    shape_operands(call);
    for (int i = 0; i < ACCEL_SPANS; i++)
        if (call->span[i].inc == 0 && call->span[i].name)
            call->span[i].ld = accel_max(call->span[i].rows, 1);
    for (int i = 0; i < call->routine->args; i++) {
        const struct accel_arg *arg = &call->routine->arg[i];
        if (arg->kind == ACCEL_ARG_LD || arg->kind == ACCEL_ARG_INC)
            call->blas.given[i] = *blas_integer_of(call, arg);
    }
}

/* ---- Operands ---- */

static bool takes_part(const struct accel_call *call, const struct accel_span *x)
{
    return (x->access & ACCEL_WRITE) || accel_is_read(call, x);
}

bool served_call_asks(const struct wire_request *request)
{
    bool asks = false;
    for (int i = 0; i < ACCEL_SPANS; i++)
        asks = asks || request->operand[i].asked;
    return asks;
}

/* One that the client packs and unpacks under way. `as`: the operand that is the same matrix. */
static bool ask_operand(struct accel_call *call, int i, uint32_t as, uint64_t user)
{
    struct accel_span *const x = &call->span[i];
    const struct accel_span *y = as <= (uint32_t)i ? &call->span[as] : x;
    int64_t elements;
    if (!wire_may_ask(call, x) || !served_copies_address(0, user) || as > (uint32_t)i || x->inc ||
        !x->name || x->rows < 1 || x->cols < 1 || y->rows != x->rows || y->cols != x->cols ||
        !accel_mul(x->rows, x->cols, &elements) || elements > SERVED_COPIES_MOST / gpu_size_of(x))
        return false;
    x->ptr = served_copies_address((int)as, user);
    return true;
}

static bool place_operand(struct accel_call *call, int i, const struct wire_operand *from,
                          char *area, int64_t area_bytes)
{
    struct accel_span *const x = &call->span[i];
    const bool one = from->count == 1 && (call->batch == 1 || !(x->access & ACCEL_WRITE));
    int64_t elements;
    if (x->rows < 0 || x->cols < 0 || !accel_mul(x->rows, x->cols, &elements) ||
        !(one || from->count == call->batch) || !accel_mul(elements, from->count, &elements) ||
        elements > area_bytes / gpu_size_of(x))
        return false;
    if (from->at < 0)
        return elements == 0 || !takes_part(call, x);
    x->ptr = area + from->at;
    x->stride = call->batch > 1 && !one ? x->rows * x->cols : 0;
    return from->at % WIRE_ALIGN == 0 && from->at <= area_bytes - elements * gpu_size_of(x);
}

static bool is_for_clients(const struct accel_routine *routine)
{
    const struct accel_op *op = accel_op_of(routine);
    return !op->foreign && op->gpu && (op->gpu->run || op->gpu->steps);
}

bool served_call_read(struct accel_call *call, const struct wire_request *request, uint64_t user,
                      char *area, int64_t area_bytes)
{
    const struct blas_arguments *arguments = &request->arguments;
    if (request->routine >= accel_routine_count ||
        !is_for_clients(&accel_routines[request->routine]))
        return false;
    *call = accel_call_of(&accel_routines[request->routine]);
    if (request->batch < 1 || request->batch > INT_MAX ||
        (request->batch > 1 && call->op->traits.group != ACCEL_BATCH))
        return false;
    call->batch = request->batch;
    call->blas.layout = ACCEL_COLUMN_MAJOR;
    call->blas.width = arguments->width == 64 ? 64 : 32;
    call->blas.conjugated = is_true(&arguments->conjugated);
    call->blas.has_work = true;
    for (int i = 0; i < call->routine->args; i++)
        if (!take_argument(call, arguments, i))
            return false;
    describe_operands(call);
    for (int i = 0; i < ACCEL_SPANS; i++) {
        const struct wire_operand *from = &request->operand[i];
        if (from->asked ? !ask_operand(call, i, from->asked - 1, user)
                        : !place_operand(call, i, from, area, area_bytes))
            return false;
    }
    /* The pivots of ?laswp say which rows it has, and the client can change them. */
    const enum accel_dtype x = call->span[ACCEL_x].dtype;
    if (call->op->traits.moves && call->span[ACCEL_x].ptr && (x == ACCEL_INT32 || x == ACCEL_INT64))
        return false;
    return !accel_call_fault(call) && !accel_call_empty(call) && accel_call_is_supported(call);
}

/* ---- Inputs that the device may have ---- */

/* What the client says of those that it packs under way. It may lie: a key finds nothing of other
 * users, and nothing that is smaller than the operand. */
static bool is_within(int64_t first, int64_t count, int64_t all)
{
    return first >= 0 && first <= all && count <= all - first;
}

static bool tells_part(const struct wire_input *from, const struct accel_span *x)
{
    int64_t elements;
    return (from->state & WIRE_PART) && is_within(from->row, x->rows, from->larger_rows) &&
           is_within(from->col, x->cols, from->larger_cols) &&
           accel_mul(from->larger_rows, from->larger_cols, &elements) &&
           elements <= SERVED_COPIES_MOST / gpu_size_of(x);
}

static void read_told(struct told_inputs *told, const struct accel_call *call,
                      const struct wire_request *request)
{
    *told = (struct told_inputs){.input = {{.known = false}}};
    for (int i = 0; i < ACCEL_SPANS; i++) {
        const struct accel_span *x = &call->span[i];
        const struct wire_input *from = &request->input[i];
        if (request->operand[i].asked != (uint32_t)i + 1 || x->access == ACCEL_WRITE)
            continue;
        told->input[i] =
            (struct told_input){.x = *x,
                                .looks = from->state & (WIRE_LOOK | WIRE_KNOWN),
                                .brings = from->state & WIRE_BRING,
                                .seen = from->state & (WIRE_SEEN | WIRE_KNOWN),
                                .known = (from->state & WIRE_KNOWN) && x->access == ACCEL_READ &&
                                         (!(from->state & WIRE_PART) || tells_part(from, x)),
                                .is_part = tells_part(from, x),
                                .larger_rows = from->larger_rows,
                                .larger_cols = from->larger_cols,
                                .row = from->row,
                                .col = from->col,
                                .triangle = from->triangle,
                                .key = from->key,
                                .scanned = from->scanned != 0,
                                .scan = {.finite = from->finite != 0, .largest = from->largest}};
    }
}

static void write_told(struct wire_reply *reply, const struct told_inputs *told)
{
    for (int i = 0; i < ACCEL_SPANS; i++) {
        const struct told_input *from = &told->input[i];
        if (from->kept == TOLD_NOT_KEPT)
            continue;
        reply->input[i] =
            (struct wire_input){.state = from->kept == TOLD_FOUND ? WIRE_FOUND : WIRE_BROUGHT,
                                .triangle = from->triangle,
                                .key = from->key,
                                .scanned = from->scanned,
                                .finite = from->scan.finite,
                                .largest = from->scan.largest};
    }
}

void served_call_list_kept(struct wire_kept *kept, struct gpu_device *device, uint64_t user)
{
    uint64_t word[WIRE_KEPT_MOST];
    const int count = gpu_list_cached(device, user, word, WIRE_KEPT_MOST);
    for (int i = 0; i < count; i++)
        if (atomic_load_explicit(&kept->word[i], memory_order_relaxed) != word[i])
            atomic_store_explicit(&kept->word[i], word[i], memory_order_relaxed);
    if (atomic_load_explicit(&kept->count, memory_order_relaxed) != (uint32_t)count)
        atomic_store(&kept->count, (uint32_t)count);
}

/* ---- The run ---- */

static int64_t area_bytes_of(const struct accel_call *call, const struct wire_request *request)
{
    int64_t bytes = 0;
    for (int i = 0; i < ACCEL_SPANS; i++)
        bytes += request->operand[i].asked
                     ? 0
                     : wire_bytes(&call->span[i]) * wire_matrices(call, &call->span[i]);
    return bytes;
}

/* On the device, operands have other addresses, by which it finds what is told of them. */
static void move_told(struct told_inputs *told, const struct accel_call *there)
{
    for (int i = 0; told && i < ACCEL_SPANS; i++)
        if (told->input[i].x.ptr)
            told->input[i].x.ptr = there->span[i].ptr;
}

static enum gpu_status run_in_turn(struct served_run *run, const struct accel_call *call,
                                   struct gpu_host *host)
{
    struct fair_call place;
    if (!device_places_take(run->lane, wire_is_large(call), run->most_ms, &place, &run->waited_ms))
        return GPU_BUSY;
    struct gpu_device *const device = served_devices_at(place.device);
    atomic_store(run->doing, WIRE_RUNS);
    struct accel_call there = *call;
    served_copies_go_to(run->copies, device, place.device, &there);
    move_told(host->told, &there);
    const enum gpu_status status = gpu_run(device, &there, host);
    if (gpu_has_failure(device))
        served_devices_leave_out(place.device);
    device_places_give(run->lane, &place, !host->set_up, status == GPU_OK ? host->alone_ms : 0);
    host->index = gpu_info(device)->index;
    return status;
}

void served_call_run(struct wire_reply *reply, struct served_run *run,
                     const struct accel_call *call, const struct wire_request *request)
{
    const bool asks = served_call_asks(request);
    struct told_inputs told;
    /* The client alone can run the original: it does, on operands that are as they were. */
    struct gpu_host host = {.packer = asks ? &run->copies->packer : NULL,
                            .user = *run->user,
                            .told = asks ? &told : NULL,
                            .caches = request->cache & WIRE_CACHES,
                            .digests = request->cache & WIRE_DIGESTS,
                            .weighs = request->cache & WIRE_WEIGHS,
                            .alone_ms = request->alone_ms,
                            .relies = request->cache & WIRE_RELIES,
                            .prefetches = request->prefetches & ((1u << ACCEL_SPANS) - 1),
                            .precision = request->precision < GPU_PRECISIONS
                                             ? (enum gpu_precision)request->precision
                                             : GPU_NATIVE};
    memset(reply, 0, sizeof *reply);
    read_told(&told, call, request);
    if (asks)
        served_copies_begin(run->copies, call, run->user->id);
    served_copies_note(run->copies, area_bytes_of(call, request));
    /* A client looks at its matrices by itself. */
    const bool hopeless = !asks && call->op->gpu->is_hopeless && call->op->gpu->is_hopeless(call);
    reply->status = hopeless ? GPU_UNSUPPORTED : run_in_turn(run, call, &host);
    if (asks && run->copies->packer.gone)
        reply->status = GPU_BUSY;
    if (reply->status == GPU_OK)
        write_told(reply, &told);
    reply->precision = host.precision;
    reply->blame = host.blame;
    reply->index = host.index;
    reply->up_bytes = host.up_bytes;
    reply->down_bytes = host.down_bytes;
    reply->cached_bytes = host.cached_bytes;
    reply->set_up = host.set_up;
    memcpy(reply->failure, host.failure, sizeof reply->failure);
}
