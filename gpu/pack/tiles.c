#include "tiles.h"

static int64_t parts(int64_t all, int64_t step)
{
    return (all + step - 1) / step;
}

int64_t tiles_count(const struct host_rectangle *all, const struct gpu_tiles *by)
{
    return parts(all->rows, by->rows) * parts(all->cols, by->cols);
}

int64_t tiles_number(const struct host_rectangle *all, const struct gpu_tiles *by, int64_t row,
                     int64_t col)
{
    return row / by->rows + col / by->cols * parts(all->rows, by->rows);
}

struct host_rectangle tiles_at(const struct host_rectangle *all, const struct gpu_tiles *by,
                               int64_t number)
{
    const int64_t down = parts(all->rows, by->rows);
    const int64_t row = number % down * by->rows, col = number / down * by->cols;
    struct host_rectangle tile = *all;
    /* A digest does not depend on it, and the column of a large tile may not fit a chunk */
    tile.trimmed = false;
    tile.host += (row + col * all->ld) * all->size;
    tile.rows = all->rows - row < by->rows ? all->rows - row : by->rows;
    tile.cols = all->cols - col < by->cols ? all->cols - col : by->cols;
    if (all->uplo && row != col) {
        tile.uplo = 0;
        tile.rows = (row > col) == pack_is_lower(all) ? tile.rows : 0;
    }
    return tile;
}

struct gpu_key tiles_shape(const struct host_rectangle *all, const struct gpu_tiles *by)
{
    const int64_t shape[] = {all->rows, all->cols, all->size, all->uplo, by->rows, by->cols};
    return gpu_digest_columns((const char *)shape, sizeof shape, 1, sizeof shape);
}
