/*
 * The adjoint of a matrix in host memory. Knows nothing of devices.
 */
#ifndef ACCEL_ADJOINT_H
#define ACCEL_ADJOINT_H

#include "call/matrix.h"

/* Makes the adjoint of a matrix, of a real one the transpose: packed, apart from it. The copy pool
 * helps. */
void adjoint_of(char *to, struct matrix from);

#endif
