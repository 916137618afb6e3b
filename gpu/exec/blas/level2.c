#include "level2.h"

#include "call/shape.h"
#include "gpu/exec/executor.h"
#include "gpu/pack/chunks.h"

/* ---- Memory ---- */

static bool is_in_place(const struct level2_part *part)
{
    return part->x && gpu_in_place(part->x) && !part->aside;
}

/* Return the bytes of device memory that a part, or all of them, need at the present size. */
static int64_t part_bytes(const struct level2 *t, int part)
{
    const struct level2_part *p = &t->part[part];
    if (is_in_place(p))
        return 0;
    if (!p->rows)
        return p->bytes * (p->cols ? *p->cols : 1);
    return gpu_device_ld(*p->rows, p->x->dtype) * *p->cols * gpu_size_of(p->x);
}

static int64_t all_bytes(const struct level2 *t)
{
    int64_t bytes = 0;
    for (int i = 0; i < LEVEL2_PARTS; i++)
        bytes += part_bytes(t, i);
    return bytes;
}

/* After a failure the original computes a whole panel again; and a panel must fit a landing
 * (gpu/cuda/stream_ctx.h). */
#define PANEL_BYTES ((int64_t)16 << 20)

int64_t level2_panel(int64_t length, int64_t size)
{
    int64_t bytes = length * size;
    return bytes < PANEL_BYTES ? PANEL_BYTES / (bytes > 0 ? bytes : 1) : 1;
}

/* Chooses the largest size; later, the largest one that fits. */
static bool plan(void *level2, int64_t bytes)
{
    struct level2 *t = level2;
    const bool first = t->size == 0;
    t->size = t->most;
    while (!first && all_bytes(t) > bytes && t->size > 1)
        t->size = (t->size + 1) / 2;
    return first || all_bytes(t) <= bytes;
}

/* Looks for whole operands that earlier calls have left on the device. */
static enum gpu_status look_for_cached(struct level2 *t)
{
    enum gpu_status status = GPU_OK;
    for (int i = 0; i < LEVEL2_PARTS; i++) {
        struct level2_part *p = &t->part[i];
        if (!p->x || is_in_place(p) || !p->rows || *p->rows != p->x->rows || *p->cols != p->x->cols)
            continue;
        if (!device_cache_may(t->work->call, p->x))
            continue;
        const struct accel_span part = device_cache_part(t->work->call, p->x);
        p->cached = device_cache_look(t->work, p->x, &part, &p->memory);
        if (t->work->host->relies && !p->cached.here)
            status = GPU_CHANGED;
    }
    return status;
}

static void leave_cached(void *level2)
{
    struct level2 *t = level2;
    for (int i = 0; i < LEVEL2_PARTS; i++)
        t->part[i].cached = (struct cached_operand){.here = false};
}

static enum gpu_status alloc_parts(struct level2 *t, bool looks)
{
    if (all_bytes(t) > gpu_info(t->work->device)->memory_bytes)
        return GPU_NO_MEMORY;
    if (looks)
        GPU_TRY(look_for_cached(t));
    for (int i = 0; i < LEVEL2_PARTS; i++) {
        struct level2_part *p = &t->part[i];
        const int64_t bytes = part_bytes(t, i);
        if (bytes > 0 && !p->cached.here)
            GPU_TRY(gpu_memory(t->work)->take(t->work, bytes, &p->memory));
    }
    return GPU_OK;
}

static enum gpu_status alloc_level2(void *level2, bool first)
{
    struct level2 *t = level2;
    const enum gpu_status status = alloc_parts(t, first);
    return status == GPU_NO_MEMORY && t->work->host->relies ? GPU_CHANGED : status;
}

/* ---- Copies ---- */

/* Returns a part of a matrix; or a whole vector, in the order of its elements: one column if it is
 * contiguous, else one row. */
