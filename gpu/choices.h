/*
 * Schedules of calls like those before: what has been chosen for a call, its rates and its memory is kept, because choosing can take a
 * tenth of a call's time. Thread-safe.
 */
#ifndef ACCEL_CHOICES_H
#define ACCEL_CHOICES_H

#include "schedule.h"

/* As schedule_make(), and with the same result. */
bool choices_make(struct schedule *s, const struct schedule_call *call,
                  const struct schedule_rates *rates, int64_t memory_bytes);

#endif
