/*
 * libaccel's own copies of operands in the program's memory (gpu/device/copies.h), with the
 * threads that help: beside pinned copies, and beside those of measure_staged.c. Also one way by
 * one calling thread, and the other way by another one at the same time: what both get together is
 * what the threads that help can pack and unpack, if the link has more.
 */
#include "base/thread/clock.h"
#include "gpu/cuda/device.h"
#include "measure.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { PASSES = 4 }; /* the first warms up */

static void time_copies(struct stream_ctx *ctx, CUdeviceptr memory,
                        const struct host_rectangle *host, const char *shape)
{
    const double bytes = (double)(host->rows * host->cols * host->size);
    double up_ms = 1e30, down_ms = 1e30;
    int64_t done_cols, done_rows;
    char name[64];
    for (int pass = 0; pass < PASSES; pass++) {
        double start = accel_now_ms();
        if (stream_ctx_upload(ctx, (struct dmat){memory, host->rows}, host) != GPU_OK ||
            stream_ctx_wait(ctx) != GPU_OK)
            break;
        double up = accel_now_ms();
        if (stream_ctx_download(ctx, host, (struct dmat){memory, host->rows}, &done_cols,
                                &done_rows) != GPU_OK)
            break;
        double down = accel_now_ms();
        if (pass == 0)
            continue;
        up_ms = up - start < up_ms ? up - start : up_ms;
        down_ms = down - up < down_ms ? down - up : down_ms;
    }
    for (int up = 1; up >= 0; up--) {
        snprintf(name, sizeof name, "libaccel_%s%s", up ? "up" : "down", shape);
        if (up_ms < 1e30)
            report(name, bytes * 1e-6 / (up ? up_ms : down_ms), "GB/s");
        else
            report_missing(name, failure_noted()->text);
    }
}

/* ---- Both ways at once ---- */

/* One way, by a thread of its own. Both threads go through every pass, so that neither waits for
 * one that has failed. */
struct way {
    struct cuda_device *device;
    struct host_rectangle host;
    bool up, good;
    pthread_barrier_t *barrier;
};

static bool copy_way(const struct way *way, struct stream_ctx *ctx, CUdeviceptr memory)
{
    int64_t done_cols, done_rows;
    return way->up ? stream_ctx_upload(ctx, (struct dmat){memory, way->host.rows}, &way->host) ==
                             GPU_OK &&
                         stream_ctx_wait(ctx) == GPU_OK
                   : stream_ctx_download(ctx, &way->host, (struct dmat){memory, way->host.rows},
                                         &done_cols, &done_rows) == GPU_OK;
}

static void *run_way(void *argument)
{
    struct way *way = argument;
    const int64_t bytes = way->host.rows * way->host.cols * way->host.size;
    struct gpu_scope scope;
    struct stream_ctx *ctx = NULL;
    struct failure outer;
    CUdeviceptr memory = 0;
    bool grew;
    failure_begin(&outer);
    const bool entered = gpu_enter(way->device, &scope) == GPU_OK;
    way->good = entered && stream_ctx_acquire(way->device, true, &ctx) == GPU_OK &&
                pool_get(way->device, bytes, &memory, &grew) == GPU_OK;
    for (int pass = 0; pass < PASSES; pass++) {
        pthread_barrier_wait(way->barrier);
        way->good = way->good && copy_way(way, ctx, memory);
        pthread_barrier_wait(way->barrier);
    }
    if (memory)
        pool_put(way->device, memory);
    if (ctx)
        stream_ctx_release(ctx, !way->good);
    if (entered)
        gpu_leave(&scope);
    failure_end(&outer);
    return NULL;
}

/* Columns of 8 KB; each way has half of the host's memory. */
static void measure_both(struct cuda_device *device, char *host, int64_t size)
{
    const int64_t cols = size / 2 / 8192;
    pthread_barrier_t barrier;
    pthread_t thread[2];
    struct way way[2];
    double best = -1;
    pthread_barrier_init(&barrier, NULL, 3);
    for (int i = 0; i < 2; i++) {
        way[i] = (struct way){.device = device,
                              .host = host_whole(host + i * (size / 2), 1024, cols, 1024, 8),
                              .up = i == 0,
                              .barrier = &barrier};
        if (pthread_create(&thread[i], NULL, run_way, &way[i]) != 0) {
            /* One that runs waits for the other; the process ends with the failure said. */
            report_missing("libaccel_both", "no thread can be started");
            _Exit(1);
        }
    }
    for (int pass = 0; pass < PASSES; pass++) {
        const double start = accel_now_ms();
        pthread_barrier_wait(&barrier);
        pthread_barrier_wait(&barrier);
        if (pass > 0)
            best = measure_best(best, accel_now_ms() - start);
    }
    for (int i = 0; i < 2; i++)
        pthread_join(thread[i], NULL);
    pthread_barrier_destroy(&barrier);
    if (way[0].good && way[1].good)
        report("libaccel_both", (double)(2 * 8192 * cols) * 1e-6 / best, "GB/s");
    else
        report_missing("libaccel_both", "a copy failed");
}

static void measure_on(struct cuda_device *device, char *host, int64_t size)
{
    struct gpu_scope scope;
    struct stream_ctx *ctx;
    struct failure outer;
    CUdeviceptr memory;
    bool grew;
    failure_begin(&outer);
    if (gpu_enter(device, &scope) != GPU_OK || stream_ctx_acquire(device, true, &ctx) != GPU_OK ||
        pool_get(device, size, &memory, &grew) != GPU_OK) {
        report_missing("libaccel_up", failure_noted()->text);
        return;
    }
    const int64_t n = size / 8, rows = 1000;
    const struct host_rectangle whole = host_whole(host, n / 1024, 1024, n / 1024, 8),
                                columns = host_whole(host, rows, n / (rows + 24), rows + 24, 8),
                                panel = host_whole(host, 1 << 16, 2, 1 << 16, 8);
    /* Blocks of rows of a matrix of order 4096, as schedules bring them. */
    static const struct {
        int64_t rows;
        const char *suffix;
    } blocks[] = {{256, "_columns_2_kb"}, {640, "_columns_5_kb"}, {1024, "_columns_8_kb"}};
    time_copies(ctx, memory, &whole, "");
    time_copies(ctx, memory, &columns, "_columns");
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) {
        const struct host_rectangle block =
            host_whole(host, blocks[i].rows, n / 4096, 4096, sizeof(double));
        time_copies(ctx, memory, &block, blocks[i].suffix);
    }
    time_copies(ctx, memory, &panel, "_1_mib");
    pool_put(device, memory);
    stream_ctx_release(ctx, false);
    gpu_leave(&scope);
    failure_end(&outer);
}

void measure_own_copies(bool quick)
{
    const struct gpu_config config = {.memory_share = 0.5, .cuda_dir = getenv("ACCEL_CUDA_DIR")};
    const size_t size = quick ? 16 << 20 : 512 << 20;
    char why[GPU_FAILURE_BYTES], *host = touched_memory(size, false);
    struct gpu_device *device = host ? gpu_start(&config, why) : NULL;
    if (device) {
        measure_on(cuda_device_of(device), host, (int64_t)size);
        measure_both(cuda_device_of(device), host, (int64_t)size);
        gpu_stop(device);
    } else {
        report_missing("libaccel_up", host ? why : "no memory");
        report_missing("libaccel_both", host ? why : "no memory");
    }
    if (host)
        touched_memory_free(host, size);
}
