#include "result_capture.h"

#include <limits.h>
#include <stdlib.h>

#include "gpu/device/kernels.h"

/* A copy for later calls leaves the call this many times its memory, at least. */
enum { ROOM = 4 };

/* The order of the largest tile on the diagonal. */
static int64_t order_of(const struct result_capture *s)
{
    return s->tiles.rows > 0 ? accel_min(s->tiles.rows, s->all.rows) : s->all.rows;
}

/* Returns whether the copies of tiles are within the sizes that gpu_copies.copy() and
 * gpu_kernels.pack_triangle() take. */
static bool can_copy(const struct result_capture *s, int64_t ld)
{
    const int64_t widest = INT_MAX / 16;
    return ld <= widest &&
           (!s->all.uplo || (s->all.rows == s->all.cols && order_of(s) <= GPU_PACKED_MOST));
}

/* Takes the memory for copies of tiles. Without it, the result is not cached. */
static enum gpu_status alloc_copies(struct result_capture *s, struct gpu_work *work)
{
    const int64_t ld = gpu_device_ld(s->all.rows, s->x.dtype),
                  bytes = ld * s->all.cols * s->all.size;
    const int64_t order = order_of(s), packed = order * (order + 1) / 2 * s->all.size;
    enum gpu_status status = GPU_NO_MEMORY;
    if (can_copy(s, ld) && gpu_memory(work)->available(work) / ROOM >= bytes)
        status = gpu_memory(work)->take(work, bytes, &s->memory);
    if (status == GPU_OK && s->all.uplo)
        status = gpu_memory(work)->take(work, packed, &s->packed);
    s->cached.digests = status == GPU_OK;
    if (status == GPU_OK && s->all.uplo)
        return gpu_memory(work)->zero(work, s->memory, bytes);
    return status == GPU_NO_MEMORY || status == GPU_UNSUPPORTED ? GPU_OK : status;
}

enum gpu_status result_capture_begin(struct result_capture *s, struct gpu_work *work,
                                     const struct accel_span *x, char uplo, struct gpu_tiles tiles,
                                     gpu_address there)
{
    enum gpu_status status = GPU_OK;
    *s = (struct result_capture){
        .x = *x, .tiles = tiles, .memory = there, .gathers = !there || uplo};
    s->x.triangle = uplo;
    s->all = host_whole(x->ptr, x->rows, x->cols, x->ld, gpu_size_of(x));
    s->all.uplo = uplo;
    s->cached = device_cache_begin_result(work, &s->x);
    if (s->cached.digests && s->tiles.rows > 0) {
        s->tile = calloc((size_t)tiles_count(&s->all, &s->tiles), sizeof *s->tile);
        s->cached.digests = s->tile != NULL;
    }
    if (s->cached.digests && s->gathers)
        status = alloc_copies(s, work);
    s->gathers = s->gathers && s->cached.digests;
    return status;
}

struct gpu_key *result_capture_digest(struct result_capture *s, int64_t row, int64_t col)
{
    if (!s->cached.digests)
        return NULL;
    return s->tile ? &s->tile[tiles_number(&s->all, &s->tiles, row, col)] : &s->cached.key;
}

/* Copies the triangle of a tile on the diagonal, and nothing beside it. */
static enum gpu_status add_triangle(const struct result_capture *s, struct gpu_work *work,
                                    int64_t n, struct dmat from, struct dmat to)
{
    const enum gpu_status status =
        gpu_kernels(work)->pack_triangle(work, s->all.uplo, n, from, s->packed);
    return status == GPU_OK
               ? gpu_kernels(work)->unpack_triangle(work, s->all.uplo, n, s->packed, to)
               : status;
}

enum gpu_status result_capture_add(const struct result_capture *s, struct gpu_work *work,
                                   int64_t row, int64_t col, struct dmat from)
{
    if (!s->gathers)
        return GPU_OK;
    const int64_t ld = gpu_device_ld(s->all.rows, s->x.dtype);
    const struct dmat to = dmat_part((struct dmat){s->memory, ld}, row, col, s->all.size);
    const struct host_rectangle tile =
        s->tile ? tiles_at(&s->all, &s->tiles, tiles_number(&s->all, &s->tiles, row, col)) : s->all;
    if (tile.uplo)
        return add_triangle(s, work, tile.cols, from, to);
    return gpu_copies(work)->copy(work->ctx, to, from, tile.rows, tile.cols, tile.size);
}

void result_capture_insert(struct result_capture *s, struct gpu_work *work)
{
    if (!s->cached.digests)
        return;
    const int64_t count = s->tile ? tiles_count(&s->all, &s->tiles) : 0;
    if (s->tile)
        s->cached.key = tiles_shape(&s->all, &s->tiles);
    for (int64_t i = 0; i < count; i++)
        s->cached.key = gpu_digest_join(s->cached.key, s->tile[i]);
    device_cache_insert_result(work, &s->x, s->memory, s->tiles, &s->cached);
}

void result_capture_end(struct result_capture *s)
{
    free(s->tile);
}
