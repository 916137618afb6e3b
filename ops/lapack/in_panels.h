/*
 * LAPACK's calls that can go through the device in panels (gpu/plan/panels.h): factorisations, and
 * what is made of their factors, of a matrix that is larger than its memory; factorisations of one
 * that fits. Pure functions, except the steps.
 */
#ifndef ACCEL_LAPACK_IN_PANELS_H
#define ACCEL_LAPACK_IN_PANELS_H

#include "gpu/plan/panels.h"
#include "ops/op.h"

/* Returns whether a call may go in panels: cheap. */
bool lapack_has_panels(const struct accel_call *call);

/* Returns whether such a call factors a matrix. */
bool lapack_factors(const struct accel_call *call);

/* Returns whether a call whose matrix is larger than the memory can go through it in panels. */
bool lapack_fits_in_panels(const struct accel_call *call, int64_t memory_bytes);

/* Returns the milliseconds that a call takes in panels, by simulation; negative: it does not go in
 * panels. And a time that no schedule of it is below. */
double lapack_panels_ms(const struct accel_call *call, const struct schedule_rates *rates,
                        int64_t memory_bytes);
double lapack_panels_floor_ms(const struct accel_call *call, const struct schedule_rates *rates);

/* Returns whether the call has no use for panels, by which a matrix is factored while it comes up:
 * it fits, and is there. there: operands that need no copy, as bits 1 << number of the span. */
bool lapack_is_kept_whole(const struct accel_call *call, unsigned there, int64_t memory_bytes);

/* Describes the factorisation of the operand A. */
struct panels_call lapack_factoring(const struct accel_call *call, enum panels_kind kind);

/* For the operations: each says which jobs it consists of, and runs them. */
extern const struct lapack_panels lapack_potrf_in_panels, lapack_potrs_in_panels,
    lapack_getrf_in_panels, lapack_getrs_in_panels, lapack_trtrs_in_panels, lapack_geqrf_in_panels,
    lapack_orgqr_in_panels, lapack_ormqr_in_panels, lapack_gels_in_panels, lapack_trtri_in_panels,
    lapack_potri_in_panels, lapack_lauum_in_panels, lapack_getri_in_panels;

#endif
