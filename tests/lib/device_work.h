/*
 * A device for a group of unit tests, and for each test the work of a call on one of the device's
 * stream contexts.
 */
#ifndef ACCEL_TEST_DEVICE_WORK_H
#define ACCEL_TEST_DEVICE_WORK_H

#include "gpu/cuda/device.h"
#include "ops/names.h"
#include "ops/op.h"
#include "tests/lib/devices.h"

static struct cuda_device *device;
static __typeof__(cuda_api) real; /* the driver's functions; a test may put its own into cuda_api */
static struct gpu_scope scope;
static struct gpu_host host;
static struct accel_call call;
static struct gpu_work work;
static struct failure outer;

/* Setup of a group of tests; stop_device() is its teardown. */
static inline int start_work(void **state)
{
    *state = start_device(tested_gpu(), (struct gpu_config){.memory_share = 0.5});
    device = cuda_device_of(*state);
    return device ? 0 : -1;
}

/* Setup and teardown of a test. */
static inline int begin_work(void **state)
{
    (void)state;
    real = cuda_api;
    failure_begin(&outer);
    host = (struct gpu_host){0};
    call = accel_call_of(accel_name_routine((uint32_t)accel_name_find("dgemm_")));
    work = (struct gpu_work){.call = &call, .host = &host, .device = &device->common};
    return gpu_enter(device, &scope) == GPU_OK &&
                   stream_ctx_acquire(device, true, &work.ctx) == GPU_OK
               ? 0
               : -1;
}

static inline int end_work(void **state)
{
    (void)state;
    cuda_api = real;
    stream_ctx_wait(work.ctx);
    gpu_memory(&work)->drop(&work);
    stream_ctx_release(work.ctx, false);
    gpu_leave(&scope);
    failure_end(&outer);
    return 0;
}

#endif
