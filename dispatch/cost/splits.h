/*
 * Splits of calls like those before: what has been found for a call, its devices' rates and their
 * memory is kept, because to look for it takes as long as a short call. Thread-safe.
 */
#ifndef ACCEL_SPLITS_H
#define ACCEL_SPLITS_H

#include "split.h"

/* As split_make(), and with the same result. */
void splits_make(struct split *split, const struct accel_call *call,
                 const struct split_device *device, int count, double host_gbps);

#endif