static struct host_rectangle rectangle_of(const struct accel_span *x, int64_t row, int64_t col,
                                          int64_t rows, int64_t cols)
{
    int64_t size = gpu_size_of(x), n = x->cols;
    if (x->inc == 0)
        return host_whole(gpu_element(x, row, col), rows, cols, x->ld, size);
    if (x->inc == 1)
        return host_whole(x->ptr, n, 1, n, size);
    char *first = (char *)x->ptr + (x->inc < 0 ? (1 - n) * x->inc * size : 0);
    return host_whole(first, 1, n, x->inc, size);
}

enum gpu_status level2_load(struct level2 *t, int part, int64_t row, int64_t col, int64_t rows,
                            int64_t cols, struct dmat *at)
{
    struct level2_part *p = &t->part[part];
    const struct accel_span *x = p->x;
    const struct accel_call *call = t->work->call;
    int64_t bytes = rows * cols * gpu_size_of(x);
    if (is_in_place(p)) {
        *at = dmat_part(dmat_in_place(x), row, col, gpu_size_of(x));
        gpu_work_event(t->work, GPU_EVENT_IN_PLACE, x, rows, cols, bytes);
        return GPU_OK;
    }
    *at = (struct dmat){p->memory, gpu_device_ld(rows, x->dtype)};
    if (p->cached.here)
        gpu_work_event(t->work, GPU_EVENT_CACHED, x, rows, cols, bytes);
    if (p->cached.here || !accel_is_read(call, x) ||
        (x->access == ACCEL_READ && accel_adds_nothing(call)))
        return GPU_OK;
    struct host_rectangle from = rectangle_of(x, row, col, rows, cols);
    from.name = x->name;
    if (p->cached.digests) {
        from = device_cache_rectangle(&p->cached.part);
        from.digest = &p->cached.key;
        bytes = chunks_matrix_sent(&from, at->ld);
    }
    struct prefetch prefetch = prefetch_begin(&p->cached);
    enum gpu_status status =
        gpu_work_upload(t->work, (struct dmat){at->ptr, x->inc ? from.rows : at->ld}, &from);
    prefetch_end(&prefetch, &p->cached);
    if (status == GPU_OK) {
        p->cached.digested = p->cached.digests;
        gpu_work_event(t->work, GPU_EVENT_H2D, x, rows, cols, bytes);
    }
    return status;
}

static void note_written(struct gpu_work *work, const struct accel_span *x, int64_t rows,
                         int64_t cols)
{
    gpu_work_event(work, GPU_EVENT_D2H, x, rows, cols, rows * cols * gpu_size_of(x));
}

enum gpu_status level2_write_vector(struct level2 *t, int part)
{
    const struct level2_part *p = &t->part[part];
    struct host_rectangle to = rectangle_of(p->x, 0, 0, 1, p->x->cols);
    to.name = p->x->name;
    if (!device_cache_speculation_holds(t->work))
        return GPU_CHANGED;
    GPU_TRY(
        gpu_copies(t->work)->download_whole(t->work->ctx, &to, (struct dmat){p->memory, to.rows}));
    note_written(t->work, p->x, 1, p->x->cols);
    return GPU_OK;
}

/* Writes a strip back. If a column does not fit a pinned buffer, a part of it could be written
 * before a failure: then writes all or nothing. */
static enum gpu_status write_back(struct level2 *t, struct level2_strip *strip)
{
    const struct accel_span *x = t->part[t->out].x;
    struct host_rectangle to = rectangle_of(x, strip->row, strip->col, strip->rows, strip->cols);
    const bool whole = !pack_column_fits(strip->at.ld, gpu_size_of(x));
    int64_t done_rows;
    to.name = x->name;
    to.uplo = t->uplo;
    to.backwards = t->uplo == 'U';
    to.diagonal = t->uplo == 'U' ? strip->rows - strip->cols : 0;
    GPU_TRY(whole ? gpu_copies(t->work)->download_whole(t->work->ctx, &to, strip->at)
                  : gpu_copies(t->work)->download(t->work->ctx, &to, strip->at, &strip->done_cols,
                                                  &done_rows));
    note_written(t->work, x, strip->rows, strip->cols);
    return GPU_OK;
}

