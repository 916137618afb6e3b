/*
 * The parts of a divided call that lend each other tiles, all at the same time in virtual time: by
 * the schedules and with the owners that the run has (gpu/exec/blas/peer_tiles.h). A copy of
 * another part's tile begins when that has come up, and not before what the copying device brings
 * up before it. Deterministic.
 */
#ifndef ACCEL_TOGETHER_H
#define ACCEL_TOGETHER_H

#include "split.h"

/* Sets how far ahead of their copies the parts bring up what they lend (split->ahead), the parts'
 * times and that of the last one, in split->ms. All parts must have something to do. Returns false
 * without memory: what it has set says nothing then. */
bool together_ms(struct split *split, const struct accel_call *call,
                 const struct split_device *device);

#endif
