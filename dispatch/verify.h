/*
 * ACCEL_VERIFY: checks results of the GPU on the CPU (cpu_ref/verify.h), and can undo a call.
 * Thread-safe.
 */
#ifndef ACCEL_VERIFY_H
#define ACCEL_VERIFY_H

#include "gpu/device/gpu.h"
#include "dispatch/settings/settings.h"

/* The verification of one call, with the operands that it overwrites as they were before. */
struct verification {
    bool on;
    struct gpu_device *gpu;
    enum gpu_precision precision; /* that the user has asked for */
    void *before[ACCEL_SPANS]; /* packed; NULL: the call does not both read and write the operand */
};

/* Call it before the GPU runs the call: if the call is to be verified, saves the inputs that it
 * overwrites. Without memory for that, it is not verified, which is said once. */
void verify_begin(struct verification *verification, struct gpu_device *gpu,
                  const struct accel_call *call, const struct accel_settings *settings);

/* Returns the error over the bound for rounding, at most 10^9: above 1 the result is wrong.
 * Negative: not judged. */
double verify_judge(const struct verification *verification, const struct accel_call *call);

/* Restores the operands that the call has overwritten. False if the device fails. */
bool verify_restore(const struct verification *verification, const struct accel_call *call);

/* Frees the saved operands. */
void verify_end(struct verification *verification);

/* Returns whether the results of a call of LAPACK are within the bounds of rounding
 * (cpu_ref/verify.h), which are in other memory than its operands: `done` is the call with those.
 * False also if they cannot be judged. All is in host memory. */
bool verify_apart(struct gpu_device *gpu, const struct accel_call *call,
                  const struct accel_call *done);

#endif
