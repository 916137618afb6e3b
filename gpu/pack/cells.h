/*
 * The digest of a matrix that comes down in cells (schedule.h): each has a digest of its own, so
 * they may come in any order. Who reads the matrix later, digests it by the same cells. Pure
 * functions.
 */
#ifndef ACCEL_CELLS_H
#define ACCEL_CELLS_H

#include "pack.h"

/* The rows and columns of a cell, in elements; the last ones may have fewer. A triangle's are as
 * long as wide. 0: the matrix is digested as one chunk. */
struct gpu_cells {
    int64_t rows, cols;
};

/* Returns how many cells a matrix has, also those beside its triangle; and the number of the cell
 * that begins with element (row, col). */
int64_t cells_count(const struct lane_rectangle *all, const struct gpu_cells *by);
int64_t cells_number(const struct lane_rectangle *all, const struct gpu_cells *by, int64_t row,
                     int64_t col);

/* Returns a cell; one on the diagonal of a triangle is a triangle, one beside the triangle is
 * empty. */
struct lane_rectangle cells_at(const struct lane_rectangle *all, const struct gpu_cells *by,
                               int64_t number);

/* Returns the digest of a matrix before its first cell: its shape's. Those of the cells are joined
 * to it, by their numbers. */
struct gpu_key cells_shape(const struct lane_rectangle *all, const struct gpu_cells *by);

#endif
