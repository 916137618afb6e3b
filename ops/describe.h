/*
 * Describes a call of BLAS or LAPACK in the log. A pure function, except for the fields' own
 * effect.
 */
#ifndef ACCEL_BLAS_DESCRIBE_H
#define ACCEL_BLAS_DESCRIBE_H

#include "op.h"

/* Gives the CHARACTER arguments as the caller passed them, then the sizes, under the routine's own
 * names. */
void blas_describe(const struct accel_call *call, const struct accel_fields *fields);

/* Gives the log alpha and beta, as "0", "1" or "other". */
void blas_describe_scalars(const struct accel_call *call, const struct accel_fields *fields);

#endif
