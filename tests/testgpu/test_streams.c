/* Order, or the lack of it. */
#include <string.h>
#include <stdint.h>
#include "test_testgpu.h"

static int stale_without_a_wait(void)
{
    CUdeviceptr device;
    CUstream stream;
    struct gate gate;
    char host[4] = "one", back[4] = "old";
    begin();
    OK(cuMemAlloc(&device, 4));
    OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    OK(gate_close(&gate, stream));
    OK(cuMemcpyHtoDAsync(device, host, 4, stream));
    OK(cuMemcpyDtoHAsync(back, device, 4, stream));
    CHECK(strcmp(back, "old") == 0);
    /* Pageable or not, the source is read when the copy runs. */
    memcpy(host, "two", 4);
    CHECK(cuStreamQuery(stream) == CUDA_ERROR_NOT_READY);
    gate_open(&gate);
    OK(cuStreamSynchronize(stream));
    CHECK(strcmp(back, "two") == 0);
    OK(cuStreamQuery(stream));
    OK(cuStreamDestroy(stream));
    OK(cuMemFree(device));
    return 0;
}

static int order_in_a_stream(void)
{
    enum { ROUNDS = 200 };
    CUdeviceptr device;
    CUstream stream;
    unsigned char back[ROUNDS];
    begin();
    OK(cuMemAlloc(&device, 1));
    OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    for (int i = 0; i < ROUNDS; i++) {
        OK(cuMemsetD8Async(device, (unsigned char)i, 1, stream));
        OK(cuMemcpyDtoHAsync(&back[i], device, 1, stream));
    }
    OK(cuStreamSynchronize(stream));
    for (int i = 0; i < ROUNDS; i++)
        CHECK(back[i] == i);
    OK(cuStreamDestroy(stream));
    OK(cuMemFree(device));
    return 0;
}

static int event_across_streams(void)
{
    enum { ROUNDS = 50 };
    CUdeviceptr device;
    CUstream first, second;
    CUevent written, read;
    unsigned char back[ROUNDS];
    begin();
    OK(cuMemAlloc(&device, 1));
    OK(cuStreamCreate(&first, CU_STREAM_NON_BLOCKING));
    OK(cuStreamCreateWithPriority(&second, CU_STREAM_NON_BLOCKING, -1));
    OK(cuEventCreate(&written, CU_EVENT_DISABLE_TIMING));
    OK(cuEventCreate(&read, CU_EVENT_DISABLE_TIMING));
    for (int i = 0; i < ROUNDS; i++) {
        OK(cuStreamWaitEvent(first, read, 0)); /* not recorded the first time: no wait */
        OK(cuMemsetD8Async(device, (unsigned char)i, 1, first));
        OK(cuEventRecord(written, first));
        OK(cuStreamWaitEvent(second, written, 0));
        OK(cuMemcpyDtoHAsync(&back[i], device, 1, second));
        OK(cuEventRecord(read, second));
    }
    OK(cuEventSynchronize(read));
    for (int i = 0; i < ROUNDS; i++)
        CHECK(back[i] == i);
    OK(cuEventDestroy(written));
    OK(cuEventDestroy(read));
    OK(cuStreamDestroy(first));
    OK(cuStreamDestroy(second));
    OK(cuMemFree(device));
    return 0;
}

/* A wait stands for the record before it, not for later ones. */
static int event_of_the_moment(void)
{
    CUstream first, second;
    CUevent event;
    struct gate gate;
    begin();
    OK(cuStreamCreate(&first, CU_STREAM_NON_BLOCKING));
    OK(cuStreamCreate(&second, CU_STREAM_NON_BLOCKING));
    OK(cuEventCreate(&event, 0));
    OK(cuEventQuery(event));
    OK(cuEventSynchronize(event));
    OK(cuEventRecord(event, first));
    OK(cuStreamWaitEvent(second, event, 0));
    OK(gate_close(&gate, first));
    OK(cuEventRecord(event, first));
    OK(cuStreamSynchronize(second));
    CHECK(cuEventQuery(event) == CUDA_ERROR_NOT_READY);
    gate_open(&gate);
    OK(cuEventSynchronize(event));
    OK(cuEventQuery(event));
    OK(cuStreamDestroy(first));
    OK(cuStreamDestroy(second));
    OK(cuEventDestroy(event));
    return 0;
}