/* ---- All strips ---- */

static enum gpu_status load_strip(struct level2 *t, struct level2_strip *strip)
{
    GPU_TRY(level2_load(t, t->over, strip->row, strip->col, strip->rows, strip->cols, &strip->at));
    bool upper = t->uplo == 'U';
    strip->rest = strip->rows - strip->cols;
    strip->beside = upper ? 0 : strip->col + strip->cols;
    strip->triangle = dmat_from(t->work, strip->at, upper ? strip->rest : 0, 0);
    strip->rectangle = dmat_from(t->work, strip->at, upper ? 0 : strip->cols, 0);
    return GPU_OK;
}

static enum gpu_status run_strip(struct level2 *t, struct level2_strip *strip)
{
    GPU_TRY(load_strip(t, strip));
    GPU_TRY(t->compute(t, strip));
    if (t->over != t->out)
        return GPU_OK;
    /* The caller may read the result as soon as we return. */
    return gpu_in_place(t->part[t->out].x) ? gpu_work_settle(t->work) : write_back(t, strip);
}

static enum gpu_status run_strips(struct level2 *t, struct level2_strip *strip)
{
    if (t->begin)
        GPU_TRY(t->begin(t));
    for (int64_t done = 0; done < t->cols; done += t->size) {
        const int64_t cols = accel_min(t->size, t->cols - done);
        const int64_t col = t->descending ? t->cols - done - cols : done;
        const int64_t row = t->uplo == 'L' ? col : 0;
        const int64_t rows = (t->uplo == 'U' ? col + cols : t->rows) - row;
        *strip = (struct level2_strip){row, col, rows, cols, .first = done == 0};
        GPU_TRY(run_strip(t, strip));
    }
    return t->end ? t->end(t) : GPU_OK;
}

/* ---- After a failure ---- */

struct failed {
    const struct level2 *t;
    struct level2_strip strip;
};

/* Has the original compute the rest: a part of this strip, and all strips after it. The rest of a
 * triangle is a triangle. */
static bool rest_by_original(const void *failed)
{
    const struct level2 *t = ((const struct failed *)failed)->t;
    const struct level2_strip *strip = &((const struct failed *)failed)->strip;
    const int64_t col = strip->col + strip->done_cols, left = t->cols - col;
    const int64_t upper = strip->col + strip->cols - strip->done_cols;
    if (t->over != t->out)
        return gpu_work_by_original(t->work, t->work->call);
    const struct schedule_tile rest = t->uplo == 'U' ? (struct schedule_tile){0, 0, upper, upper}
                                      : t->uplo == 'L'
                                          ? (struct schedule_tile){col, col, left, left}
                                          : (struct schedule_tile){0, col, t->rows, left};
    return executor_part_by_original(t->work, t->work->call, rest);
}

/* Caches the operands that are worth it, after the call. A failure to do so is the device's, and
 * the next call's. */
static void cache_operands(struct level2 *t)
{
    for (int i = 0; i < LEVEL2_PARTS; i++) {
        struct level2_part *p = &t->part[i];
        if (p->cached.digested)
            device_cache_insert(t->work, p->memory, &p->cached);
    }
}

enum gpu_status level2_run(struct level2 *t)
{
    static const struct executor_memory memory = {plan, alloc_level2, leave_cached};
    const struct accel_span *out = t->part[t->out].x;
    struct failed failed = {t, {.first = true}};
    GPU_TRY(executor_prepare(t->work, &memory, t));
    const enum gpu_status status = run_strips(t, &failed.strip);
    const struct executor_rest rest = {.in_place = gpu_in_place(out),
                                       .reads = accel_is_read(t->work->call, out),
                                       .written = (t->over == t->out && !failed.strip.first) ||
                                                  failed.strip.done_cols > 0,
                                       .by_original = rest_by_original};
    if (status == GPU_OK)
        cache_operands(t);
    return status == GPU_OK ? status : executor_recover(t->work, status, &rest, &failed);
}
