/*
 * LAPACK on a matrix that is larger than the device's memory, in panels (panels.h): factors a
 * matrix, or applies the factors of one to right-hand sides. Panels come from the program's memory,
 * or any other, and go to memory of our own, from where finished ones come up again. So the
 * program's matrices are as they were until all is well, and any failure leaves the call to the
 * original.
 *
 * All matrices are in host memory. Results are packed: their leading dimension is the number of
 * rows.
 */
#ifndef ACCEL_SOLVER_PANELS_H
#define ACCEL_SOLVER_PANELS_H

#include "panel_copies.h"

/* Runs a job, and returns when its results are in host memory. Frees the device memory and the
 * workspaces of the steps before, which must no longer be needed. A matrix that is singular or not
 * definite, or has numbers that are not finite, is GPU_UNSUPPORTED. */
void solver_panels(struct solver *s, struct panels_job *job);

/* Returns the device memory that a call takes besides panels and blocks, about: cuSOLVER says it
 * only when it is asked. */
int64_t solver_panels_reserve(const struct panels_call *call);

/* Returns the same without cuSOLVER's, once that has been asked. */
int64_t solver_panels_others(const struct panels_call *call);

/* Return host memory for a packed result, uninitialised or with zeros; on a failure note that, and
 * return NULL. Who does not give it to solver_return_packed() frees it by solver_packed_free(). */
void *solver_panels_memory(struct solver *s, int64_t rows, int64_t cols, int64_t size);
void *solver_panels_zeros(struct solver *s, int64_t rows, int64_t cols, int64_t size);

#endif
