/*
 * Copies between host and device: of pinned memory, one way and both, and by columns, as those of
 * triangles are (gpu/pack/chunks.h); of pageable memory as the driver makes them, and what pinning
 * costs. And a copy within the device, for the rate of its memory.
 */
#include "driver.h"
#include "base/thread/clock.h"
#include "measure.h"

#include <stdio.h>

enum { ATTEMPTS = 6 }; /* the first one warms up; the best counts */

struct pair {
    CUdeviceptr device[2];
    void *host[2];
    CUstream stream[2];
    size_t size;
};

enum direction { UP = 1, DOWN = 2 };

static bool open_pair(struct pair *p, size_t size)
{
    *p = (struct pair){.size = size};
    for (int i = 0; i < 2; i++)
        if (!CUDA_OK(cuMemAlloc, &p->device[i], size) ||
            !CUDA_OK(cuMemHostAlloc, &p->host[i], size, 0) ||
            !CUDA_OK(cuStreamCreate, &p->stream[i], CU_STREAM_NON_BLOCKING) ||
            !CUDA_OK(cuMemsetD8Async, p->device[i], 1, size, p->stream[i]) ||
            !CUDA_OK(cuStreamSynchronize, p->stream[i]))
            return false;
    return true;
}

static void close_pair(struct pair *p)
{
    for (int i = 0; i < 2; i++) {
        if (p->stream[i])
            CUDA_OK(cuStreamDestroy, p->stream[i]);
        if (p->host[i])
            CUDA_OK(cuMemFreeHost, p->host[i]);
        if (p->device[i])
            CUDA_OK(cuMemFree, p->device[i]);
    }
}

/* Milliseconds of the best of some copies of `size` bytes, in the directions; negative for a
 * failure. */
static double copy_ms(struct pair *p, int directions, size_t size)
{
    double best = -1;
    for (int i = 0; i < ATTEMPTS; i++) {
        double start = accel_now_ms();
        if ((directions & UP &&
             !CUDA_OK(cuMemcpyHtoDAsync, p->device[0], p->host[0], size, p->stream[0])) ||
            (directions & DOWN &&
             !CUDA_OK(cuMemcpyDtoHAsync, p->host[1], p->device[1], size, p->stream[1])) ||
            !CUDA_OK(cuStreamSynchronize, p->stream[0]) ||
            !CUDA_OK(cuStreamSynchronize, p->stream[1]))
            return -1;
        double ms = accel_now_ms() - start;
        if (i > 0)
            best = measure_best(best, ms);
    }
    return best;
}

/* Each column of a 2D copy has so many bytes; on the device, columns are PITCH bytes apart. */
enum { PITCH = 1 << 15 };

/* Milliseconds of the best of some 2D copies; negative for a failure. */
static double pitched_ms(struct pair *p, bool up, size_t column)
{
    const CUDA_MEMCPY2D plane = {.srcMemoryType = up ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE,
                                 .srcHost = up ? p->host[0] : NULL,
                                 .srcDevice = up ? 0 : p->device[0],
                                 .srcPitch = up ? column : PITCH,
                                 .dstMemoryType = up ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST,
                                 .dstHost = up ? NULL : p->host[0],
                                 .dstDevice = up ? p->device[0] : 0,
                                 .dstPitch = up ? PITCH : column,
                                 .WidthInBytes = column,
                                 .Height = p->size / PITCH};
    double best = -1;
    for (int i = 0; i < ATTEMPTS; i++) {
        const double start = accel_now_ms();
        if (!CUDA_OK(cuMemcpy2DAsync, &plane, p->stream[0]) ||
            !CUDA_OK(cuStreamSynchronize, p->stream[0]))
            return -1;
        const double ms = accel_now_ms() - start;
        if (i > 0)
            best = measure_best(best, ms);
    }
    return best;
}

/* How short a column may be, so that a triangle's copies without what is beside it are the shorter
 * ones. */
static void measure_pitched(struct pair *p)
{
    char name[64];
    for (size_t column = 512; column <= 8192; column *= 2)
        for (int up = 1; up >= 0; up--) {
            snprintf(name, sizeof name, "pitched_%s_%zu", up ? "up" : "down", column);
            report_rate(name, pitched_ms(p, up, column), p->size / PITCH * column);
        }
}

