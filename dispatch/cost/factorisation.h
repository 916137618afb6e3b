/*
 * How a factorisation that is too large for one device is divided over several
 * (gpu/plan/panels_shared.h), and whether that is faster than on one of them, in panels. A pure
 * function.
 */
#ifndef ACCEL_FACTORISATION_H
#define ACCEL_FACTORISATION_H

#include "gpu/plan/panels_shared.h"
#include "split.h"

/* Returns whether several devices can share a valid call with operands in host memory if its matrix
 * is too large for one: Cholesky and LU, and the drivers that begin with them. */
bool factorisation_is_shared(const struct accel_call *call);

/* Does what split_make() does for such a call. A part has no region: members of the factorisation
 * are the parts, in their order. */
void factorisation_make(struct split *split, struct panels_shared *shared,
                        const struct accel_call *call, const struct split_device *device, int count,
                        double host_gbps);

#endif
