/*
 * Device memory, kept from call to call: an allocation costs more than a small product (LIBXSTREAM
 * measured 6.7 times at n = 4096). The program may want memory of the device, too, so what lies idle is little, and does not
 * lie for long. Each device has its pool. Thread-safe; the device's context must be current. While one thread has the driver allocate or free, which may wait for the
 * program's work on the device, the others get and put what is there.
 */
#ifndef ACCEL_POOL_H
#define ACCEL_POOL_H

#include <pthread.h>

#include "cuda_api.h"
#include "gpu/gpu.h"

struct cuda_device;

/* Three operands a call, a few calls at once, and some idle ones. */
enum { POOL_BLOCKS = 256 };

/* pool.c's alone. */
struct pool {
    pthread_mutex_t lock;
    pthread_cond_t freed;
    struct pool_block {
        CUdeviceptr ptr;
        int64_t bytes;
        bool used;
        double idle_since; /* milliseconds; where it is not used */
    } block[POOL_BLOCKS];
    int count, coming; /* coming: blocks that the driver is being asked for */
    /* Bytes: of all, with what comes and leaves; of idle blocks; of those that are being freed. */
    int64_t total, idle, leaving;
    /* What the driver had left when it was asked last, in milliseconds of the clock. */
    int64_t free_bytes;
    double free_at;
};

/* An empty one, of a device that is zero elsewhere; and its end, with no block left: by one thread, in no context. */
void pool_begin(struct cuda_device *device);
void pool_end(struct cuda_device *device);

/* A block of at least `bytes`, aligned for any operand. GPU_NO_MEMORY beyond the budget or where
 * the driver has no more. *grew: whether the driver was asked. */
enum gpu_status pool_get(struct cuda_device *device, int64_t bytes, CUdeviceptr *block, bool *grew);

/* Gives a block back. No work that uses it may be pending on any stream. */
void pool_put(struct cuda_device *device, CUdeviceptr block);

/* Bytes that could be got in blocks: what lies idle and what the driver has left within the budget.
 */
int64_t pool_available(struct cuda_device *device);

/* After a call has given its blocks back: idle blocks go back when they have been idle for a second, and before that, largest first,
 * where they are more than an eighth of what the driver has left (by the idle thread) or a quarter (before this returns, since an
 * allocation of the program's would miss them). */
void pool_settle(struct cuda_device *device);

/* For the thread that sees to that (idle.h): whether something is idle; gives back what has been so for long enough, and returns
 * whether something still is. The second one in our context. */
bool pool_has_idle(struct cuda_device *device);
bool pool_give_back(struct cuda_device *device);

/* Gives all idle blocks back to the driver, and returns when those have gone that other threads are giving back, too. */
void pool_trim(struct cuda_device *device);

#endif
