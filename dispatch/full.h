/*
 * Whether a device is full: after a call has found no memory there, calls that are as large are not
 * tried for a second. Thread-safe.
 */
#ifndef ACCEL_FULL_H
#define ACCEL_FULL_H

#include "dispatch/cost/problem.h"

/* Of one device: until when calls of how many bytes are not tried. Zero at first. */
struct full {
    _Atomic int64_t until_ms, least_bytes;
};

/* Notes that a call has found no device memory. */
void full_note(struct full *full, const struct accel_call *call);

/* Whether the device is full for this call. */
bool full_for(const struct full *full, struct problem *problem);

#endif
