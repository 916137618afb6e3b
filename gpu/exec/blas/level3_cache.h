/*
 * The result of a call that runs in blocks, and is cached for later calls (result_capture.h).
 */
#ifndef ACCEL_LEVEL3_CACHE_H
#define ACCEL_LEVEL3_CACHE_H

#include "level3.h"

/* Begins to cache the result of a call, unless it is in place, a part of one that devices share, or
 * comes down without a digest. */
enum gpu_status level3_cache_begin(struct level3 *b);

#endif
