/*
 * The places on the devices, for which the threads of clients wait: in a fair order (fair_order.h),
 * and not for ever. Each lane is told how busy the devices are (gpu/remote/wire.h). Thread-safe.
 */
#ifndef ACCEL_SERVE_DEVICE_PLACES_H
#define ACCEL_SERVE_DEVICE_PLACES_H

#include "fair_order.h"
#include "gpu/remote/wire.h"

/* Calls under way at a time on a device, as many as it has streams; large ones do not have all of
 * these, so that small ones wait for small ones alone. */
enum { DEVICE_PLACES = 8, DEVICE_LARGE_PLACES = 6 };

/* Says how many devices there are. Call it before the first lane. */
void device_places_open(int devices);

/* A lane of a process: the caller's. */
struct device_lane {
    struct fair_process *process; /* NULL: it has none */
    struct wire_load *load;
    struct device_lane *next;
};

/* Enters a lane of a user's process; leaves it, or does nothing. Returns false without memory.
 * load: what is told there. */
bool device_places_join(struct device_lane *lane, uint64_t user, double weight, int pid,
                        struct wire_load *load);
void device_places_leave(struct device_lane *lane);

/* Waits for a place: on call->device. Returns false, with none, after most_ms, or when the server
 * ends. *waited_ms: for how long. */
bool device_places_take(struct device_lane *lane, bool large, double most_ms,
                        struct fair_call *call, double *waited_ms);

/* Returns the device of the lane's process: where its last call ran, or its first is to run. */
int device_places_device(const struct device_lane *lane);

/* Gives it back. counts: see fair_order_end(). alone_ms: see recent_calls_note(). */
void device_places_give(struct device_lane *lane, struct fair_call *call, bool counts,
                        double alone_ms);

/* No call gets a place on a device any more. Returns whether that is news. */
bool device_places_leave_out(int device);

/* From now on nobody gets one, and nobody waits. */
void device_places_close(void);

/* Tells all lanes, when nothing has happened for a while. */
void device_places_tell(void);

/* How many calls wait, small and large; how many run, and on which device; processes there. */
struct device_places_count {
    int waiting_small, waiting_large, running;
    struct fair_device device[FAIR_DEVICES_MOST];
};
struct device_places_count device_places_count(void);

#endif
