/*
 * Kernels of our own, on the call's stream context like those of kernels.h: gpu/own/, CUDA C,
 * compiled to one image in the library. A device loads the image when the first of them is used.
 * Without an image (the build had no compiler for it), or if it has no code for the device, all
 * functions return GPU_UNSUPPORTED.
 */
#ifndef ACCEL_OWN_H
#define ACCEL_OWN_H

#include "work.h"

struct gpu_grid {
    unsigned blocks_x, blocks_y; /* at least 1 */
    unsigned threads;            /* of a block */
    unsigned shared_bytes;       /* of OWN_SHARED (own.cuh) */
    bool together;               /* all blocks are resident at once, for own_grid_barrier() */
};

/* What fits the device at once, to choose a grid by. */
struct gpu_fit {
    unsigned threads;    /* of a block: as many as asked for, or the kernel's most */
    unsigned together;   /* blocks of so many threads, on the whole device */
    unsigned processors; /* of the device */
};

/* Returns whether the image is there: the build had a compiler for it. */
bool gpu_own_is_built(void);

struct gpu_own_kernels {
    /* Returns whether the image is there and, as far as is known, has code for the device. */
    bool (*is_here)(const struct gpu_work *work);

    /* Says how many blocks of at most `threads` threads, with shared_bytes each, fit the device at
     * once. */
    enum gpu_status (*fit)(struct gpu_work *work, const char *kernel, unsigned threads,
                           unsigned shared_bytes, struct gpu_fit *fit);

    /* Puts a kernel on the stream. arguments: the address of each; they are read before it returns.
     * A failure says that nothing has been launched. */
    enum gpu_status (*launch)(struct gpu_work *work, const char *kernel, struct gpu_grid grid,
                              void **arguments);
};

static inline const struct gpu_own_kernels *gpu_own(const struct gpu_work *work)
{
    return work->device->functions->own;
}

#endif
