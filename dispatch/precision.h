/*
 * ACCEL_PRECISION: in which precision the GPU computes a call. Thread-safe.
 */
#ifndef ACCEL_DISPATCH_PRECISION_H
#define ACCEL_DISPATCH_PRECISION_H

#include "device.h"

/* Returns the precision that the user has asked for. */
enum gpu_precision precision_asked(const struct accel_settings *settings,
                                   const struct accel_routine *routine);

/* Returns the one in which the device is to compute the call: the one that the user has asked for,
 * or native if the device, or any, does not compute such calls in it. If the device is known to
 * lack it altogether, says so, once. */
enum gpu_precision precision_of(const struct accel_settings *settings,
                                const struct dispatch_device *device,
                                const struct accel_call *call);

/* Returns a precision as accurate as native in which the device computes such calls faster, by its
 * calibration or its attributes, and which the user has not asked for. GPU_NATIVE: none, or the
 * device has not been started. */
enum gpu_precision precision_offered(const struct accel_settings *settings,
                                     const struct dispatch_device *device,
                                     const struct accel_call *call);

#endif
