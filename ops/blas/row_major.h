/*
 * Turns a CBLAS call in row-major order into column-major order, and back. A pure function.
 */
#ifndef ACCEL_ROW_MAJOR_H
#define ACCEL_ROW_MAJOR_H

#include "call/call.h"

/* Exchanges sizes, flags and operands. Twice is the identity, except that C becomes T in real
 * types. Leaves scalars: parse.c conjugates the alpha of her2k. */
void row_major_exchange(struct accel_call *call);

#endif
