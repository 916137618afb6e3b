#include "client_call.h"

#include <string.h>

#include "base/thread/clock.h"
#include "call/shape.h"
#include "client_inputs.h"
#include "gpu/pack/matrix.h"

/* ---- Operands in the area ---- */

static bool goes_in(const struct accel_call *call, const struct accel_span *x)
{
    const bool writes = x->access & ACCEL_WRITE;
    /* LAPACK may leave a part of what it writes as it is. */
    return accel_is_read(call, x) || (writes && call->op->traits.group == ACCEL_LAPACK);
}

struct host_rectangle client_call_rectangle(const struct accel_span *x, int64_t k)
{
    if (x->inc == 0)
        return host_whole(accel_matrix_of(x, k), x->rows, x->cols, x->ld, gpu_size_of(x));
    char *first = (char *)x->ptr + (x->inc < 0 ? (1 - x->cols) * x->inc * gpu_size_of(x) : 0);
    return host_whole(first, 1, x->cols, x->inc, gpu_size_of(x));
}

static bool is_same_input(const struct accel_span *x, const struct accel_span *y)
{
    return y->ptr == x->ptr && y->rows == x->rows && y->cols == x->cols && y->ld == x->ld &&
           y->inc == x->inc && x->access == ACCEL_READ && y->access == ACCEL_READ;
}

/* Returns the first operand that is the same matrix as number i: perhaps itself. */
static uint32_t same_as(const struct accel_call *call, int i)
{
    int first = 0;
    while (first < i && !is_same_input(&call->span[i], &call->span[first]))
        first++;
    return (uint32_t)first;
}

/* Chooses the operands' places in an area. Returns whether they fit. */
static bool place_operands(const struct accel_call *call, int64_t area_bytes, int64_t chunked_from,
                           struct wire_operand operand[ACCEL_SPANS])
{
    const unsigned asked = client_copies_of(call, chunked_from);
    int64_t at = 0;
    for (int i = 0; i < ACCEL_SPANS; i++) {
        const struct accel_span *x = &call->span[i];
        const int64_t each = x->ptr ? wire_bytes(x) : 0;
        int64_t bytes;
        operand[i] = (struct wire_operand){.at = -1, .count = wire_matrices(call, x)};
        if (asked & 1u << i) {
            operand[i].asked = same_as(call, i) + 1;
            continue;
        }
        if (!accel_mul(each, wire_matrices(call, x), &bytes) || bytes > area_bytes - at)
            return false;
        operand[i].at = bytes > 0 ? at : -1;
        at += (bytes + WIRE_ALIGN - 1) / WIRE_ALIGN * WIRE_ALIGN;
    }
    return true;
}

static void send_operands(const struct lane *lane, const struct accel_call *call)
{
    const struct wire_request *request = &lane->shared->request;
    for (int i = 0; i < ACCEL_SPANS; i++) {
        const struct accel_span *x = &call->span[i];
        if (request->operand[i].at < 0 || !goes_in(call, x))
            continue;
        for (int64_t k = 0; k < wire_matrices(call, x); k++) {
            const struct host_rectangle from = client_call_rectangle(x, k);
            pack_matrix_pack(lane->area + request->operand[i].at + k * wire_bytes(x), &from,
                             from.rows);
        }
    }
}

static void fetch_results(const struct lane *lane, const struct accel_call *call,
                          const int64_t at[ACCEL_SPANS])
{
    for (int i = 0; i < ACCEL_SPANS; i++) {
        const struct accel_span *x = &call->span[i];
        if (at[i] < 0 || !(x->access & ACCEL_WRITE))
            continue;
        for (int64_t k = 0; k < wire_matrices(call, x); k++) {
            struct host_rectangle to = client_call_rectangle(x, k);
            to.uplo = x->triangle;
            pack_matrix_unpack(&to, lane->area + at[i] + k * wire_bytes(x), to.rows);
        }
    }
}

bool client_call_fits(const struct accel_call *call, int64_t area_bytes, int64_t chunked_from)
{
    struct wire_operand operand[ACCEL_SPANS];
    return place_operands(call, area_bytes, chunked_from, operand);
}

/* ---- The call ---- */

/* How long a server that computes may give no sign of life: it gives some each second. */
#define SILENCE_MS 10000

/* Takes the area into use: its memory does not go away under way. Returns false if the server has
 * ended as it was about to give that back. */
static bool use_area(struct lane *lane)
{
    const double begun_ms = accel_now_ms();
    atomic_store(&lane->shared->uses, 1);
    while (atomic_load(&lane->shared->frees))
        if (accel_now_ms() - begun_ms > SILENCE_MS || lane_is_closed(lane))
            return false;
    return true;
}

/* How often it is looked for; and how long its next task may take to come. */
#define LOOK_MS   100
#define MOMENT_MS 1

/* Waits for the end of the call, or does a part of its copies. Returns false if the server asks for
 * what no server asks for. */
static bool wait_or_copy(struct lane *lane, struct client_copies *copies)
{
    struct wire_copies *const shared = &lane->shared->copies;
    const uint32_t news = atomic_load(&shared->news.count);
    bool idle;
    if (!copies) {
        turns_await(&lane->shared->turns, TURN_CLIENT, LOOK_MS);
        return true;
    }
    if (!client_copies_attend(copies, &idle))
        return false;
    if (!idle || turns_whose(&lane->shared->turns) != TURN_SERVER)
        return true;
    progress_await(&shared->news, news, MOMENT_MS);
    if (atomic_load(&shared->news.count) == news) {
        client_copies_pause(copies);
        progress_await(&shared->news, news, LOOK_MS);
    }
    return true;
}

