/*
 * Device memory that other devices of this process may use: each device has a memory pool of the
 * driver's for it, made at first need. The program's state is not changed: cuCtxEnablePeerAccess(),
 * which the program may want to call itself, would open all of a context's memory and can be called
 * once. pool.c gives such memory out in blocks; lent memory is in use on streams of any device only
 * between taking and giving back.
 *
 * Sources: NVIDIA's CUDA programming guide, "Stream-ordered memory allocator": access to a pool
 * follows cuMemPoolSetAccess() alone, not cuCtxEnablePeerAccess(), and holds for all of its
 * allocations; the device must be able to reach the pool's, or the next allocation may fail; an
 * asynchronous copy of such memory needs the stream's context as the current one; the allocation
 * may be used on other streams after a synchronisation; memory that has been freed goes back to the
 * system at the next synchronisation, as the release threshold is 0. That cuMemcpyDtoDAsync() then
 * goes straight from one device to the other, no reference says. PyTorch copies so where it has set
 * such access (c10/cuda/CUDAMallocAsyncAllocator.cpp, memcpyAsync()), and CUDA.jl's developers saw
 * it do so (JuliaGPU/CUDA.jl, pull request 1357). It is also known (pull request 3112 there:
 * Turing, driver 590.48) that cuMemcpyPeerAsync() into such memory may write nothing, and say
 * nothing. So peer_rate.c copies as calls do, looks at what has arrived, and measures: a way that
 * is wrong or goes by the host is not used.
 */
#ifndef ACCEL_LENT_MEMORY_H
#define ACCEL_LENT_MEMORY_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "gpu/cuda/api/cuda_api.h"
#include "gpu/device/gpu.h"

/* What a device has for its lent memory. lent_memory.c uses these members; peer_rate.c uses the
 * stream, too, for its copies. */
struct lent_memory {
    pthread_mutex_t lock; /* while the pool is made */
    CUdevice number;
    CUmemoryPool pool; /* NULL until it is needed */
    /* Of the device: puts allocations and their ends in order; NULL until there is a pool */
    CUstream stream;
    bool is_refused; /* the driver has no such memory for this device */
};

/* Make a device's, without a pool, and end it; need no context. Not thread-safe. */
void lent_memory_begin(struct lent_memory *lending, CUdevice number);
void lent_memory_end(struct lent_memory *lending);

/* For the functions below, the device's context must be current. Several threads may call them at
 * once; but lent_memory_close() must be the last call. */

/* Lets another device use the memory of this one's pool, what is taken later, too. Returns
 * GPU_UNSUPPORTED if it cannot reach it, or if there is no such memory; GPU_NO_MEMORY, which may
 * pass. Neither is noted as a failure. */
enum gpu_status lent_memory_open_to(struct lent_memory *lending, CUdevice reader);

/* Takes memory, which any stream of the device may use. Returns GPU_NO_MEMORY; GPU_UNSUPPORTED if
 * the device has no such memory, from then on each time; GPU_ERROR if the device does not
 * answer. */
enum gpu_status lent_memory_take(struct lent_memory *lending, int64_t bytes, CUdeviceptr *memory);

/* Gives memory back to the driver. No work that uses it may be pending on any stream, of any
 * device. */
void lent_memory_give_back(struct lent_memory *lending, CUdeviceptr memory);

/* Destroys the pool; all of its memory has been given back. */
void lent_memory_close(struct lent_memory *lending);

#endif
