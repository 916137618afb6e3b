/*
 * ACCEL_PRECISION: in which precision the GPU computes a call. Thread-safe.
 */
#ifndef ACCEL_DISPATCH_PRECISION_H
#define ACCEL_DISPATCH_PRECISION_H

#include "device.h"

/* Returns the precision that the user has asked for, native for routines that have no other. If the device is known to lack it,
 * says so, once, and returns native. */
enum gpu_precision precision_of(const struct accel_settings *settings,
                                const struct dispatch_device *device,
                                const struct accel_call *call);

#endif
