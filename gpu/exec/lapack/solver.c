#include "solver_parts.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory/host_memory.h"
#include "call/matrix.h"
#include "gpu/pack/packer.h"

bool solver_note(struct solver *s, enum gpu_status status)
{
    if (s->status == GPU_OK)
        s->status = status;
    return s->status == GPU_OK;
}

/* ---- Memory ---- */

static gpu_address alloc_bytes(struct solver *s, int64_t bytes)
{
    gpu_address memory = 0;
    if (solver_is_well(s) && bytes > 0)
        solver_note(s, gpu_memory(s->work)->take(s->work, bytes, &memory));
    return memory;
}

struct array solver_array_of(struct solver *s, int64_t rows, int64_t cols, enum accel_dtype dtype)
{
    struct array x = {{0, rows > 0 ? gpu_device_ld(rows, dtype) : 1}, rows, cols, dtype};
    int64_t elements, bytes;
    if (!accel_mul(x.at.ld, cols, &elements) || !accel_mul(elements, solver_element(x), &bytes))
        solver_note(s, GPU_NO_MEMORY);
    else
        x.at.ptr = alloc_bytes(s, bytes);
    return x;
}

struct array solver_array(struct solver *s, int64_t rows, int64_t cols)
{
    return solver_array_of(s, rows, cols, s->dtype);
}

struct array solver_vector(struct solver *s, int64_t n, enum accel_dtype dtype)
{
    return solver_array_of(s, n, 1, dtype);
}

struct array solver_reals(struct solver *s, int64_t n)
{
    return solver_vector(s, n, s->real);
}

struct array solver_zeros(struct solver *s, int64_t rows, int64_t cols)
{
    struct array x = solver_array(s, rows, cols);
    if (solver_is_well(s) && x.at.ptr)
        solver_note(
            s, gpu_memory(s->work)->zero(s->work, x.at.ptr, x.at.ld * cols * solver_element(x)));
    return x;
}

struct array solver_part(struct array x, int64_t row, int64_t col, int64_t rows, int64_t cols)
{
    return (struct array){dmat_part(x.at, row, col, solver_element(x)), rows, cols, x.dtype};
}

struct array solver_work(struct solver *s, size_t bytes)
{
    struct array x = {{0, (int64_t)bytes}, (int64_t)bytes, 1, s->dtype};
    if (bytes > (size_t)INT64_MAX)
        solver_note(s, GPU_NO_MEMORY);
    else
        x.at.ptr = alloc_bytes(s, (int64_t)bytes);
    return x;
}

void *solver_host_work(struct solver *s, size_t bytes)
{
    if (!solver_is_well(s) || bytes == 0)
        return NULL;
    if (s->host && (solver_note(s, gpu_work_settle(s->work)))) {
        free(s->host); /* the workspace of the step before */
        s->host = NULL;
    }
    if (!s->host)
        s->host = malloc(bytes);
    if (!s->host)
        solver_note(s, GPU_NO_MEMORY);
    return s->host;
}

/* Returns whether the reserve has so much. Addresses are those of whole lines. */
static bool take_reserved(struct solver *s, size_t device_bytes, size_t host_bytes,
                          struct array *device, void **host)
{
    struct solver_reserve *r = s->reserve;
    host_bytes = (host_bytes + 63) / 64 * 64;
    if (r->measuring) {
        r->device_bytes = device_bytes > r->device_bytes ? device_bytes : r->device_bytes;
        r->host_bytes += host_bytes;
        return false;
    }
    if (device_bytes > r->device_bytes || host_bytes > r->host_bytes - r->host_used)
        return solver_note(s, GPU_NO_MEMORY);
    device->at.ptr = r->device;
    *host = host_bytes > 0 ? r->host + r->host_used : NULL;
    r->host_used += host_bytes;
    return true;
}

bool solver_take_work(struct solver *s, size_t device_bytes, size_t host_bytes,
                      struct array *device, void **host)
{
    *device = (struct array){.dtype = s->dtype};
    *host = NULL;
    if (s->reserve)
        return solver_is_well(s) && take_reserved(s, device_bytes, host_bytes, device, host);
    *device = solver_work(s, device_bytes);
    *host = solver_host_work(s, host_bytes);
    return solver_is_well(s);
}

/* ---- Begin ---- */

static void begin_solver(struct solver *s, struct gpu_work *work)
{
    enum accel_dtype dtype = work->call->routine->dtype;
    *s = (struct solver){
        .work = work, .call = work->call, .dtype = dtype, .real = accel_real_dtype(dtype)};
    if (solver_note(s, gpu_copies(work)->use_solver(work->ctx)))
        s->info = alloc_bytes(s, sizeof(struct solver_outcome));
}

