/*
 * What the sources of gpu/own/ are written in: plain CUDA C, which nvcc compiles for devices, and
 * the C++ compiler for the test GPU (tests/testgpu/kernel.h). No warp intrinsics, no libraries. The
 * size of a block is blockDim.x, a power of 2 from 1 on: the test GPU runs few threads. Shared
 * memory and barriers as in CUDA; all threads of a block must come to the same barrier.
 */
#ifndef ACCEL_OWN_CUH
#define ACCEL_OWN_CUH

#include <stdint.h>

#ifdef __CUDACC__

/* Before a loop over a small array, which then stays in registers. */
#    define OWN_UNROLL _Pragma("unroll")

/* A kernel: OWN_KERNEL(name, parameters) { ... }. Pointers among the parameters, also within
 * structs, are device addresses. */
#    define OWN_KERNEL(name, ...) extern "C" __global__ void name(__VA_ARGS__)

/* A kernel for blocks of at most so many threads. The compiler gives each thread so few registers
 * that such a block has enough. */
#    define OWN_KERNEL_FOR(threads, name, ...)                                                     \
        extern "C" __global__ void __launch_bounds__(threads) name(__VA_ARGS__)

/* Defines `name` as the block's array of shared memory, of gpu_grid.shared_bytes; its contents are
 * undefined at first. */
#    define OWN_SHARED(type, name)                                                                 \
        extern __shared__ __align__(16) unsigned char own_shared_bytes[];                          \
        type *const name = (type *)own_shared_bytes

/* Waits for all threads of all blocks, which then see what each has written. For grids whose blocks
 * are together (gpu/device/own.h). arrived: a number in device memory, 0 before the launch. */
static __device__ inline void own_grid_barrier(unsigned long long *arrived)
{
    __syncthreads();
    if (threadIdx.x == 0) {
        const unsigned long long blocks = (unsigned long long)gridDim.x * gridDim.y;
        __threadfence();
        const unsigned long long all = (atomicAdd(arrived, 1ull) / blocks + 1) * blocks;
        while (*(volatile unsigned long long *)arrived < all)
            ;
        __threadfence();
    }
    __syncthreads();
}

#else

#    define OWN_UNROLL
#    include "tests/testgpu/kernel.h"

#endif

#endif
