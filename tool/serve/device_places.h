/*
 * The places on the device, for which the threads of clients wait: in a fair order (fair_order.h),
 * and not for ever. Thread-safe.
 */
#ifndef ACCEL_SERVE_DEVICE_PLACES_H
#define ACCEL_SERVE_DEVICE_PLACES_H

#include "fair_order.h"

/* Calls under way at a time, as many as the device has streams; large ones do not have all of
 * these, so that small ones wait for small ones alone. */
enum { DEVICE_PLACES = 8, DEVICE_LARGE_PLACES = 6 };

/* Enters a lane of a user's process; leaves it. Returns NULL without memory. */
struct fair_process *device_places_join(uint64_t user, double weight, int pid);
void device_places_leave(struct fair_process *process);

/* Waits for a place. Returns false, with none, after most_ms, or when the server ends. *waited_ms:
 * for how long. */
bool device_places_take(struct fair_process *process, bool large, double most_ms,
                        struct fair_call *call, double *waited_ms);

/* Gives it back. counts: see fair_order_end(). */
void device_places_give(struct fair_call *call, bool counts);

/* From now on nobody gets one, and nobody waits. */
void device_places_close(void);

/* How many calls wait, small and large; how many run. */
struct device_places_count {
    int waiting_small, waiting_large, running;
};
struct device_places_count device_places_count(void);

#endif
