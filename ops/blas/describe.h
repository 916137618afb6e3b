/*
 * What the log says of a call of BLAS or LAPACK.
 */
#ifndef ACCEL_BLAS_DESCRIBE_H
#define ACCEL_BLAS_DESCRIBE_H

#include "ops/op.h"

/* The CHARACTER arguments as the caller gave them, then the sizes, under the routine's own names. */
void blas_describe(const struct accel_call *call, const struct accel_fields *fields);

#endif
