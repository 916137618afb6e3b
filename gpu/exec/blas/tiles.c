#include "tiles.h"

#include "call/shape.h"
#include "gpu/exec/executor.h"
#include "gpu/pack/pieces.h"

/* ---- Memory ---- */

static bool is_in_place(const struct tile_part *part)
{
    return part->x && gpu_in_place(part->x) && !part->aside;
}

/* Return the bytes of device memory that a part, or all of them, need at the present size. */
static int64_t part_bytes(const struct tiles *t, int part)
{
    const struct tile_part *p = &t->part[part];
    if (is_in_place(p))
        return 0;
    if (!p->rows)
        return p->bytes * (p->cols ? *p->cols : 1);
    return gpu_device_ld(*p->rows, p->x->dtype) * *p->cols * gpu_size_of(p->x);
}

static int64_t all_bytes(const struct tiles *t)
{
    int64_t bytes = 0;
    for (int i = 0; i < TILE_PARTS; i++)
        bytes += part_bytes(t, i);
    return bytes;
}

/* After a failure the original computes a whole panel again; and a panel must fit a landing
 * (gpu/cuda/lane.h). */
#define PANEL_BYTES ((int64_t)16 << 20)

int64_t tiles_panel(int64_t length, int64_t size)
{
    int64_t bytes = length * size;
    return bytes < PANEL_BYTES ? PANEL_BYTES / (bytes > 0 ? bytes : 1) : 1;
}

/* Chooses the largest size; later, the largest one that fits. */
static bool plan(void *tiles, int64_t bytes)
{
    struct tiles *t = tiles;
    const bool first = t->size == 0;
    t->size = t->most;
    while (!first && all_bytes(t) > bytes && t->size > 1)
        t->size = (t->size + 1) / 2;
    return first || all_bytes(t) <= bytes;
}

/* Looks for whole operands that earlier calls have left on the device. */
static enum gpu_status look_for_residents(struct tiles *t)
{
    enum gpu_status status = GPU_OK;
    for (int i = 0; i < TILE_PARTS; i++) {
        struct tile_part *p = &t->part[i];
        if (!p->x || is_in_place(p) || !p->rows || *p->rows != p->x->rows || *p->cols != p->x->cols)
            continue;
        if (!resident_may(t->work->call, p->x))
            continue;
        const struct accel_span part = resident_part(t->work->call, p->x);
        p->resident = resident_look(t->work, p->x, &part, &p->memory);
        if (t->work->host->relies && !p->resident.here)
            status = GPU_CHANGED;
    }
    return status;
}

static void leave_residents(void *tiles)
{
    struct tiles *t = tiles;
    for (int i = 0; i < TILE_PARTS; i++)
        t->part[i].resident = (struct resident){.here = false};
}

static enum gpu_status take_memory(struct tiles *t, bool looks)
{
    if (all_bytes(t) > gpu_info(t->work->device)->memory_bytes)
        return GPU_NO_MEMORY;
    if (looks)
        GPU_TRY(look_for_residents(t));
    for (int i = 0; i < TILE_PARTS; i++) {
        struct tile_part *p = &t->part[i];
        const int64_t bytes = part_bytes(t, i);
        if (bytes > 0 && !p->resident.here)
            GPU_TRY(gpu_memory(t->work)->take(t->work, bytes, &p->memory));
    }
    return GPU_OK;
}

static enum gpu_status take(void *tiles, bool first)
{
    struct tiles *t = tiles;
    const enum gpu_status status = take_memory(t, first);
    return status == GPU_NO_MEMORY && t->work->host->relies ? GPU_CHANGED : status;
}

/* ---- Copies ---- */

/* Returns a part of a matrix; or a whole vector, in the order of its elements: one column if it is
 * contiguous, else one row. */
