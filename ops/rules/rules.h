/*
 * The rules of the reference BLAS and LAPACK for arguments: which are wrong, and which the routine
 * reads. Pure functions.
 */
#ifndef ACCEL_RULES_H
#define ACCEL_RULES_H

#include "ops/op.h"

/* Returns the name of an argument that the reference BLAS or LAPACK complains of, or NULL. */
const char *accel_call_fault(const struct accel_call *call);

/* The same without scalars and ranges of eigenvalues. */
const char *accel_call_shape_fault(const struct accel_call *call);

/* Returns whether the routine reads a scalar, or a bound of a range, of a call whose other
 * arguments are right: only if there is something to compute. The call must have all shapes, and
 * the values of the arguments before `arg`. */
bool accel_call_looks_at(const struct accel_call *call, const struct accel_arg *arg);

/* Returns whether the call reads and writes no element of any operand. */
bool accel_call_touches_nothing(const struct accel_call *call);

/* Returns whether the call at most scales C: a size or alpha is 0. */
bool accel_call_empty(const struct accel_call *call);

/* Turns what the original answers to a workspace query into the lengths that it leaves in its
 * workspaces on success: see op->rules->left. 0 stays: it has not answered. */
void accel_call_lengths_left(const struct accel_call *call, struct accel_lengths *lengths);

/* Returns whether the GPU's libraries can do it with these flags and sizes. */
bool accel_call_is_supported(const struct accel_call *call);

#endif
