/*
 * Whether a device is full: a call that found no memory there a moment ago, and others as large, are not tried again for a
 * second. Thread-safe.
 */
#ifndef ACCEL_FULL_H
#define ACCEL_FULL_H

#include "ops/call.h"

/* The last such call on a device: until when others as large are not tried. Zero at first. */
struct full {
    _Atomic int64_t until_ms, least_bytes;
};

/* A call has found no device memory. */
void full_note(struct full *full, const struct accel_call *call);

bool full_for(const struct full *full, const struct accel_call *call);

#endif
