/*
 * What follows from a call's arguments: its sizes, which of its spans are read, their shapes; calls that are typical for a
 * routine. Pure functions.
 */
#ifndef ACCEL_SHAPE_H
#define ACCEL_SHAPE_H

#include "call.h"

/* A size of a call of BLAS or LAPACK, or one that follows from its sizes and flags. */
int64_t accel_call_size(const struct accel_call *call, int which);

/* Whether the routine takes this size, this scalar. */
bool accel_has_size(const struct accel_routine *routine, enum accel_size size);
bool accel_has_scalar(const struct accel_routine *routine, enum accel_scalar scalar);

/* Whether alpha is 0: then inputs are not to be read, and the output keeps beta times its contents alone. */
bool accel_adds_nothing(const struct accel_call *call);

/* Whether a span's old contents enter the result: an input's do, an output's unless beta is 0. */
bool accel_is_read(const struct accel_call *call, const struct accel_span *x);

/* Fills in rows, cols, access and dtype of each operand that the routine has; routine, sizes, flags and leading
 * dimensions (laswp) must be there. */
void shape_operands(struct accel_call *call);

/* The part of a BLAS call that computes rows [row, row + rows) and columns [col, col + cols) of its result, as a call of
 * its own; of a triangle, with the same rows and columns, the triangle there. The result's rows or columns must not
 * depend on others than these. */
struct accel_call shape_part(const struct accel_call *call, int64_t row, int64_t col, int64_t rows,
                             int64_t cols);

/* A call of these sizes (m n k nrhs; those that the routine does not have are ignored) as programs mostly make it:
 * nothing transposed, all vectors wanted, alpha = beta = 1, matrices and vectors without gaps. Its operands have shapes, but no
 * memory. */
void shape_typical(struct accel_call *call, const struct accel_routine *routine,
                   const int64_t size[ACCEL_DIMENSIONS]);

/* The same of one order, and what comes out overwrites what was there. */
void shape_of_order(struct accel_call *call, const struct accel_routine *routine, int64_t order);

/* Steps that follow one another: the smallest size; of LAPACK, how many columns are eliminated. */
double shape_steps(const struct accel_call *call);

/* Whether all sizes of a call are small, as the entries' gate asks: of arrays it does not see k. */
bool shape_is_small(const struct accel_call *call, bool (*is_small)(int64_t size));

#endif
