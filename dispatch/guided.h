/*
 * A call of a library that can compute on the GPU by itself (ops/guide.h). Thread-safe.
 */
#ifndef ACCEL_GUIDED_H
#define ACCEL_GUIDED_H

#include "device.h"
#include "dispatch.h"

/* Has the operation guide the library, and reports what it has decided. Returns true if the
 * original has run, false if it is still to be called. */
bool guided_call(struct dispatch_device *device, struct accel_call *call,
                 const struct dispatch_caller *caller, const struct accel_settings *settings);

#endif
