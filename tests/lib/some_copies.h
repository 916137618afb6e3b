/*
 * Copies of which some go well: so many up and so many down; the others lack memory, which says
 * nothing of the device. `real` are the driver's functions, as a test keeps them.
 */
#ifndef ACCEL_TEST_SOME_COPIES_H
#define ACCEL_TEST_SOME_COPIES_H

#include "gpu/cuda/device.h"

static int ups_left, downs_left;

static CUresult some_up(CUdeviceptr to, const void *from, size_t bytes, CUstream stream)
{
    return ups_left-- > 0 ? real.cuMemcpyHtoDAsync_p(to, from, bytes, stream)
                          : CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult some_down(void *to, CUdeviceptr from, size_t bytes, CUstream stream)
{
    return downs_left-- > 0 ? real.cuMemcpyDtoHAsync_p(to, from, bytes, stream)
                            : CUDA_ERROR_OUT_OF_MEMORY;
}

/* From here on, until cuda_api is `real` again. */
static void allow_copies(int ups, int downs)
{
    ups_left = ups;
    downs_left = downs;
    CUDA(cuMemcpyHtoDAsync) = some_up;
    CUDA(cuMemcpyDtoHAsync) = some_down;
}

#endif
