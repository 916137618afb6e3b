/*
 * What the operands of a measured call hold: pseudo-random numbers, the same each time, and whatever else makes the
 * call one that succeeds.
 */
#ifndef ACCEL_TOOL_FILL_H
#define ACCEL_TOOL_FILL_H

#include "ops/call.h"

/* Fills what the call reads of an operand. Leading dimensions are tight. */
void fill_operand(const struct accel_call *call, enum accel_matrix which);

#endif
