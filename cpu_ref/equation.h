/*
 * The equation that a BLAS routine computes, in one form: out = sum of alpha op(X) op(Y) + beta
 * out. A vector is a matrix of one row. Pure functions, thread-safe.
 */
#ifndef ACCEL_CPU_REF_EQUATION_H
#define ACCEL_CPU_REF_EQUATION_H

#include "checks.h"
#include "view.h"
#include "call/operation.h"

/* op(x) */
struct factor {
    struct view view;
    char op; /* 'N', 'T', 'C', or 'R' */
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
    struct factor out, before; /* N; or T, as they are stored by rows */
    int64_t rows, cols;        /* of the output */
    char uplo;                 /* of the output; 0: all of it */
    bool symmetric;            /* or Hermitian: the output */
    bool real_diagonal;
};

/* Makes the equation of product `index` of a call (0 unless it is a batch). `layout` and `before`:
 * see judge.h. */
struct equation equation_of(const struct accel_call *call, enum accel_layout layout,
                            const void *before, int64_t index);

/* The operand that a BLAS routine writes. */
enum accel_matrix equation_output(const struct accel_routine *routine);

/* The factor that is no rectangle: the left one, or the right one. */
static inline bool equation_is_left(const struct equation *e)
{
    return e->product[0].x.view.structure != GENERAL;
}
static inline const struct factor *equation_matrix(const struct equation *e)
{
    return equation_is_left(e) ? &e->product[0].x : &e->product[0].y;
}

/* Element (row, col) of the output, or of what it was. */
static inline value output_element(const struct factor *x, int64_t row, int64_t col)
{
    return x->op == 'T' ? view_element(&x->view, col, row) : view_element(&x->view, row, col);
}

/* Element (row, col) of op(x). */
value factor_element(const struct factor *x, int64_t row, int64_t col);

/* Whether a solver's triangle has a zero on its diagonal: then no result is wrong. */
bool equation_is_singular(const struct equation *e);

/* Whether (row, col) is a zero outside a triangular matrix's triangle. */
bool factor_is_empty(const struct factor *x, int64_t row, int64_t col);

#endif
