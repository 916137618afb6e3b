/*
 * The matrices of the checks, as they lie in memory, which the checks never write: of a call's
 * operand, of its contents before the call, of a part of one. A vector is a matrix of one row. Pure
 * functions.
 */
#ifndef ACCEL_CPU_REF_VIEW_H
#define ACCEL_CPU_REF_VIEW_H

#include "element.h"
#include "call/matrix.h"

enum structure { GENERAL, SYMMETRIC, HERMITIAN, TRIANGULAR, UNIT_TRIANGULAR };

/* Column-major; only its triangle uplo is stored, unless the structure is GENERAL. */
struct view {
    const void *ptr;
    /* ld: of a vector whose elements are in reverse order, below 0; 0: a triangle that is packed,
     * as triangle_place() says */
    int64_t rows, cols, ld;
    enum accel_dtype dtype;
    enum structure structure;
    char uplo;
};

/* Whether (row, col) is in a triangle, the diagonal included. */
static inline bool in_triangle(char uplo, int64_t row, int64_t col)
{
    return uplo == 'U' ? row <= col : row >= col;
}

/* Whether an operation exchanges rows and columns; the operation on the transposed matrix that does
 * the same. op: 'N', 'T', 'C', or 'R' (conjugated, not transposed). */
static inline bool op_is_across(char op)
{
    return op == 'T' || op == 'C';
}
static inline char op_transposed(char op)
{
    return op == 'N' ? 'T' : op == 'T' ? 'N' : op == 'C' ? 'R' : 'C';
}

/* A symmetric or Hermitian matrix. */
static inline bool view_is_mirrored(const struct view *x)
{
    return x->structure == SYMMETRIC || x->structure == HERMITIAN;
}

/* The number of an element, from the first one on, whatever the structure. */
static inline int64_t view_place(const struct view *x, int64_t row, int64_t col)
{
    return x->ld ? row + col * x->ld : triangle_place(x->uplo, x->rows, row, col);
}

/* That element. */
static inline value view_element(const struct view *x, int64_t row, int64_t col)
{
    return load_value(x->ptr, view_place(x, row, col), x->dtype);
}

/* The same memory with another structure. */
static inline struct view view_shaped(struct view x, enum structure structure, char uplo)
{
    x.structure = structure;
    x.uplo = uplo;
    return x;
}

/* rows x cols of it, from (row, col) on; the structure stays. Of a packed triangle, elements of one
 * column. */
static inline struct view view_part(const struct view *x, int64_t row, int64_t rows, int64_t col,
                                    int64_t cols)
{
    struct view y = *x;
    y.ptr = (const char *)x->ptr + view_place(x, row, col) * (int64_t)accel_dtype_size(x->dtype);
    y.ld = x->ld ? x->ld : accel_max(rows, 1);
    y.rows = rows;
    y.cols = cols;
    return y;
}

#endif