bool lane_call(struct lane *lane, struct wire_reply *reply, struct client_copies *copies)
{
    struct turns *const turns = &lane->shared->turns;
    uint32_t beats = atomic_load(&lane->shared->beats);
    double heard_ms = accel_now_ms(), look_ms = heard_ms + LOOK_MS;
    turns_pass(turns, TURN_SERVER);
    for (;;) {
        if (!wait_or_copy(lane, copies))
            return false;
        const enum turn now = turns_whose(turns);
        if (now == TURN_CLIENT)
            break;
        if (now == TURN_OVER)
            return false;
        if (accel_now_ms() < look_ms)
            continue;
        const uint32_t beat = atomic_load(&lane->shared->beats);
        look_ms = accel_now_ms() + LOOK_MS;
        if (beat != beats) {
            beats = beat;
            heard_ms = accel_now_ms();
        }
        lane->is_silent = accel_now_ms() - heard_ms > SILENCE_MS;
        if (lane_is_closed(lane) || lane->is_silent)
            return false;
    }
    *reply = lane->shared->reply;
    reply->failure[sizeof reply->failure - 1] = '\0';
    return true;
}

/* The operands have their places. Returns whether the server has done what it could. */
static bool do_call(struct lane *lane, const struct accel_call *call, struct client_copies *copies,
                    struct wire_reply *reply)
{
    if (!use_area(lane))
        return false;
    send_operands(lane, call);
    return lane_call(lane, reply, copies);
}

/* Writes a request. Returns false if the operands have no room in the lane's area. */
static bool write_request(const struct lane *lane, const struct accel_call *call,
                          const struct gpu_host *host)
{
    struct wire_request *const request = &lane->shared->request;
    request->routine = (uint32_t)(call->routine - accel_routines);
    request->precision = host->precision;
    request->cache = (host->caches ? WIRE_CACHES : 0) |
                     (host->caches && host->digests ? WIRE_DIGESTS : 0) |
                     (host->weighs ? WIRE_WEIGHS : 0) | (host->relies ? WIRE_RELIES : 0);
    request->alone_ms = host->alone_ms;
    request->batch = call->batch;
    request->arguments = call->blas;
    return place_operands(call, lane->area_bytes, lane->chunked_from, request->operand);
}

/* Takes over what a reply says of the call. Returns its status. */
static enum gpu_status take_reply(const struct wire_reply *reply, struct gpu_host *host)
{
    const enum gpu_status status =
        reply->status <= GPU_ERROR ? (enum gpu_status)reply->status : GPU_ERROR;
    host->up_bytes = reply->up_bytes;
    host->down_bytes = reply->down_bytes;
    host->cached_bytes = reply->cached_bytes;
    host->set_up = reply->set_up;
    host->index = reply->index;
    host->precision =
        reply->precision < GPU_PRECISIONS ? (enum gpu_precision)reply->precision : GPU_NATIVE;
    if (status == GPU_ERROR) {
        host->blame = reply->blame == GPU_BLAME_LAPACK    ? GPU_BLAME_LAPACK
                      : reply->blame == GPU_BLAME_ROUTINE ? GPU_BLAME_ROUTINE
                                                          : GPU_BLAME_SERVER;
        memcpy(host->failure, reply->failure, sizeof host->failure);
    }
    return status;
}

/* Ends the copies of a call. Returns its status then: the original has done the rest, if results
 * had been written in part. */
static enum gpu_status end_copies(struct client_copies *copies, const struct gpu_host *host,
                                  enum gpu_status status)
{
    if (copies && client_copies_end(copies, status == GPU_OK))
        status = !client_copies_recover(copies, host) ? GPU_LOST
                 : status == GPU_ERROR                ? GPU_FINISHED_ELSE
                                                      : GPU_SHORT_ELSE;
    client_copies_free(copies);
    return status;
}

bool client_call_run(struct lane *lane, struct gpu_device *device, const struct accel_call *call,
                     struct gpu_host *host, enum gpu_status *status)
{
    struct wire_reply reply;
    struct client_inputs inputs;
    int64_t at[ACCEL_SPANS];
    *status = GPU_NO_MEMORY;
    if (!write_request(lane, call, host))
        return true;
    for (int i = 0; i < ACCEL_SPANS; i++)
        at[i] = lane->shared->request.operand[i].at;
    const bool asked = client_copies_of(call, lane->chunked_from) != 0;
    struct client_copies *copies = asked ? client_copies_begin(lane, call) : NULL;
    if (asked && !copies)
        return true;
    if (copies)
        copies->inputs = &inputs;
    *status = client_inputs_begin(&inputs, device, call, host, &lane->shared->request);
    const bool goes = *status == GPU_OK;
    const bool answers = goes && do_call(lane, call, copies, &reply);
    if (goes)
        *status = answers ? take_reply(&reply, host) : GPU_ERROR;
    client_inputs_end(&inputs, answers && *status == GPU_OK ? &reply : NULL);
    *status = end_copies(copies, host, *status);
    if (!answers)
        return !goes;
    if (*status == GPU_OK)
        fetch_results(lane, call, at);
    atomic_store(&lane->shared->uses, 0);
    return true;
}
