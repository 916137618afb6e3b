/*
 * Memory for tests of gpu/cuda/ (tests/lib/device_work.h), and functions of a driver that refuses.
 */
#ifndef ACCEL_TEST_REFUSING_DRIVER_H
#define ACCEL_TEST_REFUSING_DRIVER_H

#include <stdlib.h>
#include <string.h>

#include "tests/lib/device_work.h"

static inline CUdeviceptr memory_of(int64_t bytes)
{
    gpu_address memory;
    assert_int_equal(gpu_memory(&work)->take(&work, bytes, &memory), GPU_OK);
    return memory;
}

static inline char *filled(int64_t bytes, char value)
{
    char *x = malloc((size_t)bytes);
    assert_non_null(x);
    memset(x, value, (size_t)bytes);
    return x;
}

static inline CUresult no_answer_of_events(CUevent event)
{
    (void)event;
    return CUDA_ERROR_UNKNOWN;
}

static inline CUresult no_copy_down(void *to, CUdeviceptr from, size_t bytes, CUstream stream)
{
    (void)to;
    (void)from;
    (void)bytes;
    (void)stream;
    return CUDA_ERROR_INVALID_VALUE;
}

static inline CUresult no_wait(CUstream stream)
{
    (void)stream;
    return CUDA_ERROR_LAUNCH_FAILED;
}

#endif
