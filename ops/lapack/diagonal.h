/*
 * What a few elements of a matrix in host memory tell of it before anything goes to the GPU: for
 * op->gpu->is_hopeless. They may take a matrix for hopeless that rounding saves: then the original
 * succeeds. Pure functions.
 */
#ifndef ACCEL_LAPACK_DIAGONAL_H
#define ACCEL_LAPACK_DIAGONAL_H

#include <stdbool.h>

#include "call/call.h"

/* Returns whether a triangular matrix has a zero on its diagonal. */
bool lapack_has_zero_diagonal(const struct accel_span *x);

/* Returns whether a symmetric or Hermitian matrix, of which a triangle counts, is not positive
 * definite by one of its diagonal elements, or by one and the next with that between them. */
bool lapack_is_indefinite(const struct accel_span *x, char uplo);

/* op->gpu->is_hopeless by A and its triangle: those that factor it, and those that have its factor.
 */
bool lapack_hopeless_by_definiteness(const struct accel_call *call);
bool lapack_hopeless_by_zeros(const struct accel_call *call);

#endif
