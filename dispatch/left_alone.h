/*
 * Routines of which the GPU is given no more calls. Thread-safe.
 */
#ifndef ACCEL_LEFT_ALONE_H
#define ACCEL_LEFT_ALONE_H

#include "gpu/call.h"

enum left_alone {
    LEFT_WRONG,  /* a result was wrong */
    LEFT_FAILED, /* a library failed at it */
    LEFT_REASONS
};

/* Returns whether the routine was not left alone before for this reason. */
bool left_alone_add(const struct accel_routine *routine, enum left_alone reason);
bool left_alone_has(const struct accel_routine *routine, enum left_alone reason);

#endif
