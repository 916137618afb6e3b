#include "tiles.h"

#include "call/shape.h"
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

static bool choose_size(struct tiles *t, int64_t available)
{
    t->size = t->most;
    while (all_bytes(t) > available && t->size > 1)
        t->size = (t->size + 1) / 2;
    return all_bytes(t) <= available;
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

/* Goes on without them: memory is short. */
static void leave_residents(struct tiles *t)
{
    for (int i = 0; i < TILE_PARTS; i++)
        t->part[i].resident = (struct resident){.here = false};
}

/* Takes memory for all parts that are not on the device, or for none. looks: looks for those that
 * are. */
static enum gpu_status get_memory(struct tiles *t, bool looks)
{
    struct gpu_work *work = t->work;
    enum gpu_status status = GPU_OK;
    if (all_bytes(t) > gpu_info(work->device)->memory_bytes)
        return GPU_NO_MEMORY;
    if (looks)
        status = look_for_residents(t);
    for (int i = 0; status == GPU_OK && i < TILE_PARTS; i++) {
        int64_t bytes = part_bytes(t, i);
        if (bytes > 0 && !t->part[i].resident.here)
            status = gpu_memory(work)->take(work, bytes, &t->part[i].memory);
    }
    if (status != GPU_NO_MEMORY)
        return status;
    leave_residents(t);
    /* A part of what is there may be on its way to its own place */
    status = gpu_work_give_back(work);
    return status == GPU_OK ? GPU_NO_MEMORY : status;
}

/* Chooses a size and takes device memory for the parts: the largest size first, then those for
 * which there is memory. Nothing of the call is on the stream yet. Returns GPU_NO_MEMORY if none
 * fits. */
static enum gpu_status prepare(struct tiles *t)
{
    enum gpu_status status = GPU_NO_MEMORY;
    int64_t available = INT64_MAX;
    for (int attempt = 0; attempt < WORK_ATTEMPTS && status == GPU_NO_MEMORY; attempt++) {
        available = gpu_work_room(t->work, attempt, available);
        if (!choose_size(t, available))
            return GPU_NO_MEMORY;
        status = get_memory(t, attempt == 0);
        if (status == GPU_NO_MEMORY && t->work->host->relies)
            return GPU_CHANGED;
    }
    return status;
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
    bool kept = p->row == row && p->col == col;
    int64_t bytes = rows * cols * gpu_size_of(x);
    p->row = row;
    p->col = col;
    if (is_in_place(p)) {
        *at = (struct gpu_tile){(gpu_address)(uintptr_t)gpu_element(x, row, col), x->ld};
        gpu_work_event(t->work, GPU_EVENT_IN_PLACE, x, rows, cols, bytes);
        return GPU_OK;
    }
    *at = (struct gpu_tile){p->memory, gpu_device_ld(rows, x->dtype)};
    if (p->resident.here && !kept)
        t->work->host->kept_bytes += bytes;
    kept = kept || p->resident.here;
    if (kept)
        gpu_work_event(t->work, GPU_EVENT_KEPT, x, rows, cols, bytes);
    if (kept || !accel_is_read(call, x) || (x->access == ACCEL_READ && accel_adds_nothing(call)))
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
        t->work->host->up_bytes += bytes;
        gpu_work_event(t->work, GPU_EVENT_H2D, x, rows, cols, bytes);
    }
    return status;
}

static void note_written(struct gpu_work *work, const struct accel_span *x, int64_t rows,
                         int64_t cols)
{
    int64_t bytes = rows * cols * gpu_size_of(x);
    work->host->down_bytes += bytes;
    gpu_work_event(work, GPU_EVENT_D2H, x, rows, cols, bytes);
}

enum gpu_status tiles_write_vector(struct tiles *t, int part)
{
    const struct tile_part *p = &t->part[part];
    struct lane_rectangle to = rectangle_of(p->x, 0, 0, 1, p->x->cols);
    to.name = p->x->name;
    if (!resident_keeps_trust(t->work))
        return GPU_CHANGED;
    enum gpu_status status =
        gpu_copies(t->work)->download_whole(t->work->lane, &to, p->memory, to.rows);
    if (status == GPU_OK)
        note_written(t->work, p->x, 1, p->x->cols);
    return status;
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
    enum gpu_status status =
        whole ? gpu_copies(t->work)->download_whole(t->work->lane, &to, tile->at.ptr, tile->at.ld)
              : gpu_copies(t->work)->download(t->work->lane, &to, tile->at.ptr, tile->at.ld,
                                              &tile->done_cols, &done_rows);
    if (status == GPU_OK)
        note_written(t->work, x, tile->rows, tile->cols);
    return status;
}

