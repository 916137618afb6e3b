/*
 * The plan cache (LRU): what has been chosen for a call, its rates and its memory, and how long its
 * schedule takes, because choosing can take a tenth of a call's time. Thread-safe.
 */
#ifndef ACCEL_PLAN_CACHE_H
#define ACCEL_PLAN_CACHE_H

#include "schedule.h"

/* As schedule_make(), and with the same result. */
bool plan_cache_make(struct schedule *s, const struct schedule_call *call,
                     const struct schedule_rates *rates, int64_t memory_bytes);

/* Returns the milliseconds of the schedule that plan_cache_make() makes, without the uploads of
 * factors that are on the device as a whole. Negative if there is none. left_out: bits 1 <<
 * SCHEDULE_A, 1 << SCHEDULE_B. A later plan_cache_make() finds what was chosen here. */
double plan_cache_ms(const struct schedule_call *call, const struct schedule_rates *rates,
                     int64_t memory_bytes, unsigned left_out);

#endif
