#include "cells.h"

static int64_t parts(int64_t all, int64_t step)
{
    return (all + step - 1) / step;
}

int64_t cells_count(const struct lane_rectangle *all, const struct gpu_cells *by)
{
    return parts(all->rows, by->rows) * parts(all->cols, by->cols);
}

int64_t cells_number(const struct lane_rectangle *all, const struct gpu_cells *by, int64_t row,
                     int64_t col)
{
    return row / by->rows + col / by->cols * parts(all->rows, by->rows);
}

struct lane_rectangle cells_at(const struct lane_rectangle *all, const struct gpu_cells *by,
                               int64_t number)
{
    const int64_t down = parts(all->rows, by->rows);
    const int64_t row = number % down * by->rows, col = number / down * by->cols;
    struct lane_rectangle cell = *all;
    /* A digest does not depend on it, and the column of a large cell may not fit a chunk */
    cell.trimmed = false;
    cell.host += (row + col * all->ld) * all->size;
    cell.rows = all->rows - row < by->rows ? all->rows - row : by->rows;
    cell.cols = all->cols - col < by->cols ? all->cols - col : by->cols;
    if (all->uplo && row != col) {
        cell.uplo = 0;
        cell.rows = (row > col) == pack_is_lower(all) ? cell.rows : 0;
    }
    return cell;
}

struct gpu_key cells_shape(const struct lane_rectangle *all, const struct gpu_cells *by)
{
    const int64_t shape[] = {all->rows, all->cols, all->size, all->uplo, by->rows, by->cols};
    return gpu_digest_columns((const char *)shape, sizeof shape, 1, sizeof shape);
}
