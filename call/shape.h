/*
 * Derives from a call's arguments its sizes, the shapes of its spans, and which of them are read.
 * Pure functions.
 */
#ifndef ACCEL_SHAPE_H
#define ACCEL_SHAPE_H

#include "call.h"

/* Returns a size of a call of BLAS or LAPACK, or one derived from its sizes and flags: enum
 * accel_size. */
int64_t accel_call_size(const struct accel_call *call, int which);

/* Returns the ACCEL_DIMENSIONS sizes that the cost depends on, in BLAS and LAPACK m, n, k and nrhs.
 * 0: no such size. */
const int64_t *accel_sizes(const struct accel_call *call);

/* Return whether the routine, of BLAS or LAPACK, has this size, this scalar. */
bool accel_has_size(const struct accel_routine *routine, enum accel_size size);
bool accel_has_scalar(const struct accel_routine *routine, enum accel_scalar scalar);

/* Returns whether a size of the call, other than `except`, is 0. ACCEL_SIZES: no exception. */
bool accel_has_zero_size(const struct accel_call *call, enum accel_size except);

/* Returns whether alpha is 0: then the call reads no input, and only scales its output by beta. */
bool accel_adds_nothing(const struct accel_call *call);

/* Returns whether a span's old contents enter the result: an input's do, an output's unless beta is
 * 0. */
bool accel_is_read(const struct accel_call *call, const struct accel_span *x);

/* Returns the call with operands that its kernels read where they are, in host memory. operands:
 * bits 1 << number of the span. */
struct accel_call accel_placed_call(const struct accel_call *call, unsigned operands);

/* Fills in rows, cols, access, dtype and triangle of each operand. The call must have its routine,
 * sizes and flags; laswp also its leading dimension. */
void shape_operands(struct accel_call *call);

/* Returns the part of a BLAS call that computes rows [row, row + rows) and columns [col, col +
 * cols) of its result, as a call of its own; if the result is a triangle, rows and columns are the
 * same. Other rows and columns must not affect these. */
struct accel_call shape_part(const struct accel_call *call, int64_t row, int64_t col, int64_t rows,
                             int64_t cols);

/* Returns the number of steps that wait for each other: the smallest size; in LAPACK, the columns
 * that it eliminates. */
double shape_steps(const struct accel_call *call);

/* Returns whether all sizes are small, by the question of the entries' gate, which does not see k
 * of a grouped batch. */
bool shape_is_small(const struct accel_call *call, bool (*is_small)(int64_t size));

/* Return how many elements the diagonal of a matrix has, and where its element i is, counted in
 * elements of memory from the first. A packed triangle is a matrix, too. ld: of a
 * matrix that is not packed; it may be a copy. */
int64_t shape_diagonal(const struct accel_call *call, const struct accel_span *x);
int64_t shape_diagonal_place(const struct accel_call *call, const struct accel_span *x, int64_t ld,
                             int64_t i);

#endif
