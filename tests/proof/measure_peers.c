/*
 * Copies from one GPU to another that may use its memory: what they take says whether such copies
 * are worth more than a second one from the host. First of memory in pools that the other GPU may
 * use, as libaccel copies (gpu/cuda/lent_memory.h): peer_pool_A_B, from A to B by B's stream. Then
 * of all memory of contexts that may use each other's: peer_A_B. That access stays, so it comes
 * last.
 */
#include "driver.h"
#include "base/thread/clock.h"
#include "measure.h"

#include <stdio.h>
#include <stdlib.h>

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
        if (i > 0)
            best = measure_best(best, ms);
    }
    return best;
}

/* Returns whether they can, and says why there is no figure if not. */
static bool reach(struct ends *e, int from, int to, const char *name)
{
    int can = 0;
    if (!CUDA_OK(cuDeviceGet, &e->device[0], from) || !CUDA_OK(cuDeviceGet, &e->device[1], to) ||
        !CUDA_OK(cuDeviceCanAccessPeer, &can, e->device[0], e->device[1]) ||
        (can && !CUDA_OK(cuDeviceCanAccessPeer, &can, e->device[1], e->device[0])))
        report_missing(name, "");
    else if (!can)
        report_missing(name, "these GPUs cannot reach each other's memory");
    return can;
}

static void measure_pair(int from, int to, size_t size)
{
    struct ends e = {{0}, {0}, {0}, NULL};
    char name[32];
    snprintf(name, sizeof name, "peer_%d_%d", from, to);
    if (!reach(&e, from, to, name))
        return;
    const double ms = open_ends(&e, size) ? copy_ms(&e, size) : -1;
    close_ends(&e);
    report_rate(name, ms, size);
}

/* ---- Memory of pools ---- */

struct pools {
    struct ends ends;
    CUmemoryPool pool[2];
    CUstream stream[2];
};

/* A pool of one device that the other one may use, and memory of it, all of whose bytes are
 * `value`. */
static bool open_pool(struct pools *p, int i, size_t size, unsigned char value)
{
    struct ends *e = &p->ends;
    const CUmemPoolProps properties = {
        .allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
        .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = e->device[i]}};
    const CUmemAccessDesc access = {
        .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = e->device[!i]},
        .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    return CUDA_OK(cuDevicePrimaryCtxRetain, &e->context[i], e->device[i]) &&
           CUDA_OK(cuCtxSetCurrent, e->context[i]) &&
           CUDA_OK(cuStreamCreate, &p->stream[i], CU_STREAM_NON_BLOCKING) &&
           CUDA_OK(cuMemPoolCreate, &p->pool[i], &properties) &&
           CUDA_OK(cuMemPoolSetAccess, p->pool[i], &access, 1) &&
           CUDA_OK(cuMemAllocFromPoolAsync, &e->memory[i], size, p->pool[i], p->stream[i]) &&
           CUDA_OK(cuMemsetD8Async, e->memory[i], value, size, p->stream[i]) &&
           CUDA_OK(cuStreamSynchronize, p->stream[i]);
}

static void close_pools(struct pools *p)
{
    struct ends *e = &p->ends;
    for (int i = 0; i < 2 && e->context[i]; i++) {
        if (CUDA_OK(cuCtxSetCurrent, e->context[i])) {
            if (e->memory[i] && CUDA_OK(cuMemFreeAsync, e->memory[i], p->stream[i]))
                CUDA_OK(cuStreamSynchronize, p->stream[i]);
            if (p->pool[i])
                CUDA_OK(cuMemPoolDestroy, p->pool[i]);
            if (p->stream[i])
                CUDA_OK(cuStreamDestroy, p->stream[i]);
        }
        CUDA_OK(cuDevicePrimaryCtxRelease, e->device[i]);
    }
    driver_enter();
}

/* As copy_ms(), by the second one's stream; its context is the current one. */
static double pool_copy_ms(const struct pools *p, size_t size)
{
    double best = -1;
    for (int i = 0; i < ATTEMPTS; i++) {
        const double start = accel_now_ms();
        if (!CUDA_OK(cuMemcpyDtoDAsync, p->ends.memory[1], p->ends.memory[0], size, p->stream[1]) ||
            !CUDA_OK(cuStreamSynchronize, p->stream[1]))
            return -1;
        const double ms = accel_now_ms() - start;
        if (i > 0)
            best = measure_best(best, ms);
    }
    return best;
}

/* Returns whether all bytes of the second one's memory are `value`: drivers are known that copy
 * nothing (gpu/cuda/lent_memory.h). */
static bool has_arrived(const struct pools *p, size_t size, unsigned char value)
{
    unsigned char *seen = malloc(size);
    size_t right = 0;
    if (seen && CUDA_OK(cuMemcpyDtoH, seen, p->ends.memory[1], size))
        while (right < size && seen[right] == value)
            right++;
    free(seen);
    return right == size;
}

static void measure_pool(int from, int to, size_t size)
{
    struct pools p = {.stream = {NULL}};
    char name[32];
    snprintf(name, sizeof name, "peer_pool_%d_%d", from, to);
    if (!reach(&p.ends, from, to, name))
        return;
    const double ms =
        open_pool(&p, 0, size, 0xa5) && open_pool(&p, 1, size, 0) ? pool_copy_ms(&p, size) : -1;
    const bool right = ms > 0 && has_arrived(&p, size, 0xa5);
    close_pools(&p);
    if (ms > 0 && !right)
        report_missing(name, "what arrives is wrong");
    else
        report_rate(name, ms, size);
}

/* ---- All pairs ---- */

static void measure_pairs(int count, size_t size, void measure(int from, int to, size_t size))
{
    for (int from = 0; from < count; from++)
        for (int to = from + 1; to < count; to++)
            measure(from, to, size);
}

static bool has_pools(void)
{
    return cuda.cuDeviceCanAccessPeer && cuda.cuMemPoolCreate && cuda.cuMemPoolDestroy &&
           cuda.cuMemPoolSetAccess && cuda.cuMemAllocFromPoolAsync && cuda.cuMemFreeAsync;
}

void measure_peers(bool quick)
{
    const size_t size = quick ? 8 << 20 : 256 << 20;
    int count = 0;
    if (!CUDA_OK(cuDeviceGetCount, &count)) {
        report_missing("peer_0_1", "");
        return;
    }
    if (count < 2) {
        report_missing("peer_0_1", "the machine has one GPU");
        return;
    }
    if (has_pools())
        measure_pairs(count, size, measure_pool);
    else
        report_missing("peer_pool_0_1", "the driver has no memory pools");
    if (cuda.cuDeviceCanAccessPeer && cuda.cuCtxEnablePeerAccess && cuda.cuMemcpyPeerAsync)
        measure_pairs(count, size, measure_pair);
    else
        report_missing("peer_0_1", "the driver has no copies between GPUs");
}
