/*
 * Tells the reports what is known of this process and its machine (report/banner.h).
 */
#ifndef ACCEL_STARTUP_BANNER_H
#define ACCEL_STARTUP_BANNER_H

#include "device.h"
#include "dispatch.h"

/* Call it once. The settings stay. */
void startup_banner_start(const struct accel_settings *settings);

/* Call it before a decision is reported: the first one tells of the process. library: that has the
 * call's original, with so many threads; NULL: it computes without one of the CPU's. */
void startup_banner_process(const struct dispatch_device *device,
                            const struct dispatch_library *library, int threads);

/* Tells that the device is ready, or why it will not be. Nothing if neither is so. */
void startup_banner_device(const struct dispatch_device *device);

/* No GPU is used: says so if there is a log. The reason stays. */
void startup_banner_no_gpu(const char *why);

#endif
