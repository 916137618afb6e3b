/*
 * Which operands of a call have elements in common: then what comes out depends on the order in which the original computes.
 * Where it cannot be told, or would take long, they have. Pure functions.
 */
#ifndef ACCEL_OVERLAP_H
#define ACCEL_OVERLAP_H

#include "call.h"

/* Whether matrices of a batch, strides >= 0 apart, have elements in common. */
bool overlap_in_strides(const struct accel_span *x, int64_t batch);

/* Whether an operand that is written has elements in common with another one, or a matrix of a batch's array with the next. */
bool overlap_in_call(const struct accel_call *call);

#endif
