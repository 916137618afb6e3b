/*
 * The adjoint of a matrix in host memory. Knows nothing of devices.
 */
#ifndef ACCEL_ADJOINT_H
#define ACCEL_ADJOINT_H

#include "call/call.h"

/* Makes the adjoint of a matrix of rows x cols elements, of a real matrix the transpose: packed,
 * cols x rows, apart from it. The copy pool helps. */
void adjoint_of(char *to, const char *from, int64_t from_ld, int64_t rows, int64_t cols,
                enum accel_dtype dtype);

#endif
