/*
 * Ends the program, after a message. Thread-safe.
 */
#ifndef ACCEL_FATAL_H
#define ACCEL_FATAL_H

#include "device.h"
#include "dispatch.h"
#include "report/record.h"

/* Aborts: no right result can be had. The device has failed after it had overwritten a matrix of
 * the program, or while a matrix is only there; or CUDA could not be started, or there is no
 * memory, for a copy of such a matrix for the CPU. */
_Noreturn void fatal_wrong_result(const struct dispatch_device *device,
                                  const struct dispatch_caller *caller);

/* Exits: ACCEL_REQUIRE=gpu is set, and a call would run on the CPU. */
_Noreturn void fatal_cpu(const struct dispatch_device *device, const struct dispatch_caller *caller,
                         enum accel_why why);

/* Says what is wrong with the settings, once, and exits if a promise among them cannot be read.
 * Called at the first call of BLAS: shells, launchers and tools inherit the environment, and
 * promise nothing. */
void fatal_settings(const struct accel_settings *settings);

#endif