static struct lane_rectangle rectangle_of(const struct accel_span *x, int64_t row, int64_t col,
                                          int64_t rows, int64_t cols)
{
    int64_t size = gpu_size_of(x), n = x->cols;
    if (x->inc == 0)
        return lane_whole(gpu_element(x, row, col), rows, cols, x->ld, size);
    if (x->inc == 1)
        return lane_whole(x->ptr, n, 1, n, size);
    char *first = (char *)x->ptr + (x->inc < 0 ? (1 - n) * x->inc * size : 0);
    return lane_whole(first, 1, n, x->inc, size);
}

enum gpu_status tiles_load(struct tiles *t, int part, int64_t row, int64_t col, int64_t rows,
                           int64_t cols, struct gpu_tile *at)
{
    struct tile_part *p = &t->part[part];
    const struct accel_span *x = p->x;
    const struct accel_call *call = t->work->call;
    int64_t bytes = rows * cols * gpu_size_of(x);
    if (is_in_place(p)) {
        *at = (struct gpu_tile){(gpu_address)(uintptr_t)gpu_element(x, row, col), x->ld};
        gpu_work_event(t->work, GPU_EVENT_IN_PLACE, x, rows, cols, bytes);
        return GPU_OK;
    }
    *at = (struct gpu_tile){p->memory, gpu_device_ld(rows, x->dtype)};
    if (p->resident.here)
        gpu_work_event(t->work, GPU_EVENT_KEPT, x, rows, cols, bytes);
    if (p->resident.here || !accel_is_read(call, x) ||
        (x->access == ACCEL_READ && accel_adds_nothing(call)))
        return GPU_OK;
    struct lane_rectangle from = rectangle_of(x, row, col, rows, cols);
    from.name = x->name;
    if (p->resident.digests) {
        from = resident_rectangle(&p->resident.part);
        from.digest = &p->resident.key;
        bytes = pieces_matrix_sent(&from, at->ld);
    }
    struct bringing bringing = bringing_begin(&p->resident);
    enum gpu_status status =
        gpu_work_upload(t->work, (struct gpu_tile){at->ptr, x->inc ? from.rows : at->ld}, &from);
    bringing_end(&bringing, &p->resident);
    if (status == GPU_OK) {
        p->resident.digested = p->resident.digests;
        gpu_work_event(t->work, GPU_EVENT_H2D, x, rows, cols, bytes);
    }
    return status;
}

static void note_written(struct gpu_work *work, const struct accel_span *x, int64_t rows,
                         int64_t cols)
{
    gpu_work_event(work, GPU_EVENT_D2H, x, rows, cols, rows * cols * gpu_size_of(x));
}

enum gpu_status tiles_write_vector(struct tiles *t, int part)
{
    const struct tile_part *p = &t->part[part];
    struct lane_rectangle to = rectangle_of(p->x, 0, 0, 1, p->x->cols);
    to.name = p->x->name;
    if (!resident_keeps_trust(t->work))
        return GPU_CHANGED;
    GPU_TRY(gpu_copies(t->work)->download_whole(t->work->lane, &to, p->memory, to.rows));
    note_written(t->work, p->x, 1, p->x->cols);
    return GPU_OK;
}

/* Writes a tile back. If a column does not fit a slot, a part of it could be written before a
 * failure: then writes all or nothing. */
static enum gpu_status write_back(struct tiles *t, struct tile *tile)
{
    const struct accel_span *x = t->part[t->out].x;
    struct lane_rectangle to = rectangle_of(x, tile->row, tile->col, tile->rows, tile->cols);
    const bool whole = !lane_column_fits(tile->at.ld, gpu_size_of(x));
    int64_t done_rows;
    to.name = x->name;
    to.uplo = t->uplo;
    to.backwards = t->uplo == 'U';
    to.diagonal = t->uplo == 'U' ? tile->rows - tile->cols : 0;
    GPU_TRY(whole
                ? gpu_copies(t->work)->download_whole(t->work->lane, &to, tile->at.ptr, tile->at.ld)
                : gpu_copies(t->work)->download(t->work->lane, &to, tile->at.ptr, tile->at.ld,
                                                &tile->done_cols, &done_rows));
    note_written(t->work, x, tile->rows, tile->cols);
    return GPU_OK;
}

