/*
 * The executor of Level 2, whose matrix comes in strips of columns.
 *
 * An operation says which of its operands come in parts, how large the parts may be, and which
 * kernels compute one strip. The executor chooses a size that fits the memory. Then for each strip
 * of the result, in order, it puts uploads, kernels and the download on the stream. After a failure
 * the finished strips stay, and the program's original computes the rest.
 */
#ifndef ACCEL_LEVEL2_H
#define ACCEL_LEVEL2_H

#include "gpu/device/kernels.h"
#include "gpu/cache/prefetch.h"

#define LEVEL2_PARTS 5 /* operands, and memory for the operation's own use */

/* An operand that comes to the device one part at a time, or is used in place. */
struct level2_part {
    const struct accel_span *x; /* NULL: memory alone, or unused */
    bool aside;                 /* is copied, though kernels can use X in place */
    const int64_t *rows, *cols; /* of the largest part */
    int64_t bytes;              /* if rows is NULL: for each of *cols, or in all if cols is NULL */
    /* The executor's: */
    gpu_address memory;
    struct cached_operand cached;
};

static inline struct level2_part level2_part_of(const struct accel_span *x, const int64_t *rows,
                                                const int64_t *cols)
{
    return (struct level2_part){.x = x, .rows = rows, .cols = cols};
}

/* A strip of the result on the device. */
struct level2_strip {
    int64_t row, col, rows, cols;
    bool first; /* of all strips */
    struct dmat at;
    /* Of a triangular result: the triangle on the diagonal, and the rectangle of the `rest` other
     * rows, which begin at row `beside`. */
    int64_t beside, rest;
    struct dmat triangle, rectangle;
    int64_t done_cols; /* written back so far; of an upper triangle the last ones */
};

/* The first member of each operation's structure. Must not be copied once its parts point to its
 * size. */
struct level2 {
    struct gpu_work *work;
    int64_t most, size; /* columns that come at once: at most; chosen by the executor */
    struct level2_part part[LEVEL2_PARTS];
    /* The part that strips are made of, and the one that is the result. If they differ, the result
     * is whole on the device, and end() writes it back. */
    int over, out;
    int64_t rows, cols;                         /* of part[over] */
    char uplo;                                  /* the triangle of part[over], or 0: all of it */
    bool descending;                            /* strips from the last column on */
    enum gpu_status (*begin)(struct level2 *t); /* before the first strip; may be NULL */
    enum gpu_status (*compute)(struct level2 *t, struct level2_strip *strip);
    enum gpu_status (*end)(struct level2 *t); /* after the last one; may be NULL */
};

/* Chooses a size, takes device memory for the parts, and computes all strips. Call it before
 * anything of the call is on the stream. Returns the status for gpu_run(): GPU_NO_MEMORY if no size
 * fits. */
enum gpu_status level2_run(struct level2 *t);

/* Uploads the part [row, row + rows) x [col, col + cols) of an operand, unless it is in place or
 * cached; *at says where it is. */
enum gpu_status level2_load(struct level2 *t, int part, int64_t row, int64_t col, int64_t rows,
                            int64_t cols, struct dmat *at);

/* Copies a whole vector back from the part's memory to the program's, all or nothing. */
enum gpu_status level2_write_vector(struct level2 *t, int part);

/* Returns how many columns of `length` elements of `size` bytes make a panel that can be written
 * back all or nothing: at least one. */
int64_t level2_panel(int64_t length, int64_t size);

#endif
