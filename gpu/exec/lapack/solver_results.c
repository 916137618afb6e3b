#include "base/memory/block_cache.h"
#include "solver_parts.h"

#include <stdlib.h>
#include <string.h>

#include "gpu/pack/chunks.h"
#include "gpu/pack/matrix.h"
#include "gpu/pack/packer.h"

/* Returns whether the result has been added; then its `staged` is freed with the solver. */
static bool add_result(struct solver *s, struct result result)
{
    if (result.from.rows == 0 || result.from.cols == 0 || !solver_is_well(s))
        return false;
    if (s->results == RESULTS_MAX)
        return solver_note(s, GPU_UNSUPPORTED);
    s->result[s->results++] = result;
    return true;
}

void solver_return(struct solver *s, const struct accel_span *to, struct array from, char uplo)
{
    add_result(s, (struct result){.to = to, .from = from, .uplo = uplo});
}

void solver_return_pivots(struct solver *s, const struct accel_span *to, struct array from)
{
    add_result(s, (struct result){.to = to, .from = from, .integers = true});
}

void solver_return_integers(struct solver *s, const struct accel_span *to, int64_t count,
                            int64_t even, int64_t odd)
{
    const struct array none = {.rows = count, .cols = 1, .dtype = ACCEL_INT64};
    int64_t *values = malloc((size_t)count * sizeof *values + 1);
    if (!values) {
        solver_note(s, GPU_NO_MEMORY);
        return;
    }
    for (int64_t i = 0; i < count; i++)
        values[i] = i % 2 ? odd : even;
    if (!add_result(s, (struct result){to, none, .integers = true, .staged = values}))
        free(values);
}

void solver_packed_free(void *packed)
{
    if (!block_cache_give_back(packed))
        free(packed);
}

void solver_return_packed(struct solver *s, const struct accel_span *to, int64_t rows, int64_t cols,
                          void *packed, char uplo)
{
    const bool integers = to->dtype == ACCEL_INT32 || to->dtype == ACCEL_INT64;
    const struct array none = {
        .rows = rows, .cols = cols, .dtype = integers ? ACCEL_INT64 : to->dtype};
    if (!packed ||
        !add_result(s, (struct result){to, none, uplo, .integers = integers, .staged = packed}))
        solver_packed_free(packed);
}

/* Returns a result's place in host memory. */
static struct host_rectangle rectangle_of_result(const struct result *r)
{
    struct host_rectangle to = solver_rectangle(r->to);
    to.rows = r->from.rows;
    to.cols = r->from.cols;
    to.name = r->to->name;
    to.uplo = r->uplo;
    to.trimmed = to.uplo && chunks_trim(to.rows, to.cols, to.size);
    return to;
}

static int64_t bytes_of(const struct result *r)
{
    return r->from.rows * r->from.cols * solver_element(r->from);
}

/* Larger results come straight to their places. */
#define STAGED_BYTES ((int64_t)16 << 20)

static bool is_staged(const struct solver *s, const struct result *r)
{
    if (packer_of(s->work->host->packer, r->to->ptr)) /* whose client keeps all or nothing */
        return r->staged;
    return r->staged || r->integers || r->to->place != ACCEL_HOST || bytes_of(r) <= STAGED_BYTES;
}

void solver_return_lu(struct solver *s, const struct accel_span *to, struct array from)
{
    const struct result lu = {.to = to, .from = from, .has_pivots = true};
    if (!is_staged(s, &lu))
        solver_refuse_small_pivots(s, from);
    add_result(s, lu);
}

static bool is_input(const struct result *r)
{
    return r->to->access != ACCEL_WRITE;
}

/* Begins a result that could be cached on the device: a whole operand, or a triangle of it with its
 * diagonal. Returns what gets its digest, or NULL. */
static struct gpu_key *begin_result(struct solver *s, struct result *r)
{
    const struct array from = r->from;
    const struct gpu_tiles whole = {0, 0};
    if (r->integers || r->uplo == 'u' || r->uplo == 'l' || from.rows != r->to->rows ||
        from.cols != r->to->cols || from.at.ld != gpu_device_ld(from.rows, from.dtype) ||
        from.dtype != r->to->dtype)
        return NULL;
    solver_note(s, result_capture_begin(&r->capture, s->work, r->to, r->uplo, whole, from.at.ptr));
    GPU_DO(s, result_capture_add(&r->capture, s->work, 0, 0, from.at));
    return result_capture_digest(&r->capture, 0, 0);
}

/* Writes a large result to its place. Results that overwrite inputs come last: until then the
 * original can still run the call. */
