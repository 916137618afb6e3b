/*
 * ACCEL_VERIFY: results of the GPU are checked on the CPU (cpu_ref/verify.h), and what is wrong is answered. Thread-safe.
 */
#ifndef ACCEL_VERIFY_H
#define ACCEL_VERIFY_H

#include "gpu/gpu.h"
#include "settings.h"

/* One call: what it overwrites, as it was. */
struct verification {
    bool on;
    struct gpu_device *gpu;
    void *before[ACCEL_SPANS]; /* packed; NULL where nothing is read there */
};

/* Before the GPU has the call: saves its inputs, if it is among those that are to be verified. Without memory for that, the call
 * is not verified, which is said once. */
void verify_begin(struct verification *verification, struct gpu_device *gpu,
                  const struct accel_call *call, const struct accel_settings *settings);

/* After it: the error over what rounding may make it, at most 10^9; above 1 the result is wrong. Less than 0: not judged. */
double verify_judge(const struct verification *verification, const struct accel_call *call);

/* Puts back what the call has overwritten. False where that fails: it is in device memory. */
bool verify_restore(const struct verification *verification, const struct accel_call *call);

/* Frees what was saved. */
void verify_end(struct verification *verification);

#endif
