/*
 * Schedules of calls like those before: what has been chosen for a call, its rates and its memory
 * is kept, and how long it takes, because choosing can take a tenth of a call's time. Thread-safe.
 */
#ifndef ACCEL_CHOICES_H
#define ACCEL_CHOICES_H

#include "schedule.h"

/* As schedule_make(), and with the same result. */
bool choices_make(struct schedule *s, const struct schedule_call *call,
                  const struct schedule_rates *rates, int64_t memory_bytes);

/* Returns the milliseconds of the schedule that choices_make() makes, without the uploads of
 * factors that are on the device as a whole. Negative if there is none. left_out: bits 1 <<
 * SCHEDULE_A, 1 << SCHEDULE_B. A later choices_make() finds what was chosen here. */
double choices_ms(const struct schedule_call *call, const struct schedule_rates *rates,
                  int64_t memory_bytes, unsigned left_out);

#endif
