/*
 * Several devices for one call. This file says which devices may have a part of it now, and how
 * fast each of them is; dispatch/cost/split.h divides the call by that. several_start() is called
 * once, before any other thread calls; the other functions are thread-safe.
 */
#ifndef ACCEL_SEVERAL_H
#define ACCEL_SEVERAL_H

#include "select.h"

/* Gets the settings, which stay, and whether decisions may depend on the course of the program: see
 * select_start(). */
void several_start(const struct accel_settings *settings, bool adapts);

/* Returns whether several devices could share a call at all. LAPACK: what is too large for one of
 * them. */
bool several_may_share(const struct task *task);

/* Divides a call that they could share over those that may have a part; has further ones started if
 * it would gain by them. Returns whether it is divided. */
bool several_plan(struct task *task, struct gang_plan *plan);

#endif
