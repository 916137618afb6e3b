/*
 * Device memory, kept from call to call: an allocation costs more than a small product (LIBXSTREAM
 * measured 6.7 times at n = 4096). The program may want memory of the device, too, so what lies idle is little, and does not
 * lie for long. Thread-safe; our context must be current. While one thread has the driver allocate or free, which may wait for the
 * program's work on the device, the others get and put what is there.
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

/* After a call has given its blocks back: idle blocks go back when they have been idle for a second, and before that, largest first,
 * where they are more than an eighth of what the driver has left (by the idle thread) or a quarter (before this returns, since an
 * allocation of the program's would miss them). */
void pool_settle(void);

/* For the thread that sees to that (idle.h): whether something is idle; gives back what has been so for long enough, and returns
 * whether something still is. The second one in our context. */
bool pool_has_idle(void);
bool pool_give_back(void);

/* Gives all idle blocks back to the driver, and returns when those have gone that other threads are giving back, too. */
void pool_trim(void);

#endif