static int event_times(void)
{
    CUevent start, end, untimed;
    CUdeviceptr device;
    struct gate gate;
    float ms = -1;
    begin();
    OK(cuMemAlloc(&device, 1));
    OK(cuEventCreate(&start, 0));
    OK(cuEventCreate(&end, 0));
    OK(cuEventCreate(&untimed, CU_EVENT_DISABLE_TIMING));
    CHECK(cuEventElapsedTime(&ms, start, end) == CUDA_ERROR_INVALID_HANDLE);
    OK(cuEventRecord(start, NULL));
    OK(gate_close(&gate, NULL));
    OK(cuMemsetD8Async(device, 1, 1, NULL));
    OK(cuEventRecord(end, NULL));
    OK(cuEventRecord(untimed, NULL));
    CHECK(cuEventElapsedTime(&ms, start, end) == CUDA_ERROR_NOT_READY);
    gate_open(&gate);
    OK(cuEventSynchronize(untimed));
    OK(cuEventElapsedTime(&ms, start, end));
    CHECK(ms >= 0);
    CHECK(cuEventElapsedTime(&ms, start, untimed) == CUDA_ERROR_INVALID_HANDLE);
    OK(cuEventDestroy(start));
    OK(cuEventDestroy(end));
    OK(cuEventDestroy(untimed));
    OK(cuMemFree(device));
    return 0;
}

static int legacy_waits_for_blocking(void)
{
    CUstream blocking, free_running;
    CUevent legacy, after;
    struct gate gate;
    begin();
    OK(cuStreamCreate(&blocking, CU_STREAM_DEFAULT));
    OK(cuStreamCreate(&free_running, CU_STREAM_NON_BLOCKING));
    OK(cuEventCreate(&legacy, 0));
    OK(cuEventCreate(&after, 0));
    OK(gate_close(&gate, blocking));
    OK(cuEventRecord(legacy, NULL));
    OK(cuEventRecord(after, free_running));
    OK(cuEventSynchronize(after)); /* not held up */
    CHECK(cuEventQuery(legacy) == CUDA_ERROR_NOT_READY);
    gate_open(&gate);
    OK(cuEventSynchronize(legacy));
    OK(gate_close(&gate, CU_STREAM_LEGACY));
    OK(cuEventRecord(after, blocking));
    OK(cuEventRecord(legacy, free_running));
    OK(cuEventSynchronize(legacy));
    CHECK(cuEventQuery(after) == CUDA_ERROR_NOT_READY);
    gate_open(&gate);
    OK(cuEventSynchronize(after));
    OK(cuEventDestroy(legacy));
    OK(cuEventDestroy(after));
    OK(cuStreamDestroy(blocking));
    OK(cuStreamDestroy(free_running));
    return 0;
}

static int synchronous_copy_does_not_wait_for_others(void)
{
    CUdeviceptr device;
    CUstream free_running;
    struct gate gate;
    char back = 'x';
    begin();
    OK(cuMemAlloc(&device, 1));
    OK(cuMemcpyHtoD(device, "a", 1));
    OK(cuStreamCreate(&free_running, CU_STREAM_NON_BLOCKING));
    OK(gate_close(&gate, free_running));
    OK(cuMemcpyHtoDAsync(device, "b", 1, free_running));
    OK(cuMemcpyDtoH(&back, device, 1));
    CHECK(back == 'a');
    gate_open(&gate);
    OK(cuCtxSynchronize());
    OK(cuMemcpyDtoH(&back, device, 1));
    CHECK(back == 'b');
    OK(cuStreamDestroy(free_running));
    OK(cuMemFree(device));
    return 0;
}

static int destroyed_handles(void)
{
    CUstream stream;
    CUevent event;
    CUcontext context = begin();
    int stray;
    OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    OK(cuEventCreate(&event, 0));
    OK(cuStreamDestroy(stream));
    OK(cuEventDestroy(event));
    CHECK(cuStreamSynchronize(stream) == CUDA_ERROR_INVALID_HANDLE);
    CHECK(cuStreamDestroy(stream) == CUDA_ERROR_INVALID_HANDLE);
    CHECK(cuEventRecord(event, NULL) == CUDA_ERROR_INVALID_HANDLE);
    CHECK(cuEventDestroy((CUevent)&stray) == CUDA_ERROR_INVALID_HANDLE);
    OK(cuDevicePrimaryCtxRelease(0));
    CHECK(cuStreamCreate(&stream, 0) == CUDA_ERROR_CONTEXT_IS_DESTROYED);
    CHECK(cuCtxPushCurrent(context) == CUDA_ERROR_CONTEXT_IS_DESTROYED);
    return 0;
}

