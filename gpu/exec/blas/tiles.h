/*
 * The tile driver: one loop for Level 2, whose matrix comes in strips of columns.
 *
 * An operation says which of its operands come in parts, how large the parts may be, and which
 * kernels compute one tile. The driver chooses a size that fits the memory. Then for each tile of
 * the result, in order, it puts uploads, kernels and the download on the stream. After a failure
 * the finished tiles stay, and the program's original computes the rest.
 */
#ifndef ACCEL_TILES_H
#define ACCEL_TILES_H

#include "gpu/device/kernels.h"
#include "gpu/cache/bringing.h"

#define TILE_PARTS 5 /* operands, and memory for the operation's own use */

/* An operand that comes to the device one part at a time, or is used in place. */
struct tile_part {
    const struct accel_span *x; /* NULL: memory alone, or unused */
    bool aside;                 /* is copied, though kernels can use X in place */
    const int64_t *rows, *cols; /* of the largest part */
    int64_t bytes;              /* if rows is NULL: for each of *cols, or in all if cols is NULL */
    /* The driver's: */
    gpu_address memory;
    struct resident resident;
};

static inline struct tile_part tile_part_of(const struct accel_span *x, const int64_t *rows,
                                            const int64_t *cols)
{
    return (struct tile_part){.x = x, .rows = rows, .cols = cols};
}

/* A tile of the result on the device. */
struct tile {
    int64_t row, col, rows, cols;
    bool first; /* of all tiles */
    struct gpu_tile at;
    /* Of a triangular result: the triangle on the diagonal, and the rectangle of the `rest` other
     * rows, which begin at row `beside`. */
    int64_t beside, rest;
    struct gpu_tile triangle, rectangle;
    int64_t done_cols; /* written back so far; of an upper triangle the last ones */
};

/* The first member of each operation's structure. Must not be copied once its parts point to its
 * size. */
struct tiles {
    struct gpu_work *work;
    int64_t most, size; /* columns that come at once: at most; chosen by the driver */
    struct tile_part part[TILE_PARTS];
    /* The part that tiles are made of, and the one that is the result. If they differ, the result
     * is whole on the device, and end() writes it back. */
    int over, out;
    int64_t rows, cols;                        /* of part[over] */
    char uplo;                                 /* the triangle of part[over], or 0: all of it */
    bool descending;                           /* tiles from the last column on */
    enum gpu_status (*begin)(struct tiles *t); /* before the first tile; may be NULL */
    enum gpu_status (*compute)(struct tiles *t, struct tile *tile);
    enum gpu_status (*end)(struct tiles *t); /* after the last one; may be NULL */
};

/* Chooses a size, takes device memory for the parts, and computes all tiles. Call it before
 * anything of the call is on the stream. Returns the status for gpu_run(): GPU_NO_MEMORY if no size
 * fits. */
enum gpu_status tiles_run(struct tiles *t);

/* Uploads the part [row, row + rows) x [col, col + cols) of an operand, unless it is in place or
 * cached; *at says where it is. */
enum gpu_status tiles_load(struct tiles *t, int part, int64_t row, int64_t col, int64_t rows,
                           int64_t cols, struct gpu_tile *at);

/* Copies a whole vector back from the part's memory to the program's, all or nothing. */
enum gpu_status tiles_write_vector(struct tiles *t, int part);

/* Returns how many columns of `length` elements of `size` bytes make a panel that can be written
 * back all or nothing: at least one. */
int64_t tiles_panel(int64_t length, int64_t size);

#endif
