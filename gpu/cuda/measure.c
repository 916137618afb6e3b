/* Measures how fast operands come up to the device and go back, and by which pieces. */
#include "base/clock.h"
#include "device.h"

#include <stdlib.h>

/* Of doubles: 134 MB, some times in a row, beside which the start of a copy does not count. The size of a piece counts for copies of some megabytes: larger
 * ones have larger pieces anyway. */
enum { ROWS = 2048, COLS = 8192, IN_A_ROW = 4, COLS_OF_SOME = 512 };

/* The first attempt warms up. What else the machine does disturbs several in a row, so there are many, as far as they take no longer than this. */
enum { LEAST_ATTEMPTS = 4, MOST_ATTEMPTS = 16 };
#define ATTEMPTS_MS 150.0

/* Another size takes the place of the usual one if it is faster by this. */
#define PIECE_GAIN 1.05

/* Returns whether to go on after so many attempts, which began then. */
static bool once_more(int attempts, double begun_ms)
{
    return attempts < LEAST_ATTEMPTS ||
           (attempts < MOST_ATTEMPTS && accel_now_ms() - begun_ms < ATTEMPTS_MS);
}

/* Copies up, so many times in a row. */
static enum gpu_status copy_up(struct gpu_lane *lane, CUdeviceptr device,
                               const struct lane_rectangle *r, int times)
{
    enum gpu_status status = GPU_OK;
    for (int i = 0; status == GPU_OK && i < times; i++)
        status = lane_upload(lane, device, ROWS, r);
    return status == GPU_OK ? lane_wait(lane) : status;
}

static enum gpu_status copy_down(struct gpu_lane *lane, CUdeviceptr device,
                                 const struct lane_rectangle *r, int times)
{
    int64_t done_cols, done_rows;
    enum gpu_status status = GPU_OK;
    for (int i = 0; status == GPU_OK && i < times; i++)
        status = lane_download(lane, r, device, ROWS, &done_cols, &done_rows);
    return status;
}

/* Times copies of so many columns each way, so many times in a row, and returns what one of the best took, in milliseconds. */
static enum gpu_status time_copies(struct gpu_lane *lane, CUdeviceptr device, char *host,
                                   int64_t cols, int times, double *up_ms, double *down_ms)
{
    const struct lane_rectangle r = lane_whole(host, ROWS, cols, ROWS, sizeof(double));
    enum gpu_status status = GPU_OK;
    const double begun = accel_now_ms();
    *up_ms = *down_ms = 1e30;
    for (int i = 0; status == GPU_OK && once_more(i, begun); i++) {
        const double start = accel_now_ms();
        status = copy_up(lane, device, &r, times);
        const double up = accel_now_ms();
        if (status == GPU_OK)
            status = copy_down(lane, device, &r, times);
        const double down = accel_now_ms();
        if (i == 0)
            continue;
        *up_ms = up - start < *up_ms * times ? (up - start) / times : *up_ms;
        *down_ms = down - up < *down_ms * times ? (down - up) / times : *down_ms;
    }
    return status;
}

static enum gpu_status choose_piece(struct gpu_lane *lane, CUdeviceptr device, char *host)
{
    struct gpu_device *common = &lane->device->common;
    double best_ms = 1e30, usual_ms = 1e30, up_ms, down_ms;
    int64_t best = GPU_PIECE_USUAL;
    enum gpu_status status = GPU_OK;
    for (int i = 0; status == GPU_OK && i < GPU_PIECES; i++) {
        gpu_set_piece(common, gpu_piece_sizes[i]);
        status = time_copies(lane, device, host, COLS_OF_SOME, 1, &up_ms, &down_ms);
        if (gpu_piece_sizes[i] == GPU_PIECE_USUAL)
            usual_ms = up_ms + down_ms;
        if (up_ms + down_ms < best_ms) {
            best_ms = up_ms + down_ms;
            best = gpu_piece_sizes[i];
        }
    }
    gpu_set_piece(common, best_ms * PIECE_GAIN < usual_ms ? best : GPU_PIECE_USUAL);
    return status;
}

static enum gpu_status measure(struct cuda_device *device, char *host, double *up_ms,
                               double *down_ms)
{
    struct gpu_lane *lane;
    CUdeviceptr memory = 0;
    bool grew;
    enum gpu_status status = lane_acquire(device, &lane);
    if (status != GPU_OK)
        return status;
    status = pool_get(device, (int64_t)ROWS * COLS * (int64_t)sizeof(double), &memory, &grew);
    if (status == GPU_OK)
        status = choose_piece(lane, memory, host);
    if (status == GPU_OK)
        status = time_copies(lane, memory, host, COLS, IN_A_ROW, up_ms, down_ms);
    bool quiet = lane_wait(lane) == GPU_OK;
    if (quiet && memory)
        pool_put(device, memory);
    lane_release(lane, !quiet);
    if (quiet)
        pool_settle(device);
    return status;
}

bool cuda_measure_copies(struct gpu_device *device, struct gpu_copy_rates *rates)
{
    struct cuda_device *own = cuda_device_of(device);
    struct gpu_scope scope;
    struct failure outer;
    double up_ms = 0, down_ms = 0;
    char *host = calloc((size_t)ROWS * COLS, sizeof(double));
    if (!host || gpu_enter(own, &scope) != GPU_OK) {
        free(host);
        return false;
    }
    failure_begin(&outer);
    enum gpu_status status = measure(own, host, &up_ms, &down_ms);
    failure_pass_on(&outer, device);
    gpu_leave(&scope);
    free(host);
    if (status != GPU_OK)
        return false;
    const double megabytes = (double)ROWS * COLS * sizeof(double) * 1e-6;
    *rates = (struct gpu_copy_rates){megabytes / up_ms, megabytes / down_ms};
    return true;
}
