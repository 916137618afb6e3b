/*
 * The devices that this process uses. ACCEL_DEVICES=all or a list allows several: the first call
 * that gains starts the first; the others start when calls would wait for those that are there. All
 * functions are thread-safe, except for the start.
 */
#ifndef ACCEL_DISPATCH_DEVICES_H
#define ACCEL_DISPATCH_DEVICES_H

#include "device.h"

enum { DEVICES_MOST = 16 };

/* Call it once, before the others. The arguments stay. */
void devices_prepare(const struct accel_settings *settings, const struct accel_ranks *ranks);

/* Returns how many this process may use, at least 1. That is known once the first has been started:
 * 1 before. */
int devices_count(void);

/* Returns one of them, from 0 to DEVICES_MOST - 1 if this process may use several; else there is 0
 * alone. They stay. */
struct dispatch_device *devices_at(int i);

/* Whether one of them was started in the process that this one was forked from, and the handlers of
 * fork(2) have not run. */
bool devices_are_inherited(void);

/* Returns the first that may serve, now or later; if none may, the very first. */
struct dispatch_device *devices_first(void);

/* Returns another one that is ready and has not left a routine; NULL: there is none. routine: NULL,
 * or one of BLAS or LAPACK. */
const struct dispatch_device *devices_another(const struct dispatch_device *device,
                                              const struct accel_routine *routine);

/* Returns whether another one could still be started. */
bool devices_may_grow(const struct dispatch_device *device);

/* Returns the one for calls of the calling thread: threads take turns, in the order of their first
 * question, and keep theirs. For decisions that must not depend on how busy the devices are. */
struct dispatch_device *devices_of_thread(void);

/* See dispatch_is_borrowed(). */
bool devices_are_borrowed(void);

#endif
