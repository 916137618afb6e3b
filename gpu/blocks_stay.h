/*
 * Blocks of a call whose operands stay on the device for later calls, or have stayed there (resident.h), and whose result stays (staying.h).
 */
#ifndef ACCEL_BLOCKS_STAY_H
#define ACCEL_BLOCKS_STAY_H

#include "blocks.h"

/* Finds the factors that are there, and takes memory for those that are to stay, as far as either is worth while by the call's rates. Returns
 * GPU_NO_MEMORY, or what a look at them has met. */
enum gpu_status stay_bring(struct blocks *b, const struct schedule_rates *rates);

/* Goes on without them: memory is short. */
void stay_leave(struct blocks *b);

/* Sends up those that are to stay, each as a whole. */
enum gpu_status stay_send(struct blocks *b);

/* Begins to keep the result of a call, unless it is in place, a part of one that devices share, or comes down without a digest. */
enum gpu_status stay_begin_result(struct blocks *b);

/* Keeps what is worth it, after the call. A failure to do so is the device's, and the next call's. */
void stay_keep(struct blocks *b);

#endif