/* ---- Down ---- */

void solver_get_rectangle(struct solver *s, const struct host_rectangle *to, struct array from)
{
    int64_t done_cols, done_rows;
    GPU_DO(s, gpu_copies(s->work)->download(s->work->ctx, to, from.at, &done_cols, &done_rows));
}

void solver_get(struct solver *s, void *to, struct array from)
{
    const struct host_rectangle there =
        host_whole(to, from.rows, from.cols, from.rows, solver_element(from));
    solver_get_rectangle(s, &there, from);
}

bool solver_has_succeeded(struct solver *s)
{
    int32_t info = 0;
    solver_get(s, &info, (struct array){{s->info, 1}, 1, 1, ACCEL_INT32});
    return solver_is_well(s) && info == 0;
}

void solver_require_success(struct solver *s)
{
    if (!s->reserve && !solver_has_succeeded(s))
        solver_note(s, GPU_UNSUPPORTED);
}

/* ---- Outcomes ---- */

enum { OUTCOME_INTS = sizeof(struct solver_outcome) / sizeof(int32_t) };

struct array solver_outcomes(struct solver *s, int64_t count)
{
    return solver_vector(s, count * OUTCOME_INTS, ACCEL_INT32);
}

struct array solver_outcome_at(struct array outcomes, int64_t number)
{
    return solver_part(outcomes, number * OUTCOME_INTS, 0, OUTCOME_INTS, 1);
}

void solver_keep_pivot(struct solver *s, struct array factor)
{
    const gpu_address last = solver_part(factor, factor.rows - 1, factor.cols - 1, 1, 1).at.ptr;
    if (solver_is_well(s) && !(s->reserve && s->reserve->measuring))
        solver_note(s, gpu_copies(s->work)->copy(
                           s->work->ctx,
                           (struct dmat){s->info + offsetof(struct solver_outcome, pivot), 1},
                           (struct dmat){last, 1}, 1, 1, (int64_t)accel_dtype_size(s->real)));
}

bool solver_is_definite(const struct solver *s, const struct solver_outcome *outcome)
{
    const double pivot =
        accel_is_double(s->dtype) ? outcome->pivot.full : (double)outcome->pivot.single;
    return outcome->info == 0 && pivot > 0;
}

void solver_require_definite(struct solver *s)
{
    struct solver_outcome outcome = {0};
    if (s->reserve)
        return;
    solver_get(s, &outcome, (struct array){{s->info, OUTCOME_INTS}, OUTCOME_INTS, 1, ACCEL_INT32});
    if (solver_is_well(s) && !solver_is_definite(s, &outcome))
        solver_note(s, GPU_UNSUPPORTED);
}

void solver_require_finite(struct solver *s, struct array values)
{
    struct gpu_scan scan = gpu_scan_begin(accel_is_double(s->dtype));
    const int64_t bytes = values.rows * solver_element(values);
    if (!solver_is_well(s) || bytes <= 0)
        return;
    void *there = malloc((size_t)bytes);
    if (!there) {
        solver_note(s, GPU_NO_MEMORY);
        return;
    }
    solver_get(s, there, values);
    if (solver_is_well(s))
        gpu_scan_numbers(&scan, there, bytes);
    if (!scan.finite)
        solver_note(s, GPU_UNSUPPORTED);
    free(there);
}

/* ---- Pivots ---- */

/* Returns the largest of the magnitudes of an element's parts; of a NaN, infinity. */
static double magnitude_of(const char *at, enum accel_dtype dtype)
{
    double largest = 0;
    for (int i = 0; i < parts_of(dtype); i++) {
        const double part = load_real(at, dtype, i), size = part < 0 ? -part : part;
        if (!(size <= largest))
            largest = size <= DBL_MAX ? size : INFINITY;
    }
    return largest;
}

void solver_refuse_small_pivots_of(struct solver *s, const void *lu, int64_t ld, int64_t pivots)
{
    const int64_t step = (ld + 1) * (int64_t)accel_dtype_size(s->dtype);
    const double least = accel_is_double(s->dtype) ? DBL_MIN : (double)FLT_MIN;
    for (int64_t i = 0; solver_is_well(s) && i < pivots; i++) {
        const double size = magnitude_of((const char *)lu + i * step, s->dtype);
        if (!(size >= least && size <= DBL_MAX))
            solver_note(s, GPU_UNSUPPORTED);
    }
}

