/*
 * The contents of a measured call's operands: pseudo-random numbers, the same each time, with which
 * the call succeeds.
 */
#ifndef ACCEL_TOOL_FILL_H
#define ACCEL_TOOL_FILL_H

#include "call/call.h"

/* Fills what the call reads of an operand, and the gaps between its columns. */
void fill_operand(const struct accel_call *call, enum accel_matrix which);

#endif
