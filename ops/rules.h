/*
 * The rules of the reference BLAS and LAPACK for a call's arguments: which are wrong, and which are looked at. Pure functions.
 */
#ifndef ACCEL_RULES_H
#define ACCEL_RULES_H

#include "call.h"

/* What is wrong with a call's arguments by the rules of the reference BLAS, or NULL. */
const char *accel_call_fault(const struct accel_call *call);

/* The same of flags, sizes and what tells where elements are, without scalars, ranges and workspaces. */
const char *accel_call_shape_fault(const struct accel_call *call);

/* Whether a routine looks at a scalar, or at a bound of a range, of such a call: only where its other arguments are right
 * and there is something to compute. Of the call, all that stands before it must be there, sizes and shapes in any case. */
bool accel_call_looks_at(const struct accel_call *call, const struct accel_arg *arg);

/* Whether nothing at all is to be done: no element of an operand is read or written. */
bool accel_call_touches_nothing(const struct accel_call *call);

/* Whether nothing is to be computed beyond scaling C: a size is 0, or alpha is. */
bool accel_call_empty(const struct accel_call *call);

/* Whether the GPU's libraries have it, with these flags and sizes. */
bool accel_call_is_supported(const struct accel_call *call);

#endif
