/*
 * cuda_program [-i interface] [-s seed] [-c count] [-n size] [-r routines]: a program that uses CUDA itself
 * and passes host, device and managed memory to BLAS, mixed in one call. Its own state must stay as
 * it was, and a graph capture of another thread must survive.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "calls.h"
#include "must.h"

static void *device_put(const void *bytes, size_t size)
{
    CUdeviceptr ptr;
    MUST(cuMemAlloc(&ptr, size));
    MUST(cuMemcpyHtoD(ptr, bytes, size));
    return (void *)(uintptr_t)ptr;
}

static void device_get(void *bytes, const void *from, size_t size)
{
    MUST(cuMemcpyDtoH(bytes, (CUdeviceptr)(uintptr_t)from, size));
}

static void *managed_put(const void *bytes, size_t size)
{
    CUdeviceptr ptr;
    MUST(cuMemAllocManaged(&ptr, size, CU_MEM_ATTACH_GLOBAL));
    memcpy((void *)(uintptr_t)ptr, bytes, size);
    return (void *)(uintptr_t)ptr;
}

static void managed_get(void *bytes, const void *from, size_t size)
{
    memcpy(bytes, from, size);
}

static void cuda_release(void *where)
{
    MUST(cuMemFree((CUdeviceptr)(uintptr_t)where));
}

static const struct test_memory device = {device_put, device_get, cuda_release};
static const struct test_memory managed = {managed_put, managed_get, cuda_release};

/* A stream that is capturing, in the strictest mode, while the calls run. */
static pthread_barrier_t capture_started, calls_done;

static void *capture(void *argument)
{
    CUstream stream;
    CUgraph graph = NULL;
    MUST(cuCtxSetCurrent(argument));
    MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    MUST(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    pthread_barrier_wait(&capture_started);
    pthread_barrier_wait(&calls_done);
    CUresult result = cuStreamEndCapture(stream, &graph);
    if (graph)
        cuGraphDestroy(graph);
    cuStreamDestroy(stream);
    return (void *)(uintptr_t)result;
}

int main(int argc, char **argv)
{
    struct test_options options;
    int at = test_options_read(&options, argc, argv), wrong = 0;
    if (at != argc)
        return 2;
    CUdevice gpu;
    CUcontext context = NULL, after = NULL;
    MUST(cuInit(0));
    MUST(cuDeviceGet(&gpu, 0));
    MUST(cuDevicePrimaryCtxRetain(&context, gpu));
    MUST(cuCtxSetCurrent(context));

    static const struct test_memory *const kinds[] = {NULL, &device, &managed};
    for (int mix = 0; mix < 27; mix++) {
        const struct test_memory *one = kinds[mix % 3], *two = kinds[mix / 3 % 3],
                                 *three = kinds[mix / 9];
        const struct test_memory *memory[ACCEL_MATRICES] = {
            [ACCEL_a] = one, [ACCEL_b] = two, [ACCEL_c] = three, [ACCEL_x] = two, [ACCEL_y] = three,
        };
        options.seed += 1;
        wrong += test_calls(&options, memory);
    }
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
    MUST(cuThreadExchangeStreamCaptureMode(&mode));
    bool mode_kept = mode == CU_STREAM_CAPTURE_MODE_GLOBAL; /* the default */
    MUST(cuThreadExchangeStreamCaptureMode(&mode));
    MUST(cuCtxGetCurrent(&after));

    /* Host operands alone: a sound program does not touch device memory of its own during a
     * capture. */
    pthread_t thread;
    void *captured;
    pthread_barrier_init(&capture_started, NULL, 2);
    pthread_barrier_init(&calls_done, NULL, 2);
    pthread_create(&thread, NULL, capture, context);
    pthread_barrier_wait(&capture_started);
    options.max_size *= 4; /* the pool has to grow */
    wrong += test_calls(&options, NULL);
    pthread_barrier_wait(&calls_done);
    pthread_join(thread, &captured);

    printf("%d calls wrong\n", wrong);
    printf("context %s\n", after == context ? "kept" : "changed");
    printf("capture mode %s\n", mode_kept ? "kept" : "changed");
    printf("capture %s\n", captured ? "broken" : "kept");
    MUST(cuDevicePrimaryCtxRelease(gpu));
    return wrong || after != context || !mode_kept || captured;
}
