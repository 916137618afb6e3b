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

/* A call of these sizes (m n k nrhs; those that the routine does not have are ignored) as programs mostly make it:
 * nothing transposed, all vectors wanted, alpha = beta = 1, tight leading dimensions. Its operands have shapes, but no
 * memory. */
void shape_typical(struct accel_call *call, const struct accel_routine *routine,
                   const int64_t size[ACCEL_DIMENSIONS]);

#endif
