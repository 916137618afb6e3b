/*
 * The parts of a divided call that lend each other tiles, all at the same time in virtual time: by
 * the schedules and with the owners that the run has (gpu/exec/blas/peer_tiles.h). A copy of
 * another part's tile begins when that has come up, and not before what the copying device brings
 * up before it. Knows nothing of how the plan finds that out (dispatch/cost/together.h).
 */
#ifndef LENT_PARTS_H
#define LENT_PARTS_H

#include "dispatch/cost/split.h"

struct lent_times {
    /* Until the last part is done, without what it takes to hand parts out; negative: no part can
     * go on */
    double ms;
    double host_bytes, lent_bytes; /* up */
    int tiles;                     /* that several parts need */
};

/* Returns false without memory, or if a part has no schedule. */
bool lent_parts_run(const struct split *split, const struct accel_call *call,
                    const struct split_device *device, struct lent_times *times);

#endif
