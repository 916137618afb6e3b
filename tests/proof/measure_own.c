/*
 * libaccel's own copies of operands in the program's memory (gpu/staging.h), with the threads that help: beside pinned copies, and
 * beside those of measure_staged.c.
 */
#include "base/clock.h"
#include "gpu/cuda/device.h"
#include "measure.h"

#include <stdio.h>
#include <stdlib.h>

enum { PASSES = 4 }; /* the first warms up */

static void time_copies(struct gpu_lane *lane, CUdeviceptr memory,
                        const struct lane_rectangle *host, const char *shape)
{
    const double bytes = (double)(host->rows * host->cols * host->size);
    double up_ms = 1e30, down_ms = 1e30;
    int64_t done_cols, done_rows;
    char name[64];
    for (int pass = 0; pass < PASSES; pass++) {
        double start = accel_now_ms();
        if (lane_upload(lane, memory, host->rows, host) != GPU_OK || lane_wait(lane) != GPU_OK)
            break;
        double up = accel_now_ms();
        if (lane_download(lane, host, memory, host->rows, &done_cols, &done_rows) != GPU_OK)
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

static void measure_on(struct cuda_device *device, char *host, int64_t size)
{
    struct gpu_scope scope;
    struct gpu_lane *lane;
    struct failure outer;
    CUdeviceptr memory;
    bool grew;
    failure_begin(&outer);
    if (gpu_enter(device, &scope) != GPU_OK || lane_acquire(device, &lane) != GPU_OK ||
        pool_get(device, size, &memory, &grew) != GPU_OK) {
        report_missing("libaccel_up", failure_noted()->text);
        return;
    }
    const int64_t n = size / 8, rows = 1000;
    const struct lane_rectangle whole = lane_whole(host, n / 1024, 1024, n / 1024, 8),
                                columns = lane_whole(host, rows, n / (rows + 24), rows + 24, 8),
                                panel = lane_whole(host, 1 << 16, 2, 1 << 16, 8);
    time_copies(lane, memory, &whole, "");
    time_copies(lane, memory, &columns, "_columns");
    time_copies(lane, memory, &panel, "_1_mib");
    pool_put(device, memory);
    lane_release(lane, false);
    gpu_leave(&scope);
    failure_end(&outer);
}

/* By the measurement of `accel calibrate`: of 134 MB, as much goes each way as takes the same time. */
static void measure_both(struct gpu_device *device)
{
    struct gpu_copy_rates rates;
    if (!gpu_measure_copies(device, &rates))
        report_missing("libaccel_both", gpu_failure(device));
    else if (rates.both_gbps > 0)
        report("libaccel_both", rates.both_gbps, "GB/s");
    else
        report_missing("libaccel_both", "no memory");
}

void measure_own_copies(bool quick)
{
    const struct gpu_config config = {.memory_share = 0.5, .cuda_dir = getenv("ACCEL_CUDA_DIR")};
    const size_t size = quick ? 16 << 20 : 512 << 20;
    char why[GPU_FAILURE_BYTES], *host = touched_memory(size, false);
    struct gpu_device *device = host ? gpu_start(&config, why) : NULL;
    if (device) {
        measure_on(cuda_device_of(device), host, (int64_t)size);
        measure_both(device);
        gpu_stop(device);
    } else {
        report_missing("libaccel_up", host ? why : "no memory");
        report_missing("libaccel_both", host ? why : "no memory");
    }
    if (host)
        touched_memory_free(host, size);
}