static void write_in_place(struct solver *s, struct result *r)
{
    struct host_rectangle to = rectangle_of_result(r);
    int64_t done_cols = 0, done_rows = 0;
    if (is_staged(s, r) || !solver_is_well(s))
        return;
    to.digest = begin_result(s, r);
    r->copied = chunks_matrix_sent(&to, r->from.at.ld);
    const enum gpu_status status =
        solver_is_well(s)
            ? gpu_copies(s->work)->download(s->work->ctx, &to, r->from.at, &done_cols, &done_rows)
            : s->status;
    s->touched = s->touched || (is_input(r) && (done_cols > 0 || done_rows > 0));
    if (status != GPU_OK)
        s->status = s->touched && !s->work->host->packer ? GPU_LOST : status;
}

/* Makes integers of the program's type of int64, in place. */
static void narrow(void *integers, int64_t n, enum accel_dtype dtype)
{
    const int64_t *from = integers;
    for (int64_t i = 0; i < n && dtype != ACCEL_INT64; i++) {
        int32_t low = (int32_t)from[i];
        memcpy((char *)integers + i * 4, &low, 4);
    }
}

/* Stores what is staged in the program's memory, between elements that stay. */
static bool store_staged(struct solver *s, const struct result *r)
{
    struct accel_span part = *r->to;
    if (part.place == ACCEL_HOST) {
        const struct host_rectangle to = rectangle_of_result(r);
        struct packer *packer = packer_of(s->work->host->packer, to.host);
        if (packer)
            return packer_write(packer, &to, r->staged);
        pack_matrix_unpack(&to, r->staged, to.rows);
        return true;
    }
    if (part.inc) {
        part.cols = r->from.rows;
    } else {
        part.rows = r->from.rows;
        part.cols = r->from.cols;
    }
    part.triangle = r->uplo;
    return gpu_store(s->work->device, &part, r->staged);
}

static void stage(struct solver *s, struct result *r)
{
    if (r->staged || !is_staged(s, r))
        return;
    r->staged = malloc((size_t)bytes_of(r) + 1);
    if (!r->staged)
        solver_note(s, GPU_NO_MEMORY);
    struct host_rectangle to = rectangle_of_result(r);
    to.host = r->staged;
    to.ld = to.rows;
    to.size = solver_element(r->from);
    to.digest = begin_result(s, r);
    r->copied = chunks_matrix_sent(&to, r->from.at.ld);
    solver_get_rectangle(s, &to, r->from);
}

static void write_staged(struct solver *s, const struct result *r)
{
    if (!r->staged || !solver_is_well(s))
        return;
    s->touched = s->touched || is_input(r);
    if (r->integers)
        narrow(r->staged, r->from.rows, r->to->dtype);
    if (!store_staged(s, r))
        solver_note(s, s->work->host->packer ? GPU_UNSUPPORTED : s->touched ? GPU_LOST : GPU_ERROR);
}

static void cache_results(struct solver *s)
{
    for (int i = 0; i < s->results; i++)
        result_capture_insert(&s->result[i].capture, s->work);
}

void solver_drop_results(struct solver *s)
{
    for (int i = 0; i < s->results; i++)
        solver_packed_free(s->result[i].staged);
    s->results = 0;
}

static void deliver(struct solver *s)
{
    for (int i = 0; i < s->results && solver_is_well(s); i++)
        stage(s, &s->result[i]);
    for (int i = 0; i < s->results && solver_is_well(s); i++) {
        const struct result *r = &s->result[i];
        if (r->has_pivots && r->staged)
            solver_refuse_small_pivots_of(s, r->staged, r->from.rows,
                                          accel_min(r->from.rows, r->from.cols));
    }
    for (int inputs = 0; inputs < 2; inputs++)
        for (int i = 0; i < s->results; i++)
            if (is_input(&s->result[i]) == inputs)
                write_in_place(s, &s->result[i]);
    for (int i = 0; i < s->results; i++)
        write_staged(s, &s->result[i]);
    for (int i = 0; i < s->results && solver_is_well(s); i++) {
        const struct result *r = &s->result[i];
        if (!r->from.at.ptr)
            continue; /* the host had it */
        gpu_work_event(s->work, GPU_EVENT_D2H, r->to, r->from.rows, r->from.cols, r->copied);
    }
}

void solver_deliver(struct solver *s)
{
    if (solver_is_well(s))
        deliver(s);
    if (solver_is_well(s))
        solver_cache_inputs(s);
    if (solver_is_well(s))
        cache_results(s);
    solver_drop_results(s);
}
