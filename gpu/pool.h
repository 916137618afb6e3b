/*
 * Device memory, kept across calls: an allocation costs more than a small product (LIBXSTREAM
 * measured 6.7 times at n = 4096). Thread-safe; our context must be current.
 */
#ifndef ACCEL_POOL_H
#define ACCEL_POOL_H

#include "device.h"

/* A block of at least `bytes`, aligned for any operand. GPU_NO_MEMORY beyond the budget or where
 * the driver has no more. *grew: whether the driver was asked. */
enum gpu_status pool_get(int64_t bytes, CUdeviceptr *block, bool *grew);

/* Gives a block back. No work that uses it may be pending on any stream. */
void pool_put(CUdeviceptr block);

/* Bytes that could be got in blocks: what lies idle and what the driver has left within the budget.
 */
int64_t pool_available(void);

/* Gives all idle blocks back to the driver. */
void pool_trim(void);

#endif