/* ---- All tiles ---- */

static enum gpu_status load_tile(struct tiles *t, struct tile *tile)
{
    GPU_TRY(tiles_load(t, t->over, tile->row, tile->col, tile->rows, tile->cols, &tile->at));
    bool upper = t->uplo == 'U';
    tile->rest = tile->rows - tile->cols;
    tile->beside = upper ? 0 : tile->col + tile->cols;
    tile->triangle = gpu_tile_from(t->work, tile->at, upper ? tile->rest : 0, 0);
    tile->rectangle = gpu_tile_from(t->work, tile->at, upper ? 0 : tile->cols, 0);
    return GPU_OK;
}

static enum gpu_status run_tile(struct tiles *t, struct tile *tile)
{
    GPU_TRY(load_tile(t, tile));
    GPU_TRY(t->compute(t, tile));
    if (t->over != t->out)
        return GPU_OK;
    /* The caller may read the result as soon as we return. */
    return gpu_in_place(t->part[t->out].x) ? gpu_work_settle(t->work) : write_back(t, tile);
}

static enum gpu_status run_tiles(struct tiles *t, struct tile *tile)
{
    if (t->begin)
        GPU_TRY(t->begin(t));
    for (int64_t done = 0; done < t->cols; done += t->size) {
        const int64_t cols = accel_min(t->size, t->cols - done);
        const int64_t col = t->descending ? t->cols - done - cols : done;
        const int64_t row = t->uplo == 'L' ? col : 0;
        const int64_t rows = (t->uplo == 'U' ? col + cols : t->rows) - row;
        *tile = (struct tile){row, col, rows, cols, .first = done == 0};
        GPU_TRY(run_tile(t, tile));
    }
    return t->end ? t->end(t) : GPU_OK;
}

/* ---- After a failure ---- */

struct failed {
    const struct tiles *t;
    struct tile tile;
};

/* Has the original compute the rest: a part of this tile, and all tiles after it. The rest of a
 * triangle is a triangle. */
static bool rest_by_original(const void *failed)
{
    const struct tiles *t = ((const struct failed *)failed)->t;
    const struct tile *tile = &((const struct failed *)failed)->tile;
    const int64_t col = tile->col + tile->done_cols, left = t->cols - col;
    const int64_t upper = tile->col + tile->cols - tile->done_cols;
    if (t->over != t->out)
        return gpu_work_by_original(t->work, t->work->call);
    const struct schedule_cell rest = t->uplo == 'U' ? (struct schedule_cell){0, 0, upper, upper}
                                      : t->uplo == 'L'
                                          ? (struct schedule_cell){col, col, left, left}
                                          : (struct schedule_cell){0, col, t->rows, left};
    return executor_part_by_original(t->work, t->work->call, rest);
}

/* Keeps the operands that are worth it, after the call. A failure to do so is the device's, and the
 * next call's. */
static void keep_residents(struct tiles *t)
{
    for (int i = 0; i < TILE_PARTS; i++) {
        struct tile_part *p = &t->part[i];
        if (p->resident.digested)
            resident_keep(t->work, p->memory, &p->resident);
    }
}

enum gpu_status tiles_run(struct tiles *t)
{
    static const struct executor_memory memory = {plan, take, leave_residents};
    const struct accel_span *out = t->part[t->out].x;
    struct failed failed = {t, {.first = true}};
    GPU_TRY(executor_prepare(t->work, &memory, t));
    const enum gpu_status status = run_tiles(t, &failed.tile);
    const struct executor_rest rest = {.in_place = gpu_in_place(out),
                                       .reads = accel_is_read(t->work->call, out),
                                       .written = (t->over == t->out && !failed.tile.first) ||
                                                  failed.tile.done_cols > 0,
                                       .by_original = rest_by_original};
    if (status == GPU_OK)
        keep_residents(t);
    return status == GPU_OK ? status : executor_recover(t->work, status, &rest, &failed);
}
