/*
 * A decided call is run: on the GPU, or by the original; and what is learned from it. Each fills in the record.
 * Thread-safe, except for the start.
 */
#ifndef ACCEL_RUN_H
#define ACCEL_RUN_H

#include "survey.h"

/* The settings stay. adapts: see survey.h. */
void run_start(const struct accel_settings *settings, bool adapts);

/* On the GPU. True when the result is there; false when nothing has happened yet, and the original is to do it. */
bool run_on_gpu(const struct accel_call *call, const struct situation *situation,
                const struct dispatch_caller *caller, struct accel_record *record);

/* The original, with the caller's own arguments. */
void run_forward(const struct accel_call *call, const struct situation *situation,
                 const struct dispatch_caller *caller, struct accel_record *record);

/* Whether to know how long the original takes is worth the time that it takes to know. */
bool run_is_worth_watching(const struct situation *situation);

/* The original, on copies of what the host cannot read. */
void run_on_copies(const struct accel_call *call, const struct situation *situation,
                   const struct dispatch_caller *caller, struct accel_record *record);

/* accel estimate: the original, timed as a whole. What runs inside a call that the GPU would have run is a part of it, and is
 * marked so. False: it has not been run. */
bool run_for_estimate(const struct accel_call *call, const struct situation *situation,
                      const struct dispatch_caller *caller, struct accel_record *record);

#endif
