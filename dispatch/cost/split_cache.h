/*
 * The split cache (LRU): what has been found for a call, its devices' rates and their memory,
 * because to look for it takes as long as a short call. Thread-safe.
 */
#ifndef ACCEL_SPLIT_CACHE_H
#define ACCEL_SPLIT_CACHE_H

#include "split.h"

/* As split_make(), and with the same result. */
void split_cache_make(struct split *split, const struct accel_call *call,
                      const struct split_device *device, int count, double host_gbps);

#endif
