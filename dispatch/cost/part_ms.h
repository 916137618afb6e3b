/*
 * How long a part of a call takes on a device, in virtual time: by its floor, or by a schedule that
 * is made as others are. Pure functions, but that what is chosen for a call is remembered
 * (gpu/plan/plan_cache.h).
 */
#ifndef ACCEL_PART_MS_H
#define ACCEL_PART_MS_H

#include "split.h"

/* Returns a time that the call is not below on a device. lent: see schedule_call; NULL: nothing
 * is. */
double part_floor_ms(const struct accel_call *call, const struct schedule_rates *rates,
                     const double lent[SCHEDULE_OPERANDS]);

/* Returns parameters that suit a part as those of another one suit that. */
struct schedule_params part_fit(struct schedule_params params, const struct schedule_call *shape);

/* Returns the time of a call's schedule. *params: what it is made by; where that is not set,
 * chooses it. To choose takes a twentieth of the part's time, so one part does it for all. DBL_MAX:
 * there is no schedule. */
double part_ms(const struct accel_call *call, const struct split_device *device,
               const struct schedule_rates *rates, struct schedule_params *params);

#endif
