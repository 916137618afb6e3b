/*
 * Whether a matrix that a call only moves past the processor (Level 2: it reads each element once)
 * is worth a copy on the device. To bring it takes as long as the call on the CPU, or longer, so
 * one call never gains; only many calls do, if nobody writes to the matrix meanwhile. The
 * ski-rental rule decides: calls run on the CPU until those that could have used a copy have missed
 * a gain as large as the upload's cost. That they could have used it, the kernel's record of writes
 * says (dirty_tracking.h), for a digest takes as long as the CPU does. A watch begins by the same
 * rule, at its own cost. So in the worst case, all of this costs about as much as it could have
 * gained.
 */
#ifndef ACCEL_PREFETCH_H
#define ACCEL_PREFETCH_H

#include "device_cache.h"
#include "dirty_tracking.h"

/* The edges of an operand that goes up, to be cached: see dirty_tracking_validate(). */
struct prefetch {
    bool validates;
    struct dirty_tracking_validation validation;
};

/* Around the upload of a part that is to be cached: ties its watch, r->watch, to what goes up. */
struct prefetch prefetch_begin(const struct cached_operand *r);
void prefetch_end(struct prefetch *prefetch, struct cached_operand *r);

#endif
