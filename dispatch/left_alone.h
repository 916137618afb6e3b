/*
 * What is left alone after a failure: the device, all of LAPACK, or a routine. Thread-safe.
 */
#ifndef ACCEL_LEFT_ALONE_H
#define ACCEL_LEFT_ALONE_H

#include "gpu/gpu.h"

enum left_alone {
    LEFT_WRONG,  /* a result was wrong */
    LEFT_FAILED, /* a library failed at it */
    LEFT_REASONS
};

/* Leaves a routine alone. Returns whether that is new. */
bool left_alone_add(const struct accel_routine *routine, enum left_alone reason);
bool left_alone_has(const struct accel_routine *routine, enum left_alone reason);

/* A call of the routine has failed on the GPU (GPU_ERROR, GPU_FINISHED_ELSE): what is to blame is left alone from here on, and that
 * is said once. */
void left_alone_after(const struct accel_routine *routine, const struct gpu_host *host);

#endif
