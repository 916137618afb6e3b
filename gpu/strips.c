#include "strips.h"

/* In strips, if free memory has so many times the square. */
enum { STRIPED_SHARE = 4 };

static bool is_lower(const struct lane_rectangle *all)
{
    return all->uplo == 'L' || all->uplo == 'l';
}

static int64_t strip_columns(const struct lane_rectangle *all)
{
    return (all->cols + STRIPS - 1) / STRIPS;
}

struct gpu_cells strips_cells(const struct lane_rectangle *all)
{
    return (struct gpu_cells){0, strip_columns(all)};
}

gpu_address strips_memory(struct solver *s, const struct lane_rectangle *all)
{
    const int64_t whole = all->rows * all->cols * all->size,
                  bytes = gpu_device_ld(all->rows, s->dtype) * strip_columns(all) * all->size;
    if (!all->uplo || whole < STRIPED_BYTES)
        return 0;
    if (bytes <= s->strip_bytes)
        return s->strip;
    if (gpu_work_available(s->work) / STRIPED_SHARE < whole ||
        gpu_work_take(s->work, bytes, &s->strip) != GPU_OK)
        return 0;
    s->strip_bytes = bytes;
    return s->strip;
}

/* Returns the strip that begins with column `col`, and in *row its first row. */
static struct lane_rectangle strip_of(const struct lane_rectangle *all, int64_t col, int64_t *row)
{
    const struct gpu_cells strips = strips_cells(all);
    *row = is_lower(all) ? accel_min(col, all->rows) : 0;
    return cells_at(all, &strips, col / strips.cols);
}

static gpu_address element_of(struct array x, int64_t row, int64_t col)
{
    return solver_part(x, row, col, 1, 1).ptr;
}

enum gpu_status strips_upload(struct solver *s, struct array to, const struct lane_rectangle *all,
                              gpu_address memory, int64_t *bytes)
{
    struct gpu_lane *lane = s->work->lane;
    enum gpu_status status =
        gpu_work_zero(s->work, to.ptr, to.ld * to.cols * (int64_t)accel_dtype_size(to.dtype));
    for (int64_t col = 0; status == GPU_OK && col < all->cols; col += strip_columns(all)) {
        int64_t row;
        const struct lane_rectangle strip = strip_of(all, col, &row);
        const int64_t ld = gpu_device_ld(strip.rows, to.dtype);
        if (strip.rows == 0)
            break;
        status = lane_upload(lane, memory, ld, &strip);
        if (status == GPU_OK)
            status = lane_copy(lane, element_of(to, row, col), to.ld, memory, ld, strip.rows,
                               strip.cols, strip.size);
        *bytes += strip.rows * strip.cols * strip.size;
    }
    return status;
}

enum gpu_status strips_download(struct solver *s, const struct lane_rectangle *all,
                                struct array from, gpu_address memory, bool *written,
                                int64_t *bytes)
{
    struct gpu_lane *lane = s->work->lane;
    const struct gpu_cells strips = strips_cells(all);
    enum gpu_status status = GPU_OK;
    if (all->digest)
        *all->digest = cells_shape(all, &strips);
    for (int64_t col = 0; status == GPU_OK && col < all->cols; col += strip_columns(all)) {
        int64_t row, done_cols = 0, done_rows = 0;
        struct gpu_key digest;
        struct lane_rectangle strip = strip_of(all, col, &row);
        strip.digest = all->digest ? &digest : NULL;
        const int64_t ld = gpu_device_ld(strip.rows, from.dtype);
        if (strip.rows == 0)
            break;
        status = lane_copy(lane, memory, ld, element_of(from, row, col), from.ld, strip.rows,
                           strip.cols, strip.size);
        if (status == GPU_OK)
            status = lane_download(lane, &strip, memory, ld, &done_cols, &done_rows);
        *written = *written || done_cols > 0 || done_rows > 0;
        if (status == GPU_OK && all->digest)
            *all->digest = gpu_digest_join(*all->digest, digest);
        *bytes += strip.rows * strip.cols * strip.size;
    }
    return status;
}
