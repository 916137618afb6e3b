/*
 * Factors a matrix that fits on the device. Where the simulation says that it pays (panels.h),
 * panels of it come up while those before them are factored; else it comes up as a whole, and
 * cuSOLVER factors it.
 */
#ifndef ACCEL_SOLVER_IN_CORE_H
#define ACCEL_SOLVER_IN_CORE_H

#include "gpu/plan/panels.h"
#include "solver.h"

/* Uploads an operand, and factors it as `call` says, which is of that operand. list: gets the
 * pivots of LU (ACCEL_INT64), or the scalars of QR's reflectors; of Cholesky there is none. Returns
 * the factors. A matrix that is singular or not definite, or has numbers that are not finite, is
 * GPU_UNSUPPORTED. */
struct array solver_factor(struct solver *s, const struct panels_call *call,
                           const struct accel_span *x, struct array list);

#endif
