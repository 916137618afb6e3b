/*
 * First calls. The first call of a routine loads its kernels, and the first of LAPACK opens cuSOLVER, which is three libraries: that may
 * take longer than many calls gain. So a routine is warmed up on a thread of its own by the first call that would gain by the GPU, and
 * runs on the CPU meanwhile; where calls do not go to the CPU meanwhile (ACCEL_START=wait), what opening cuSOLVER takes is counted in
 * their estimates, until calls like it would have gained as much. Thread-safe.
 */
#ifndef ACCEL_WARM_H
#define ACCEL_WARM_H

#include "gpu/call.h"

/* Whether the routine has been run on the GPU by this process, or been warmed up. */
bool warm_is(const struct accel_routine *routine);

/* It has run. */
void warm_note(const struct accel_routine *routine);

/* Milliseconds that its first call takes beyond the call itself, nominally; 0 once it is warm. */
double warm_cost_ms(const struct accel_routine *routine);

/* The part of that which an estimate counts, and a call that would have gained so much without it. */
double warm_counted_ms(const struct accel_routine *routine);
void warm_note_gain(const struct accel_routine *routine, double ms);

/* Warms it up in the background, once the GPU is ready. Where there can be no thread, it counts as warm. */
void warm_ask(const struct accel_routine *routine);

/* Warms it up on this thread. */
void warm_up(const struct accel_routine *routine);

/* In the child of a fork. */
void warm_fork_child(void);

#endif
