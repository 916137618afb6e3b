/*
 * The shapes of a canonical call's operands, from its sizes and flags, and calls that are typical for a routine.
 * Pure functions.
 */
#ifndef ACCEL_SHAPE_H
#define ACCEL_SHAPE_H

#include "call.h"

/* Fills in rows, cols, access and dtype of each operand that the routine has; routine, sizes, flags and leading
 * dimensions (laswp) must be there. */
void shape_operands(struct accel_call *call);

/* The part of a BLAS call that computes rows [row, row + rows) and columns [col, col + cols) of its result, as a call of
 * its own; of a triangle, with the same rows and columns, the triangle there. The result's rows or columns must not
 * depend on others than these. */
struct accel_call shape_part(const struct accel_call *call, int64_t row, int64_t col, int64_t rows,
                             int64_t cols);

/* A call of these sizes (m n k nrhs; those that the routine does not have are ignored) as programs mostly make it:
 * nothing transposed, all vectors wanted, alpha = beta = 1, tight leading dimensions. Its operands have shapes, but no
 * memory. */
void shape_typical(struct accel_call *call, const struct accel_routine *routine,
                   const int64_t size[ACCEL_DIMENSIONS]);

#endif
