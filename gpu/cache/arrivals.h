/*
 * Inputs that calls are bringing to the device, by their digests: a call that reads the same one
 * waits for it rather than bring it again. Thread-safe.
 */
#ifndef ACCEL_ARRIVALS_H
#define ACCEL_ARRIVALS_H

#include "gpu/device/work.h"

/* Notes that a call brings what a key tells. Nothing happens if many are on their way. */
void arrivals_begin(struct gpu_work *work, const struct gpu_key *key);

/* Waits, for a while at most, until nobody brings it. Returns whether somebody did. A call that
 * brings one itself does not wait: two could wait for each other. */
bool arrivals_await(const struct gpu_work *work, const struct gpu_key *key);

/* A call has brought what it was to bring, or has failed. */
void arrivals_end(struct gpu_work *work);

#endif
