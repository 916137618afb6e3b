/*
 * The inputs of a call of Level 3, A and B, that are in the device cache (device_cache.h), or are
 * to be for later calls: each as one matrix there, those of a batch with their matrices side by
 * side. The schedule computes with them as if they had come up by it, so that the results are the
 * same.
 */
#ifndef ACCEL_GPU_FACTORS_H
#define ACCEL_GPU_FACTORS_H

#include "device_cache.h"
#include "gpu/plan/scheduled.h"

/* What is worth while of an input. */
struct cached_worth {
    bool look; /* a look for it: a call gains that finds it there */
    /* Its way up as a whole: so much that this is at least what the call loses that brings it */
    bool bring;
};

/* Returns that of a part of operand number i of a scheduled call, by the call's rates. */
struct cached_worth cached_inputs_worth(const struct gpu_work *work,
                                        const struct scheduled *scheduled,
                                        const struct schedule_rates *rates, int i,
                                        const struct accel_span *part);

struct cached_inputs {
    struct gpu_work *work;
    const struct scheduled *scheduled;
    struct cached_input {
        bool is_cached; /* it is on the device, or goes there as a whole: */
        struct dmat at;
        struct cached_operand cached;
    } input[SCHEDULE_C];
};

/* Finds the inputs that are there, and takes memory for those that are to be cached, as far as
 * either is worth while by the call's rates. Returns GPU_NO_MEMORY, or what a look has met. */
enum gpu_status cached_inputs_bring(struct cached_inputs *f, const struct schedule_rates *rates);

/* Goes on without them, as memory is short: the caller gives back all that the call has taken. */
void cached_inputs_leave(struct cached_inputs *f);

/* Leaves out their uploads. Returns false without host memory. */
bool cached_inputs_leave_out(const struct cached_inputs *f, struct schedule *s);

/* Sends up those that are to be cached, and are not there. */
enum gpu_status cached_inputs_send(struct cached_inputs *f);

/* Caches them, after the call. A failure to do so is the device's, and the next call's. */
void cached_inputs_insert(struct cached_inputs *f);

#endif
