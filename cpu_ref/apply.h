/*
 * A matrix times a vector, in double precision whatever the matrix's type, at the cost of reading the matrix once: what
 * checks of large results are made of. Pure functions; any thread.
 *
 * Vectors are contiguous doubles, two for each element where the matrix is complex (the real part first).
 */
#ifndef ACCEL_CPU_REF_APPLY_H
#define ACCEL_CPU_REF_APPLY_H

#include "residual.h"

/* Doubles of an element: 1, or 2 of a complex type. */
static inline int64_t parts_of(enum accel_dtype dtype)
{
    return accel_is_complex(dtype) ? 2 : 1;
}

/* out := out + op(X) in. op: 'N', 'T', 'C', or 'R' (conjugated, not transposed). The matrix is what `structure` and `uplo` make
 * of what is stored: of a symmetric or Hermitian one a triangle is read, of a triangular one a triangle or trapezoid. */
void apply(const struct view *x, char op, const double *in, double *out);

/* out[i] := out[i] + the sum of the squares of row i of op(X); one double for each row. Returns their sum over all rows. Infinite
 * or NaN where X is. */
double add_squares(const struct view *x, char op, double *out);

/* The square of the Frobenius norm. */
double sum_of_squares(const struct view *x);

#endif