static int work_on_destroyed_stream(void)
{
    CUdeviceptr device;
    CUstream stream;
    struct gate gate;
    char back = 'x';
    begin();
    OK(cuMemAlloc(&device, 1));
    OK(cuMemcpyHtoD(device, "a", 1));
    OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    OK(gate_close(&gate, stream));
    OK(cuMemcpyDtoHAsync(&back, device, 1, stream));
    OK(cuStreamDestroy(stream));
    gate_open(&gate);
    OK(cuCtxSynchronize());
    CHECK(back == 'a'); /* as in CUDA, the work is still done */
    return 0;
}

static int an_error_drops_pending_work(void)
{
    CUdeviceptr device;
    CUstream failing, other;
    static struct gate gate; /* a failed context waits for no gate */
    char back[4] = "old";
    begin();
    OK(cuMemAlloc(&device, 4));
    OK(cuStreamCreate(&failing, CU_STREAM_NON_BLOCKING));
    OK(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
    OK(gate_close(&gate, other));
    OK(cuMemcpyDtoHAsync(back, device, 4, other));
    OK(cuMemcpyDtoHAsync(back, device, 5, failing));
    CHECK(cuStreamSynchronize(failing) == CUDA_ERROR_ILLEGAL_ADDRESS);
    gate_open(&gate);
    CHECK(cuStreamSynchronize(other) == CUDA_ERROR_ILLEGAL_ADDRESS);
    CHECK(strcmp(back, "old") == 0);
    return 0;
}

static int contexts(void)
{
    CUcontext primary = begin(), other, current, popped;
    CUdevice device;
    CUstream stream;
    CUdeviceptr memory;
    unsigned flags;
    int active;
    OK(cuStreamCreate(&stream, 0));
    OK(cuMemAlloc(&memory, 8));
    OK(cuCtxCreate(&other, NULL, 0, 0));
    OK(cuCtxGetCurrent(&current));
    CHECK(current == other);
    OK(cuCtxGetDevice(&device));
    CHECK(device == 0);
    CHECK(cuMemsetD8Async(memory, 0, 1, stream) == CUDA_ERROR_INVALID_HANDLE);
    CHECK(cuMemFree(memory) == CUDA_ERROR_INVALID_VALUE);
    OK(cuStreamGetCtx(stream, &current));
    CHECK(current == primary);
    OK(cuCtxDestroy(other));
    OK(cuCtxGetCurrent(&current));
    CHECK(current == primary);
    OK(cuMemFree(memory));
    OK(cuCtxPopCurrent(&popped));
    CHECK(popped == primary);
    OK(cuDevicePrimaryCtxGetState(0, &flags, &active));
    CHECK(active == 1);
    OK(cuDevicePrimaryCtxRelease(0));
    OK(cuDevicePrimaryCtxGetState(0, &flags, &active));
    CHECK(active == 0);
    CHECK(cuDevicePrimaryCtxRelease(0) == CUDA_ERROR_INVALID_CONTEXT);
    return 0;
}

const struct scenario stream_scenarios[] = {
    {"stale_without_a_wait", stale_without_a_wait, {0}, {"call name=cuStreamQuery n=2 failed=0"}},
    {"order_in_a_stream", order_in_a_stream, {0}, {"d2h_bytes=200"}},
    {"event_across_streams", event_across_streams, {0}, {"events=0"}},
    {"event_of_the_moment", event_of_the_moment, {0}, {0}},
    {"event_times", event_times, {0}, {0}},
    {"legacy_waits_for_blocking", legacy_waits_for_blocking, {0}, {0}},
    {"synchronous_copy_does_not_wait_for_others",
     synchronous_copy_does_not_wait_for_others,
     {0},
     {0}},
    {"destroyed_handles",
     destroyed_handles,
     {0},
     {"fault what=destroyed_stream", "fault what=destroyed_event", "fault what=unknown_event",
      "fault what=destroyed_context", "faults n=6\n"}},
    {"work_on_destroyed_stream",
     work_on_destroyed_stream,
     {0},
     {"fault what=work_on_destroyed_stream", "faults n=1\n"}},
    {"an_error_drops_pending_work", an_error_drops_pending_work, {0}, {"fault what=illegal"}},
    {"contexts",
     contexts,
     {0},
     {"fault what=stream_of_another_context", "fault what=pointer_of_another_context",
      "fault what=primary_context_over_released", "faults n=3\n"}},
    {0},
};