static void measure_pinned(bool quick)
{
    struct pair p;
    const size_t size = quick ? 8 << 20 : 256 << 20, small = 4096;
    if (open_pair(&p, size)) {
        report_rate("pinned_up", copy_ms(&p, UP, size), size);
        report_rate("pinned_down", copy_ms(&p, DOWN, size), size);
        report_rate("pinned_both", copy_ms(&p, UP | DOWN, size), 2 * size);
        double up = copy_ms(&p, UP, small), down = copy_ms(&p, DOWN, small);
        if (up > 0 && down > 0) {
            report("small_copy_up", up * 1e3, "us");
            report("small_copy_down", down * 1e3, "us");
        } else {
            report_missing("small_copy_up", "");
        }
        measure_pitched(&p);
    } else {
        report_missing("pinned_up", "");
    }
    close_pair(&p);
}

/* A copy within the device reads each byte and writes it: both count. */
static void measure_device_memory(bool quick)
{
    struct pair p;
    const size_t size = quick ? 8 << 20 : 1 << 30;
    double best = -1;
    bool good = CUDA_OK(cuStreamCreate, &p.stream[0], CU_STREAM_NON_BLOCKING);
    if (!good) {
        report_missing("device_memory", "");
        return;
    }
    p.device[0] = p.device[1] = 0;
    for (int i = 0; good && i < 2; i++)
        good = CUDA_OK(cuMemAlloc, &p.device[i], size) &&
               CUDA_OK(cuMemsetD8Async, p.device[i], 1, size, p.stream[0]) &&
               CUDA_OK(cuStreamSynchronize, p.stream[0]);
    for (int i = 0; good && i < ATTEMPTS; i++) {
        const double start = accel_now_ms();
        good = CUDA_OK(cuMemcpyDtoDAsync, p.device[1], p.device[0], size, p.stream[0]) &&
               CUDA_OK(cuStreamSynchronize, p.stream[0]);
        const double ms = accel_now_ms() - start;
        if (i > 0)
            best = measure_best(best, ms);
    }
    report_rate("device_memory", good ? best : -1, 2 * size);
    for (int i = 0; i < 2; i++)
        if (p.device[i])
            CUDA_OK(cuMemFree, p.device[i]);
    CUDA_OK(cuStreamDestroy, p.stream[0]);
}

static void measure_pageable(bool quick)
{
    const size_t size = quick ? 8 << 20 : 256 << 20;
    double best[2] = {-1, -1};
    CUdeviceptr device = 0;
    void *host = touched_memory(size, false);
    bool good = host && CUDA_OK(cuMemAlloc, &device, size);
    for (int i = 0; good && i < ATTEMPTS; i++) {
        double start = accel_now_ms();
        good = CUDA_OK(cuMemcpyHtoD, device, host, size);
        double up = accel_now_ms();
        good = good && CUDA_OK(cuMemcpyDtoH, host, device, size);
        double ms[2] = {up - start, accel_now_ms() - up};
        for (int d = 0; d < 2; d++)
            if (i > 0)
                best[d] = measure_best(best[d], ms[d]);
    }
    if (good) {
        report_rate("pageable_up", best[0], size);
        report_rate("pageable_down", best[1], size);
    } else {
        report_missing("pageable_up", host ? "" : "no memory");
    }
    if (device)
        CUDA_OK(cuMemFree, device);
    if (host)
        touched_memory_free(host, size);
}

void measure_copies(bool quick)
{
    measure_pinned(quick);
    measure_pageable(quick);
    measure_device_memory(quick);
}

/* ---- Pinning ---- */

static void measure_registering(const char *kind, bool huge, size_t size)
{
    char name[64];
    void *host = touched_memory(size, huge);
    snprintf(name, sizeof name, "pin_%s_pages", kind);
    if (!host) {
        report_missing(name, "no memory");
        return;
    }
    double start = accel_now_ms();
    if (CUDA_OK(cuMemHostRegister, host, size, 0)) {
        double pinned = accel_now_ms();
        report(name, (pinned - start) / ((double)size * 1e-9), "ms/GB");
        snprintf(name, sizeof name, "unpin_%s_pages", kind);
        if (CUDA_OK(cuMemHostUnregister, host))
            report(name, (accel_now_ms() - pinned) / ((double)size * 1e-9), "ms/GB");
        else
            report_missing(name, "");
    } else {
        report_missing(name, "");
    }
    touched_memory_free(host, size);
}

void measure_pinning(bool quick)
{
    const size_t size = quick ? 16 << 20 : 1 << 30;
    if (!cuda.cuMemHostRegister || !cuda.cuMemHostUnregister) {
        report_missing("pin_small_pages", "the driver has no cuMemHostRegister");
        return;
    }
    measure_registering("small", false, size);
    measure_registering("huge", true, size);
}
