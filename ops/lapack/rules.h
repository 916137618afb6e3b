/*
 * What LAPACK asks of a call beyond what the routine table says: the arguments that depend on each other, the least
 * lengths of workspace, and when there is nothing to do. After the documentation of each routine
 * (https://www.netlib.org/lapack/explore-html/). Pure functions.
 */
#ifndef ACCEL_LAPACK_RULES_H
#define ACCEL_LAPACK_RULES_H

#include "ops/call.h"

/* The argument that the original would complain of, or NULL. For calls whose flags, sizes and leading dimensions are
 * right. The lengths of workspace are those that LAPACK 3.11 asks for; of a workspace query they do not count. */
const char *lapack_fault(const struct accel_call *call);

/* The same without the range of eigenvalues, of which nothing is looked at. */
const char *lapack_shape_fault(const struct accel_call *call);

/* Whether LAPACK looks at a scalar, or at an INTEGER that is no size, of a call without such a fault. What stands behind
 * the argument need not be there. A value that only some matrices make LAPACK look at (rcond) counts. */
bool lapack_looks_at(const struct accel_call *call, const struct accel_arg *arg);

/* Whether one of the lengths of workspace is -1. */
bool lapack_is_query(const struct accel_call *call);

/* Whether the routine returns at once. */
bool lapack_is_empty(const struct accel_call *call);

/* Whether the GPU's libraries have it, with these flags. */
bool lapack_is_supported(const struct accel_call *call);

/* Bytes that the GPU needs at least: copies of all operands, and as much as A again for the iterations. */
double lapack_gpu_bytes(const struct accel_call *call);

/* Nominal figures of a family, for machines where nothing was measured: the shares of a large product's rate that its
 * operations reach, and what each step of the order costs the GPU, whose panels wait for each other. For what is no
 * LAPACK: 1, 1 and 0. */
struct lapack_nominal {
    double cpu_share, gpu_share, gpu_step_ms;
};
struct lapack_nominal lapack_nominal(enum accel_family family);

#endif
