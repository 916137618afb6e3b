/*
 * LAPACK's calls whose matrix is larger than the device's memory, and can go through it in panels (gpu/panels.h): factorisations, and
 * solutions by their factors. Pure functions, except the steps.
 */
#ifndef ACCEL_LAPACK_IN_PANELS_H
#define ACCEL_LAPACK_IN_PANELS_H

#include "ops/op.h"

/* Returns the bytes that come up to a device of so much memory, rather too many; negative: the call cannot go through it in panels. */
double lapack_bytes_in_panels(const struct accel_call *call, int64_t memory_bytes);

/* For the operations: each says which jobs it consists of, and runs them. */
extern const struct lapack_panels lapack_potrf_in_panels, lapack_potrs_in_panels,
    lapack_getrf_in_panels, lapack_getrs_in_panels, lapack_geqrf_in_panels, lapack_gels_in_panels,
    lapack_trtrs_in_panels;

#endif
