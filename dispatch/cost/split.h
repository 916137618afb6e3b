/*
 * How a call is divided over several devices: which part of the result each of them computes, and
 * when all are done, in virtual time. Pure functions: the same call, rates and devices have the
 * same split each time.
 *
 * Every device runs its part by a schedule of its own (gpu/plan/schedule.h). Their copies share
 * what the host's threads can pack and unpack, so each device copies at its own rate, or at its
 * share of the host's. Every operand of a part crosses the host's memory once for each device that
 * needs it; or once in all, where devices copy from each other faster: then one of them brings each
 * tile up, and the others have it from there (lending.h).
 */
#ifndef ACCEL_SPLIT_H
#define ACCEL_SPLIT_H

#include "gpu/plan/schedule.h"
#include "ops/cut.h"

enum { SPLIT_MOST = 16 };

struct split_device {
    /* For this call: cost_schedule_rates(). rates.peer: from the memory of any other device of the
     * call, or 0. */
    struct schedule_rates rates;
    int64_t memory_bytes; /* that may be used */
    /* Devices with the same one share a link, as fast as the fastest of theirs; 0: it has one of
     * its own */
    int64_t port;
};
_Static_assert(sizeof(struct split_device) == sizeof(struct schedule_rates) + 16,
               "without padding: it is a part of a cache key");

struct split_part {
    int device;
    struct accel_region region;
    struct schedule_rates rates;    /* while the others copy, too */
    double lent[SCHEDULE_OPERANDS]; /* see schedule_call: by other parts' devices */
    /* With any of that: what its schedule must be made by, so that all parts have the same tiles */
    struct schedule_params by;
    double ms; /* simulated */
};

/* Returns whether a division has left nothing for it. */
static inline bool split_is_empty(const struct split_part *part)
{
    const struct accel_region *r = &part->region;
    return r->rows == 0 || (r->cols == 0 && r->blocks == 0);
}

/* Returns whether other parts' devices bring up anything of it. */
static inline bool split_lends(const struct split_part *part)
{
    return part->lent[SCHEDULE_A] > 0 || part->lent[SCHEDULE_B] > 0;
}

struct split {
    int count; /* parts, each on a device of its own; 1: the call stays whole */
    struct split_part part[SPLIT_MOST];
    int ahead;       /* parts bring up tiles that they lend so many before those that they copy: see
                        peer_tiles_order() */
    double ms;       /* until the last part is done */
    double whole_ms; /* no device is faster with the whole call */
};

/* Returns whether parts lend each other anything. */
static inline bool split_any_lends(const struct split *split)
{
    bool any = false;
    for (int i = 0; i < split->count; i++)
        any |= split_lends(&split->part[i]);
    return any;
}

/* Another device must bring so much: the estimates are not exact. */
#define SPLIT_GAIN 0.95

/* Shorter calls stay whole; others have at most so many devices that it does not take long to look
 * for the best division. */
#define SPLIT_LEAST_MS 0.5

/* Divides a valid, non-empty call with operands in host memory over some of these devices, so that
 * it is done first. count: at most SPLIT_MOST. host_gbps: 10^9 bytes a second that the host packs,
 * and unpacks, for all devices together. Leaves the call whole unless that makes it faster than the
 * best single device by SPLIT_GAIN. */
void split_make(struct split *split, const struct accel_call *call,
                const struct split_device *device, int count, double host_gbps);

/* Sets what each of some devices, device[on[0]] .. device[on[count - 1]], copies at while all of
 * them copy: its own rate, or its share of a link that several have, or of what the host packs. */
void split_links(struct schedule_rates *rates, const struct split_device *device, const int *on,
                 int count, double host_gbps);

/* Returns the 10^9 bytes a second that so many threads pack, nominally. */
double split_host_gbps(int threads);

#endif
