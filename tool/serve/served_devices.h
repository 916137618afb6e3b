/*
 * The devices that `accel serve` owns: of those that its environment lets it have, all that are of
 * the kind of the first. One that fails is left out; the others go on. Thread-safe, once started.
 */
#ifndef ACCEL_SERVED_DEVICES_H
#define ACCEL_SERVED_DEVICES_H

#include "gpu/remote/wire.h"

/* Starts them. Returns false if there is none, and has said why. Not thread-safe. */
bool served_devices_start(void);

/* Returns how many have been started; 0: they have not yet, or there is none. */
int served_devices_count(void);

struct gpu_device *served_devices_at(int i);

/* Returns the first that has not failed, else the first. */
struct gpu_device *served_devices_first(void);

/* Takes out a device that has failed. Returns whether another one goes on. */
bool served_devices_leave_out(int i);

/* Whether all have failed; none has been started: false. */
bool served_devices_have_failed(void);

/* Fills in how many calls and processes each has, and how much memory: that of a user's calls, or
 * NULL: of all. */
void served_devices_describe(struct wire_state *state, const uint64_t *user);

/* Ends those that have not failed. */
void served_devices_stop(void);

#endif
