/*
 * The calls that programs typically make of a routine, and what can be said of a routine's sizes.
 * Pure functions.
 */
#ifndef ACCEL_TYPICAL_H
#define ACCEL_TYPICAL_H

#include "op.h"

/* Returns whether calls of the routine, of any library, have this size: a number below
 * ACCEL_DIMENSIONS. */
bool accel_has_dimension(const struct accel_routine *routine, int dimension);

/* Returns whether the routine is of Level 2 and only reads its matrix. */
bool accel_reads_matrix(const struct accel_routine *routine);

/* Makes the call of these sizes (m n k nrhs; the routine ignores those that it does not have) that
 * programs mostly make: nothing transposed, all vectors wanted, alpha = beta = 1, no gaps in
 * matrices and vectors. Operands have shapes, but no memory. */
void shape_typical(struct accel_call *call, const struct accel_routine *routine,
                   const int64_t size[ACCEL_DIMENSIONS]);

/* The same with `order` for each size, and beta = 0. */
void shape_of_order(struct accel_call *call, const struct accel_routine *routine, int64_t order);

#endif