/* ---- All tiles ---- */

static enum gpu_status load_tile(struct tiles *t, struct tile *tile)
{
    enum gpu_status status =
        tiles_load(t, t->over, tile->row, tile->col, tile->rows, tile->cols, &tile->at);
    bool upper = t->uplo == 'U';
    tile->rest = tile->rows - tile->cols;
    tile->beside = upper ? 0 : tile->col + tile->cols;
    tile->triangle = gpu_tile_from(t->work, tile->at, upper ? tile->rest : 0, 0);
    tile->rectangle = gpu_tile_from(t->work, tile->at, upper ? 0 : tile->cols, 0);
    return status;
}

static enum gpu_status run_tile(struct tiles *t, struct tile *tile)
{
    enum gpu_status status = load_tile(t, tile);
    if (status == GPU_OK)
        status = t->compute(t, tile);
    if (status != GPU_OK || t->over != t->out)
        return status;
    /* The caller may read the result as soon as we return. */
    if (gpu_in_place(t->part[t->out].x))
        return gpu_work_settle(t->work);
    return write_back(t, tile);
}

static enum gpu_status run_tiles(struct tiles *t, struct tile *tile)
{
    enum gpu_status status = GPU_OK;
    tile->first = true;
    for (int64_t done = 0; status == GPU_OK && done < t->cols; done += t->size) {
        const int64_t cols = accel_min(t->size, t->cols - done);
        const int64_t col = t->descending ? t->cols - done - cols : done;
        const int64_t row = t->uplo == 'L' ? col : 0;
        const int64_t rows = (t->uplo == 'U' ? col + cols : t->rows) - row;
        *tile = (struct tile){row, col, rows, cols, .first = done == 0};
        status = run_tile(t, tile);
    }
    return status;
}

/* ---- After a failure ---- */

static bool by_original(const struct tiles *t, int64_t row, int64_t col, int64_t rows, int64_t cols)
{
    const struct accel_call *call = t->work->call;
    if (rows == 0 || cols == 0)
        return true;
    const struct accel_call part = shape_part(call, row, col, rows, cols);
    return gpu_work_by_original(t->work, &part);
}

/* Has the original compute the rest: a part of this tile, and all tiles after it. The rest of a
 * triangle is a triangle. */
static bool rest_by_original(const struct tiles *t, const struct tile *tile)
{
    const int64_t col = tile->col + tile->done_cols, left = tile->cols - tile->done_cols;
    if (t->over != t->out)
        return gpu_work_by_original(t->work, t->work->call);
    if (t->uplo == 'U')
        return by_original(t, 0, 0, tile->col + left, tile->col + left);
    if (t->uplo == 'L')
        return by_original(t, col, col, t->cols - col, t->cols - col);
    return by_original(t, 0, col, t->rows, t->cols - col);
}

/* Returns the status for gpu_run() after a failure: nothing was written, or the original has done
 * the rest, or neither, because a kernel may have changed a result that is in place. A result that
 * does not depend on its old values can be computed anew, once no kernel writes to it. */
static enum gpu_status after_failure(const struct tiles *t, const struct tile *tile,
                                     enum gpu_status status)
{
    const struct accel_span *out = t->part[t->out].x;
    bool damaged = gpu_in_place(out) && t->work->launched;
    bool whole = t->over != t->out || tile->first;
    if (status == GPU_LOST)
        return status;
    if (!damaged && whole && tile->done_cols == 0)
        return status;
    if (damaged &&
        (accel_is_read(t->work->call, out) || gpu_copies(t->work)->wait(t->work->lane) != GPU_OK))
        return GPU_LOST;
    if (!rest_by_original(t, tile))
        return GPU_LOST;
    return status == GPU_ERROR ? GPU_FINISHED_ELSE : GPU_SHORT_ELSE;
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

static enum gpu_status compute_all(struct tiles *t)
{
    struct tile tile = {.first = true};
    for (int i = 0; i < TILE_PARTS; i++)
        t->part[i].row = t->part[i].col = -1;
    enum gpu_status status = t->begin ? t->begin(t) : GPU_OK;
    if (status == GPU_OK)
        status = run_tiles(t, &tile);
    if (status == GPU_OK && t->end)
        status = t->end(t);
    if (status == GPU_OK)
        keep_residents(t);
    return status == GPU_OK ? status : after_failure(t, &tile, status);
}

enum gpu_status tiles_run(struct tiles *t)
{
    enum gpu_status status = prepare(t);
    return status == GPU_OK ? compute_all(t) : status;
}
