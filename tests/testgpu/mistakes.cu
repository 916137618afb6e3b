/* Kernels with a mistake each, and some that look like them but are right, for test_kernels.c. */
#include "gpu/own/own.cuh"

struct room {
    double *x;
    int64_t n;                   /* elements of x */
    unsigned long long *counter; /* 0 at first */
};

#define MISTAKE(name) OWN_KERNEL(name, const struct room room)

/* ---- Places ---- */

MISTAKE(right_places)
{
    for (int64_t i = blockIdx.x * blockDim.x + threadIdx.x; i < room.n; i += gridDim.x * blockDim.x)
        room.x[i] = (double)i;
}

OWN_KERNEL_FOR(4, right_few_threads, const struct room room)
{
    if (blockIdx.x == 0)
        room.x[threadIdx.x] = (double)room.n;
}

MISTAKE(writes_behind)
{
    for (int64_t i = blockIdx.x * blockDim.x + threadIdx.x; i <= room.n;
         i += gridDim.x * blockDim.x)
        room.x[i] = (double)i;
}

MISTAKE(reads_before)
{
    if (threadIdx.x > 0)
        room.x[room.n - 1] = room.x[-1];
}

MISTAKE(reads_misaligned)
{
    if (room.n > 0)
        room.x[0] = *(const volatile double *)((const char *)room.x + 4);
}

MISTAKE(reads_host_memory)
{
    room.x[0] = *(const volatile double *)(uintptr_t)room.n; /* an address of the host's */
}

MISTAKE(leaves_array)
{
    __shared__ double sums[4];
    const int64_t at = (room.n + threadIdx.x) % 8;
    sums[at] = 0;
    room.x[blockIdx.x * blockDim.x + threadIdx.x] = sums[at];
}

/* ---- Shared memory ---- */

MISTAKE(right_sum)
{
    OWN_SHARED(double, sums);
    __shared__ double last;
    sums[threadIdx.x] = (double)(room.n + threadIdx.x);
    __syncthreads();
    for (unsigned half = blockDim.x / 2; half > 0; half /= 2) {
        if (threadIdx.x < half)
            sums[threadIdx.x] += sums[threadIdx.x + half];
        __syncthreads();
    }
    if (threadIdx.x == blockDim.x - 1)
        last = sums[0];
    __syncthreads();
    if (threadIdx.x == 0)
        room.x[blockIdx.x] = last;
}

MISTAKE(sum_without_barrier)
{
    OWN_SHARED(double, sums);
    sums[threadIdx.x] = (double)(room.n + threadIdx.x);
    __syncthreads();
    for (unsigned half = blockDim.x / 2; half > 0; half /= 2)
        if (threadIdx.x < half)
            sums[threadIdx.x] += sums[threadIdx.x + half];
    if (threadIdx.x == 0)
        room.x[blockIdx.x] = sums[0];
}

/* The next round writes what slower threads still read. */
MISTAKE(round_without_barrier)
{
    __shared__ double value;
    for (int64_t i = 0; i < 2; i++) {
        if (threadIdx.x == 0)
            value = (double)i;
        __syncthreads();
        room.x[blockIdx.x * blockDim.x + threadIdx.x] = value;
    }
}

MISTAKE(reads_unwritten)
{
    OWN_SHARED(double, sums);
    room.x[blockIdx.x * blockDim.x + threadIdx.x] = sums[threadIdx.x];
}

/* Each block's shared memory is its own. */
MISTAKE(right_blocks)
{
    __shared__ unsigned block;
    if (threadIdx.x == 0)
        block = blockIdx.x;
    for (int64_t i = 0; i < 3; i++) {
        own_grid_barrier(room.counter);
        room.x[blockIdx.x * blockDim.x + threadIdx.x] = block;
    }
}

/* ---- Barriers ---- */

MISTAKE(ends_before_barrier)
{
    if (threadIdx.x == 1)
        return;
    __syncthreads();
    room.x[blockIdx.x * blockDim.x + threadIdx.x] = 1;
}

MISTAKE(waits_elsewhere)
{
    if (threadIdx.x == 1)
        __syncthreads();
    else
        __syncthreads();
    room.x[blockIdx.x * blockDim.x + threadIdx.x] = 1;
}

/* Each thread adds the numbers of all, which it writes anew: that needs a barrier before it and one
 * behind it. */
static __device__ inline void add_thrice(const struct room *room, bool right)
{
    const unsigned threads = gridDim.x * blockDim.x, own = blockIdx.x * blockDim.x + threadIdx.x;
    double sum = 1;
    for (int64_t i = 0; i < 3; i++) {
        room->x[own] = sum;
        own_grid_barrier(room->counter);
        sum = 0;
        for (unsigned j = 0; j < threads; j++)
            sum += room->x[j];
        if (right)
            own_grid_barrier(room->counter);
    }
    room->x[own] = sum;
}

MISTAKE(right_grid_barrier)
{
    add_thrice(&room, true);
}

MISTAKE(one_grid_barrier_too_few)
{
    add_thrice(&room, false);
}

MISTAKE(block_ends_before_grid_barrier)
{
    if (blockIdx.x > 0)
        own_grid_barrier(room.counter);
}

/* ---- Between blocks ---- */

MISTAKE(blocks_write_the_same)
{
    if (threadIdx.x == 0)
        room.x[0] = blockIdx.x;
}

MISTAKE(right_atomics)
{
    atomicAdd(room.x, 1.0);
    atomicAdd((unsigned long long *)(room.x + 1), 1);
    atomicMax((int *)(room.x + 2), (int)threadIdx.x);
    atomicMin((int *)(room.x + 2) + 1, (int)blockIdx.x);
    unsigned long long old = *(volatile unsigned long long *)room.counter, seen;
    while ((seen = atomicCAS(room.counter, old, old + 1)) != old)
        old = seen;
}

/* The block that is the last one to be done adds the results of all. */
#define LAST_BLOCK(name, fence)                                                                    \
    MISTAKE(name)                                                                                  \
    {                                                                                              \
        __shared__ unsigned long long done;                                                        \
        if (threadIdx.x == 0) {                                                                    \
            room.x[1 + blockIdx.x] = (double)blockIdx.x;                                           \
            fence;                                                                                 \
            done = atomicAdd(room.counter, 1ull);                                                  \
        }                                                                                          \
        __syncthreads();                                                                           \
        if (done == gridDim.x - 1 && threadIdx.x == 0) {                                           \
            double sum = 0;                                                                        \
            for (unsigned i = 0; i < gridDim.x; i++)                                               \
                sum += room.x[1 + i];                                                              \
            room.x[0] = sum;                                                                       \
        }                                                                                          \
    }
LAST_BLOCK(right_last_block, __threadfence())
LAST_BLOCK(last_block_without_fence, )
