/*
 * The tile driver: one loop for all operations whose result comes in tiles.
 *
 * An operation says which of its operands come in parts, how large the parts may be, how to make them smaller, and which
 * kernels compute one tile. The driver chooses sizes that fit the memory. Then for each tile of the result, in order, it puts
 * uploads, kernels and the download on the stream. After a failure the finished tiles stay, and the program's original
 * computes the rest.
 */
#ifndef ACCEL_TILES_H
#define ACCEL_TILES_H

#include "kernels.h"
#include "resident.h"

#define TILE_PARTS 5 /* operands, and memory for the operation's own use */
#define TILE_SIZES 3 /* sizes that can shrink */

/* An operand that comes to the device one part at a time, or is used in place. Rows and columns are those of op(X). */
struct tile_part {
    const struct accel_span *x; /* NULL: memory alone, or unused */
    bool across;                /* op(X) is X transposed */
    bool aside;                 /* is copied, though kernels can use X in place */
    const int64_t *rows, *cols; /* of the largest part */
    int64_t bytes;              /* if rows is NULL: for each of *cols, or in all if cols is NULL */
    /* The driver's: */
    gpu_address memory;
    struct resident resident;
    int64_t row, col; /* the first element of the part that `memory` holds; -1: none */
};

static inline struct tile_part tile_part_of(const struct accel_span *x, bool across,
                                            const int64_t *rows, const int64_t *cols)
{
    return (struct tile_part){.x = x, .across = across, .rows = rows, .cols = cols};
}

/* A tile of the result on the device. */
struct tile {
    int64_t row, col, rows, cols;
    bool first; /* of all tiles */
    struct gpu_tile at;
    /* Of a triangular result: the triangle on the diagonal, and the rectangle of the `rest` other rows, which begin at row
     * `beside`. */
    int64_t beside, rest;
    struct gpu_tile triangle, rectangle;
    /* Written back so far: whole columns (of an upper triangle the last ones), and rows of the next one. */
    int64_t done_cols, done_rows;
};

/* The first member of each operation's structure. Must not be copied once its parts point to its sizes. */
struct tiles {
    struct gpu_work *work;
    int64_t most[TILE_SIZES], size[TILE_SIZES];
    /* Makes a size smaller; returns false if all are at their least. */
    bool (*shrink)(struct tiles *t);
    struct tile_part part[TILE_PARTS];
    /* The part that tiles are made of, and the one that is the result. If they differ, the result is whole on the device, and
     * end() writes it back. If part[over] has no rows, tiles are products of a batch, and compute() copies them. */
    int over, out;
    int64_t rows, cols; /* of part[over]; products: 1 and their number */
    char uplo;          /* the triangle of part[over], or 0: all of it */
    bool descending;    /* tiles from the last column on */
    bool
        columns; /* are written back all or nothing, because the original needs its input whole to compute one again */
    bool scales; /* kernels need `zeros`: see kernel_zeros() */
    gpu_address zeros;
    enum gpu_status (*begin)(struct tiles *t); /* before the first tile; may be NULL */
    enum gpu_status (*compute)(struct tiles *t, struct tile *tile);
    enum gpu_status (*end)(struct tiles *t); /* after the last one; may be NULL */
};

/* Chooses sizes and takes device memory for the parts. Returns GPU_NO_MEMORY if no sizes fit. Call it before anything of the
 * call is on the stream. */
enum gpu_status tiles_prepare(struct tiles *t);

/* Computes all tiles. Returns the status for gpu_run(). */
enum gpu_status tiles_compute(struct tiles *t);

/* Does both. */
enum gpu_status tiles_run(struct tiles *t);

/* Uploads the part [row, row + rows) x [col, col + cols) of an operand, unless it is on the device; *at says where it is. */
enum gpu_status tiles_load(struct tiles *t, int part, int64_t row, int64_t col, int64_t rows,
                           int64_t cols, struct gpu_tile *at);

/* Copies a whole vector back from the part's memory to the program's, all or nothing. */
enum gpu_status tiles_write_vector(struct tiles *t, int part);

/* Return the bytes of device memory that a part, or all of them, need at the present sizes. */
int64_t tiles_part_bytes(const struct tiles *t, int part);
int64_t tiles_bytes(const struct tiles *t);

/* Returns how many columns of `length` elements of `size` bytes make a panel that can be written back all or nothing:
 * at least one. */
int64_t tiles_panel(int64_t length, int64_t size);

/* Halves a size that is above `least`; else returns false. */
static inline bool tiles_halve(int64_t *size, int64_t least)
{
    if (*size <= least)
        return false;
    *size = (*size + 1) / 2;
    return true;
}

/* Returns the length of the piece that begins at `first`: `size`, or the rest of `all`. */
static inline int64_t tiles_length(int64_t size, int64_t first, int64_t all)
{
    return accel_min(size, all - first);
}

#endif