void solver_refuse_small_pivots(struct solver *s, struct array lu)
{
    const int64_t pivots = accel_min(lu.rows, lu.cols);
    if (!solver_is_well(s) || pivots <= 0)
        return;
    const int64_t size = (int64_t)accel_dtype_size(s->dtype);
    const struct array there = solver_vector(s, pivots, s->dtype);
    void *diagonal = malloc((size_t)(pivots * size));
    if (!diagonal) {
        solver_note(s, GPU_NO_MEMORY);
        return;
    }
    GPU_DO(s, gpu_copies(s->work)->copy(s->work->ctx, (struct dmat){there.at.ptr, 1},
                                        solver_diagonal(lu), 1, pivots, size));
    solver_get(s, diagonal, there);
    solver_refuse_small_pivots_of(s, diagonal, 0, pivots);
    free(diagonal);
}

/* ---- The whole ---- */

static void end_solver(struct solver *s)
{
    GPU_DO(s, gpu_work_settle(s->work));
    solver_deliver(s);
    /* A kernel that still runs may use the host's workspace: then it is left alone. */
    if (s->host && gpu_copies(s->work)->wait(s->work->ctx) == GPU_OK)
        free(s->host);
}

static double operand_bytes(const struct gpu_work *work)
{
    double bytes = 0;
    for (int i = 0; i < ACCEL_SPANS; i++) {
        const struct accel_span *x = &work->call->span[i];
        bytes += (double)x->rows * (double)x->cols * (double)gpu_size_of(x);
    }
    return bytes;
}

/* With workspaces, a call may need more memory than there is though its operands do not. Panels
 * need less, unless the operands are a small part of it. */
#define SMALL_PART 0.25

static bool would_fit_in_panels(const struct gpu_work *work)
{
    return operand_bytes(work) > SMALL_PART * (double)gpu_memory(work)->available(work);
}

/* ---- In panels ---- */

/* Steps in panels read and write host memory: of matrices that another process has (packer.h), they
 * have copies. */
struct own_copies {
    struct accel_call call;
    const struct accel_call *of; /* NULL: there are none */
};

static void take_copy(struct solver *s, const struct accel_span *x, struct accel_span *own)
{
    const struct host_rectangle there = solver_rectangle(x);
    own->ptr = host_memory_take(there.rows * there.cols * there.size);
    own->ld = there.rows;
    if (!own->ptr)
        solver_note(s, GPU_NO_MEMORY);
    else if (!packer_read(s->work->host->packer, &there, own->ptr))
        solver_note(s, GPU_UNSUPPORTED);
}

static void begin_copies(struct solver *s, struct own_copies *own)
{
    struct packer *packer = s->work->host->packer;
    own->of = packer ? s->call : NULL;
    if (!packer)
        return;
    own->call = *s->call;
    for (int i = 0; i < ACCEL_SPANS; i++) {
        if (!packer_of(packer, own->of->span[i].ptr))
            continue;
        own->call.span[i].ptr = NULL;
        if (solver_is_well(s))
            take_copy(s, &own->of->span[i], &own->call.span[i]);
    }
    s->call = s->work->call = &own->call;
}

/* The results are in the copies. */
static void end_copies(struct solver *s, struct own_copies *own)
{
    struct packer *packer = s->work->host->packer;
    for (int i = 0; own->of && i < ACCEL_SPANS; i++) {
        const struct accel_span *x = &own->of->span[i];
        if (!packer_of(packer, x->ptr))
            continue;
        const struct host_rectangle there = solver_rectangle(x);
        if ((x->access & ACCEL_WRITE) && solver_is_well(s) &&
            !packer_write(packer, &there, own->call.span[i].ptr))
            solver_note(s, GPU_UNSUPPORTED);
        free(own->call.span[i].ptr);
    }
    if (own->of)
        s->call = s->work->call = own->of;
}

/* Nothing has been written yet. */
static void run_in_panels(struct solver *s, void (*steps)(struct solver *s), struct own_copies *own)
{
    solver_drop_results(s);
    s->largest = 0;
    s->status = GPU_OK;
    begin_copies(s, own);
    if (solver_is_well(s))
        steps(s);
}

enum gpu_status solver_run(struct gpu_work *work, void (*steps)(struct solver *s),
                           void (*in_panels)(struct solver *s))
{
    struct solver s;
    struct own_copies own;
    own.of = NULL;
    begin_solver(&s, work);
    if (!accel_is_on_host(work->call) || !solver_is_well(&s))
        in_panels = NULL;
    if (in_panels && operand_bytes(work) > (double)gpu_info(work->device)->memory_bytes) {
        run_in_panels(&s, in_panels, &own);
    } else {
        steps(&s);
        if (in_panels && s.status == GPU_NO_MEMORY && would_fit_in_panels(work))
            run_in_panels(&s, in_panels, &own);
    }
    end_solver(&s);
    end_copies(&s, &own);
    return s.status;
}
