/*
 * Matrix times vector, in double precision for each type, reading the matrix once: checks of large
 * results use it. Pure functions, thread-safe.
 *
 * Vectors are contiguous doubles, two for each element where the matrix is complex (the real part
 * first).
 */
#ifndef ACCEL_CPU_REF_APPLY_H
#define ACCEL_CPU_REF_APPLY_H

#include "view.h"

/* out := out + op(X) in. `structure` and `uplo` say which stored elements count: of a symmetric or
 * Hermitian matrix one triangle is read, of a triangular one its triangle or trapezoid. */
void apply(const struct view *x, char op, const double *in, double *out);

/* out[i] := out[i] + the sum of the squares of row i of op(X); one double for each row. Returns the
 * sum over all rows: infinite or NaN if X has an infinity or a NaN. */
double add_squares(const struct view *x, char op, double *out);

/* Returns the square of the Frobenius norm. */
double sum_of_squares(const struct view *x);

#endif
