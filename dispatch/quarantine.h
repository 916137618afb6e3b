/*
 * Leaves the device, all of LAPACK, or a routine alone after a failure. Thread-safe.
 */
#ifndef ACCEL_QUARANTINE_H
#define ACCEL_QUARANTINE_H

#include "gpu/device/gpu.h"

enum quarantine_reason {
    QUARANTINE_WRONG,  /* a result was wrong */
    QUARANTINE_FAILED, /* a library failed at it */
    QUARANTINE_REASONS
};

/* The routines that one device is kept from, a bit each. Zero at first. */
enum { QUARANTINE_WORDS = 16 };
struct quarantine {
    _Atomic uint64_t bits[QUARANTINE_REASONS][QUARANTINE_WORDS];
};

/* Leaves a routine alone. Returns whether that is new. */
bool quarantine_add(struct quarantine *quarantine, const struct accel_routine *routine,
                    enum quarantine_reason reason);
bool quarantine_has(const struct quarantine *quarantine, const struct accel_routine *routine,
                    enum quarantine_reason reason);

/* Call it after a call has run on the device, with its status. Notes that memory was short; after a
 * failure (GPU_ERROR, GPU_FINISHED_ELSE) leaves host->blame alone from here on, and says so
 * once. */
struct dispatch_device;
void quarantine_by_status(struct dispatch_device *device, const struct accel_call *call,
                          const struct gpu_host *host, enum gpu_status status);

#endif
