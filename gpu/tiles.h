/*
 * The tile driver: one loop for all operations whose result comes in tiles.
 *
 * An operation says which of its operands are on the device in parts, how large the parts may be, how to make them
 * smaller, and which kernels compute one tile. The driver chooses the sizes for the memory that there is. Then for each tile
 * of the result, in order, uploads, kernels and the download go onto the stream. After a failure the finished tiles
 * stay, and the program's original computes the rest.
 */
#ifndef ACCEL_TILES_H
#define ACCEL_TILES_H

#include "kernels.h"

#define TILE_PARTS 5 /* operands, and memory of the operation's own */
#define TILE_SIZES 3 /* sizes that can shrink */

/* An operand of which one part at a time is on the device, or where it is. Rows and columns are those of op(X). */
struct tile_part {
    const struct accel_span *x; /* NULL: there is none */
    bool across;                /* op(X) is X transposed */
    bool aside;                 /* has memory of its own, though kernels can use X in place */
    const int64_t *rows, *cols; /* of the largest part */
    int64_t bytes;              /* where rows is NULL: for each of *cols, or in all */
    /* The driver's: */
    gpu_address memory;
    int64_t row, col; /* where the part begins that the memory holds; -1: none */
};

static inline struct tile_part tile_part_of(const struct accel_span *x, bool across,
                                            const int64_t *rows, const int64_t *cols)
{
    return (struct tile_part){.x = x, .across = across, .rows = rows, .cols = cols};
}

/* A tile of the result on the device. */
struct tile {
    int64_t row, col, rows, cols;
    bool first; /* of all */
    struct gpu_tile at;
    /* Of a triangular result: its rows on the diagonal, and the `rest` others, which begin at row `beside`. */
    int64_t beside, rest;
    struct gpu_tile triangle, rectangle;
    /* Written back: whole columns (of an upper triangle the last ones), and rows of the next one. */
    int64_t done_cols, done_rows;
};

/* What a tile is written back in after a failure on the way: what depends on each other goes together. */
enum tile_unit { TILE_ELEMENTS, TILE_COLUMNS, TILE_WHOLE };

/* The first member of each operation. Not to be copied once its parts point to its sizes. */
struct tiles {
    struct gpu_work *work;
    int64_t most[TILE_SIZES], size[TILE_SIZES];
    /* Makes a size smaller; false where none can be. */
    bool (*shrink)(struct tiles *t);
    struct tile_part part[TILE_PARTS];
    /* The part that tiles are made of, and the one that is the result: another one is whole on the device, and
     * end() writes it back. Without rows, tiles are products of a batch, and compute() copies them. */
    int over, out;
    int64_t rows, cols; /* of the part that tiles are made of; products: 1 and their number */
    char uplo;          /* its triangle, or 0: all of it */
    bool descending;    /* tiles from the last column on */
    enum tile_unit unit;
    bool scales; /* kernels need zeros: see kernel_zeros() */
    gpu_address zeros;
    enum gpu_status (*begin)(struct tiles *t); /* before the first tile; may be NULL */
    enum gpu_status (*compute)(struct tiles *t, struct tile *tile);
    enum gpu_status (*end)(struct tiles *t); /* after the last one; may be NULL */
};

/* Sizes, and device memory for the parts: GPU_NO_MEMORY where no sizes fit. Before anything of the call is on the
 * stream. */
enum gpu_status tiles_prepare(struct tiles *t);

/* All tiles. The status is that of gpu_run(). */
enum gpu_status tiles_compute(struct tiles *t);

/* Both. */
enum gpu_status tiles_run(struct tiles *t);

/* The part [row, row + rows) x [col, col + cols) of an operand, on the device: uploaded unless it is there. */
enum gpu_status tiles_load(struct tiles *t, int part, int64_t row, int64_t col, int64_t rows,
                           int64_t cols, struct gpu_tile *at);

/* A whole vector in memory of its own, back to the program's memory, all or nothing. */
enum gpu_status tiles_write_vector(struct tiles *t, int part);

/* Bytes that a part, or all of them, need at the present sizes. */
int64_t tiles_part_bytes(const struct tiles *t, int part);
int64_t tiles_bytes(const struct tiles *t);

/* How many columns (or rows) of `length` elements of `size` bytes make a panel that can be written back all or nothing:
 * at least one. */
int64_t tiles_panel(int64_t length, int64_t size);

/* Halves a size that is above `least`; false where it is not. */
static inline bool tiles_halve(int64_t *size, int64_t least)
{
    if (*size <= least)
        return false;
    *size = (*size + 1) / 2;
    return true;
}

/* What of `all` a size leaves at `first`. */
static inline int64_t tiles_length(int64_t size, int64_t first, int64_t all)
{
    return accel_min(size, all - first);
}

/* What begins at element (row, col) of something on the device. */
static inline struct gpu_tile tiles_within(const struct tiles *t, struct gpu_tile x, int64_t row,
                                           int64_t col)
{
    x.ptr += (gpu_address)((row + col * x.ld) *
                           (int64_t)accel_dtype_size(t->work->call->routine->dtype));
    return x;
}

#endif
