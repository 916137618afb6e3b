/*
 * First calls. The first call of a routine loads its kernels, and the first of LAPACK opens
 * cuSOLVER: that may take longer than many calls gain. So the first call that would gain has the
 * routine warmed up on another thread; calls run on the CPU meanwhile. Under MPI and with
 * ACCEL_START=wait, decisions must not depend on such a thread: the cost is added to the estimates
 * of the routine's calls, less the gains that they have missed so far. It is the ski-rental rule:
 * a routine is warmed up once the missed gain is as much as the warm-up costs. Thread-safe.
 */
#ifndef ACCEL_WARM_UP_H
#define ACCEL_WARM_UP_H

#include <stdatomic.h>

#include "call/call.h"

enum { WARM_UP_ROUTINES = 1024 };

/* The routines on one device. Zero at first. */
struct warm_up {
    atomic_bool working;        /* there is a thread that warms up; the child of a fork has none */
    atomic_bool solver_is_open; /* by a call that has ended */
    _Atomic unsigned char state[WARM_UP_ROUTINES];
    _Atomic int64_t gained_us[WARM_UP_ROUTINES];
};

struct dispatch_device;

/* Whether the routine has been run on the device by this process, or been warmed up. */
bool warm_up_is_done(const struct dispatch_device *device, const struct accel_routine *routine);

/* Notes that it has run. */
void warm_up_note(struct dispatch_device *device, const struct accel_routine *routine);

/* Returns the milliseconds that its first call takes longer than later ones, by the cost model; 0
 * once it is warm. */
double warm_up_cost_ms(const struct dispatch_device *device, const struct accel_routine *routine);

/* warm_up_counted_ms() returns the part of that cost that missed gains have not paid for, which an
 * estimate includes. A call that has run on the CPU is noted with the gain that it has missed, by
 * such an estimate. */
double warm_up_counted_ms(const struct dispatch_device *device,
                          const struct accel_routine *routine);
void warm_up_note_gain(struct dispatch_device *device, const struct accel_routine *routine,
                       double ms);

/* Warms it up on another thread; the device is ready. If no thread can be made, the routine counts
 * as warm. */
void warm_up_ask(struct dispatch_device *device, const struct accel_routine *routine);

/* Warms it up on this thread. */
void warm_up_run(struct dispatch_device *device, const struct accel_routine *routine);

#endif
