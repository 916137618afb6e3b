/*
 * Whether operands of a call have elements in common: then the result depends on the order in which
 * the original computes. True if it cannot be told, or only after a long search. Pure functions.
 */
#ifndef ACCEL_OVERLAP_H
#define ACCEL_OVERLAP_H

#include "call/call.h"

/* Returns whether matrices of a batch, strides >= 0 apart, have elements in common. */
bool overlap_in_strides(const struct accel_span *x, int64_t batch);

/* Returns whether an operand that the GPU writes has elements in common with another one, or with
 * itself in a batch. */
bool overlap_in_call(const struct accel_call *call);

#endif
