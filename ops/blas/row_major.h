/*
 * CBLAS in row-major order: the same call in column-major order, and back. A pure function.
 */
#ifndef ACCEL_ROW_MAJOR_H
#define ACCEL_ROW_MAJOR_H

#include "ops/call.h"

/* Exchanges sizes, flags and operands; except for a real C, which stays T, and for scalars: her2k's alpha is conjugated by
 * who reads it. */
void row_major_exchange(struct accel_call *call);

#endif
