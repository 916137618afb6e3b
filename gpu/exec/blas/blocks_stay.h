/*
 * The result of a call that runs in blocks, and stays on the device for later calls (staying.h).
 */
#ifndef ACCEL_BLOCKS_STAY_H
#define ACCEL_BLOCKS_STAY_H

#include "blocks.h"

/* Begins to keep the result of a call, unless it is in place, a part of one that devices share, or
 * comes down without a digest. */
enum gpu_status stay_begin_result(struct blocks *b);

#endif
