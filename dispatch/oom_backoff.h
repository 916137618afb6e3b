/*
 * Whether a device is full: after a call has found no memory there, calls that are as large are not
 * tried for a second. Thread-safe.
 */
#ifndef ACCEL_OOM_BACKOFF_H
#define ACCEL_OOM_BACKOFF_H

#include "dispatch/cost/problem.h"

/* Of one device: until when calls of how many bytes are not tried. Zero at first. */
struct oom_backoff {
    _Atomic int64_t until_ms, least_bytes;
};

/* Notes that a call has found no device memory. */
void oom_backoff_note(struct oom_backoff *backoff, const struct accel_call *call);

/* Whether the device is full for this call. */
bool oom_backoff_for(const struct oom_backoff *backoff, struct problem *problem);

#endif
