/*
 * Where libaccel ends a program, and what it says before that. Thread-safe.
 */
#ifndef ACCEL_REFUSALS_H
#define ACCEL_REFUSALS_H

#include "device.h"
#include "dispatch.h"
#include "report/record.h"

/* No right result can be had: the device has failed after it had overwritten a matrix of the program, or with a matrix that
 * is nowhere else; or there is no memory in which the CPU could see such a one. */
_Noreturn void refuse_wrong_result(const struct dispatch_device *device,
                                   const struct dispatch_caller *caller);

/* ACCEL_REQUIRE=gpu, and a call would run on the CPU. */
_Noreturn void refuse_cpu(const struct dispatch_device *device,
                          const struct dispatch_caller *caller, enum accel_why why);

/* Says what is wrong with the settings, once, and ends the program where a setting that promises something cannot be read. At
 * the first call of BLAS: the environment is inherited by shells, launchers and tools, which nothing was promised of. */
void refuse_settings(const struct accel_settings *settings);

#endif
