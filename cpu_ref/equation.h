/*
 * The equation that a BLAS routine computes, in one form: out = sum of alpha op(X) op(Y) + beta
 * out. A vector is a matrix of one row. Pure functions, thread-safe.
 */
#ifndef ACCEL_CPU_REF_EQUATION_H
#define ACCEL_CPU_REF_EQUATION_H

#include "checks.h"
#include "element.h"
#include "call/operation.h"

/* A matrix in memory: element (row, col) is ptr[row * row_step + col * col_step]. */
struct stored {
    const void *ptr;
    int64_t row_step, col_step;
    enum accel_dtype dtype;
};

enum structure { GENERAL, SYMMETRIC, HERMITIAN, TRIANGULAR, UNIT_TRIANGULAR };

/* op(x). Unless x is general, only its triangle uplo is stored. */
struct factor {
    struct stored stored;
    char op; /* 'N', 'T', 'C', or 'R' */
    enum structure structure;
    char uplo;
};

struct product {
    value alpha;
    struct factor x, y;
};

/* result = sum of the products + beta before; a solver has 0 in place of the result. */
struct equation {
    struct product product[2];
    int products;
    int64_t inner; /* of the products */
    value beta;
    bool solve;
    struct stored out, before;
    int64_t rows, cols; /* of the output */
    char uplo;          /* of the output; 0: all of it */
    bool symmetric;     /* or Hermitian: the output */
    bool real_diagonal;
};

/* Makes the equation of product `index` of a call (0 unless it is a batch). `layout` and `before`:
 * see judge.h. */
struct equation equation_of(const struct accel_call *call, enum accel_layout layout,
                            const void *before, int64_t index);

/* The operand that a BLAS routine writes. */
enum accel_matrix equation_output(const struct accel_routine *routine);

/* Whether (row, col) is in a triangle, the diagonal included. */
static inline bool in_triangle(char uplo, int64_t row, int64_t col)
{
    return uplo == 'U' ? row <= col : row >= col;
}

/* Returns the element at this place in memory. */
static inline value stored_element(const struct stored *x, int64_t row, int64_t col)
{
    return load_element(x->ptr, row * x->row_step + col * x->col_step, x->dtype);
}

/* Element (row, col) of op(x). */
value factor_element(const struct factor *x, int64_t row, int64_t col);

/* Whether a solver's triangle has a zero on its diagonal: then no result is wrong. */
bool equation_is_singular(const struct equation *e);

/* Whether (row, col) is a zero outside a triangular matrix's triangle. */
bool factor_is_empty(const struct factor *x, int64_t row, int64_t col);

#endif
