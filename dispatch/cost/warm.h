/*
 * First calls. The first call of a routine loads its kernels, and the first of LAPACK opens cuSOLVER, which is three libraries: that may
 * take longer than many calls gain. So a routine is warmed up on a thread of its own by the first call that would gain by the GPU, and
 * runs on the CPU meanwhile. Where calls do not go to the CPU meanwhile (ACCEL_START=wait), all of that is counted in the
 * estimates of the routine's calls, less the gain that its calls have missed so far: who does not know how many calls will come
 * rents until that has cost as much as to buy. Thread-safe.
 */
#ifndef ACCEL_WARM_H
#define ACCEL_WARM_H

#include <stdatomic.h>

#include "ops/call.h"

enum { WARM_ROUTINES = 1024 };

/* The routines on one device. Zero at first. */
struct warm {
    _Atomic unsigned char state[WARM_ROUTINES];
    _Atomic int64_t gained_us[WARM_ROUTINES];
    atomic_bool solver_is_open; /* by a call that has ended */
    atomic_bool working; /* there is a thread that warms up, which the child of a fork lacks */
};

struct dispatch_device;

/* Whether the routine has been run on the device by this process, or been warmed up. */
bool warm_is(const struct dispatch_device *device, const struct accel_routine *routine);

/* It has run. */
void warm_note(struct dispatch_device *device, const struct accel_routine *routine);

/* Milliseconds that its first call takes beyond the call itself, by the cost model; 0 once it is warm. */
double warm_cost_ms(const struct dispatch_device *device, const struct accel_routine *routine);

/* The part of that which an estimate counts; and that a call has run on the CPU which would have gained so much by such an
 * estimate. */
double warm_counted_ms(const struct dispatch_device *device, const struct accel_routine *routine);
void warm_note_gain(struct dispatch_device *device, const struct accel_routine *routine, double ms);

/* Warms it up in the background, once the device is ready. Where there can be no thread, it counts as warm. */
void warm_ask(struct dispatch_device *device, const struct accel_routine *routine);

/* Warms it up on this thread. */
void warm_up(struct dispatch_device *device, const struct accel_routine *routine);

#endif
