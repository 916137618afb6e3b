/*
 * Several devices for one call: which of them may have a part now, and what they could do for it (dispatch/cost/split.h divides it). Thread-safe but for
 * the start.
 */
#ifndef ACCEL_SEVERAL_H
#define ACCEL_SEVERAL_H

#include "survey.h"

/* As survey_start(). */
void several_start(const struct accel_settings *settings, bool adapts);

/* Returns whether several devices could share a call at all. LAPACK: what is too large for one of them. */
bool several_may_share(const struct accel_call *call, const struct situation *situation);

/* Divides a call that they could share over those that may have a part; has further ones started if it would gain by them. Returns whether it is
 * divided. */
bool several_plan(const struct accel_call *call, const struct situation *situation,
                  struct team_plan *plan);

#endif
