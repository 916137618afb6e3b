/*
 * Copies from one GPU to another that may use its memory: what they take says whether such copies are worth more than a second one from the host.
 */
#include "driver.h"
#include "base/clock.h"
#include "measure.h"

#include <stdio.h>

enum { ATTEMPTS = 6 }; /* the first one warms up; the best counts */

/* Two devices, with memory on each. */
struct ends {
    CUdevice device[2];
    CUcontext context[2];
    CUdeviceptr memory[2];
    CUstream stream; /* of the first */
};

static bool open_ends(struct ends *e, size_t size)
{
    for (int i = 0; i < 2; i++)
        if (!CUDA_OK(cuDevicePrimaryCtxRetain, &e->context[i], e->device[i]) ||
            !CUDA_OK(cuCtxSetCurrent, e->context[i]) || !CUDA_OK(cuMemAlloc, &e->memory[i], size))
            return false;
    return CUDA_OK(cuCtxEnablePeerAccess, e->context[0], 0) &&
           CUDA_OK(cuCtxSetCurrent, e->context[0]) &&
           CUDA_OK(cuCtxEnablePeerAccess, e->context[1], 0) &&
           CUDA_OK(cuStreamCreate, &e->stream, CU_STREAM_NON_BLOCKING) &&
           CUDA_OK(cuMemsetD8Async, e->memory[0], 1, size, e->stream) &&
           CUDA_OK(cuStreamSynchronize, e->stream);
}

static void close_ends(struct ends *e)
{
    for (int i = 0; i < 2 && e->context[i]; i++) {
        if (CUDA_OK(cuCtxSetCurrent, e->context[i])) {
            if (i == 0 && e->stream)
                CUDA_OK(cuStreamDestroy, e->stream);
            if (e->memory[i])
                CUDA_OK(cuMemFree, e->memory[i]);
        }
        CUDA_OK(cuDevicePrimaryCtxRelease, e->device[i]);
    }
    driver_enter();
}

/* Milliseconds of the best of some copies from the first to the second; negative for a failure. */
static double copy_ms(const struct ends *e, size_t size)
{
    double best = -1;
    for (int i = 0; i < ATTEMPTS; i++) {
        const double start = accel_now_ms();
        if (!CUDA_OK(cuMemcpyPeerAsync, e->memory[1], e->context[1], e->memory[0], e->context[0],
                     size, e->stream) ||
            !CUDA_OK(cuStreamSynchronize, e->stream))
            return -1;
        const double ms = accel_now_ms() - start;
        if (i > 0 && (best < 0 || ms < best))
            best = ms;
    }
    return best;
}

static void measure_pair(int from, int to, size_t size)
{
    struct ends e = {{0}, {0}, {0}, NULL};
    char name[32];
    int can = 0;
    snprintf(name, sizeof name, "peer_%d_%d", from, to);
    if (!CUDA_OK(cuDeviceGet, &e.device[0], from) || !CUDA_OK(cuDeviceGet, &e.device[1], to) ||
        !CUDA_OK(cuDeviceCanAccessPeer, &can, e.device[0], e.device[1])) {
        report_missing(name, "");
        return;
    }
    if (!can) {
        report_missing(name, "these GPUs cannot reach each other's memory");
        return;
    }
    const double ms = open_ends(&e, size) ? copy_ms(&e, size) : -1;
    close_ends(&e);
    if (ms > 0)
        report(name, (double)size * 1e-6 / ms, "GB/s");
    else
        report_missing(name, "");
}

void measure_peers(bool quick)
{
    int count = 0;
    if (!CUDA_OK(cuDeviceGetCount, &count)) {
        report_missing("peer_0_1", "");
        return;
    }
    if (count < 2) {
        report_missing("peer_0_1", "the machine has one GPU");
        return;
    }
    if (!cuda.cuDeviceCanAccessPeer || !cuda.cuCtxEnablePeerAccess || !cuda.cuMemcpyPeerAsync) {
        report_missing("peer_0_1", "the driver has no copies between GPUs");
        return;
    }
    for (int from = 0; from < count; from++)
        for (int to = from + 1; to < count; to++)
            measure_pair(from, to, quick ? 8 << 20 : 256 << 20);
}
