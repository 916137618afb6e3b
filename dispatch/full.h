/*
 * Whether the device is full: a call that found no memory there a moment ago, and others as large, are not tried again for a
 * second. Thread-safe.
 */
#ifndef ACCEL_FULL_H
#define ACCEL_FULL_H

#include "ops/call.h"

/* A call has found no device memory. */
void full_note(const struct accel_call *call);

bool full_for(const struct accel_call *call);

#endif
