/*
 * Matrix times vector, in double precision for each type, reading the matrix once: checks of large
 * results use it. Pure functions, thread-safe.
 *
 * Vectors are contiguous doubles, two for each element where the matrix is complex (the real part
 * first).
 */
#ifndef ACCEL_CPU_REF_APPLY_H
#define ACCEL_CPU_REF_APPLY_H

#include "equation.h"

/* A column-major matrix in memory; only its triangle uplo, unless the structure is GENERAL. */
struct view {
    const void *ptr;
    int64_t rows, cols, ld;
    enum accel_dtype dtype;
    enum structure structure;
    char uplo;
};

/* Doubles of an element: 1, or 2 of a complex type. */
static inline int64_t parts_of(enum accel_dtype dtype)
{
    return accel_is_complex(dtype) ? 2 : 1;
}

/* out := out + op(X) in. op: 'N', 'T', 'C', or 'R' (conjugated, not transposed). `structure` and
 * `uplo` say which stored elements count: of a symmetric or Hermitian matrix one triangle is read,
 * of a triangular one its triangle or trapezoid. */
void apply(const struct view *x, char op, const double *in, double *out);

/* out[i] := out[i] + the sum of the squares of row i of op(X); one double for each row. Returns the
 * sum over all rows: infinite or NaN if X has an infinity or a NaN. */
double add_squares(const struct view *x, char op, double *out);

/* Returns the square of the Frobenius norm. */
double sum_of_squares(const struct view *x);

#endif
