/*
 * The digest of a matrix that comes down in tiles (schedule.h): each has a digest of its own, so
 * they may come in any order. Who reads the matrix later, digests it by the same tiles. Pure
 * functions.
 */
#ifndef ACCEL_TILES_H
#define ACCEL_TILES_H

#include "pack.h"

/* The rows and columns of a tile, in elements; the last ones may have fewer. A triangle's are as
 * long as wide. 0: the matrix is digested as one chunk. */
struct gpu_tiles {
    int64_t rows, cols;
};

/* Returns how many tiles a matrix has, also those beside its triangle; and the number of the tile
 * that begins with element (row, col). */
int64_t tiles_count(const struct host_rectangle *all, const struct gpu_tiles *by);
int64_t tiles_number(const struct host_rectangle *all, const struct gpu_tiles *by, int64_t row,
                     int64_t col);

/* Returns a tile; one on the diagonal of a triangle is a triangle, one beside the triangle is
 * empty. */
struct host_rectangle tiles_at(const struct host_rectangle *all, const struct gpu_tiles *by,
                               int64_t number);

/* Returns the digest of a matrix before its first tile: its shape's. Those of the tiles are joined
 * to it, by their numbers. */
struct gpu_key tiles_shape(const struct host_rectangle *all, const struct gpu_tiles *by);

#endif
