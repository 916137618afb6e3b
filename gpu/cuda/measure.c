/* Measures how fast operands come up to the device and go back, by which chunks, and what short
 * columns take besides. */
#include "base/thread/clock.h"
#include "device.h"

#include <stdlib.h>

/* Of doubles: 134 MB, some times in a row, beside which the start of a copy does not count. The
 * size of a chunk counts for copies of some megabytes: larger ones have larger chunks anyway. */
enum { ROWS = 2048, COLS = 8192, IN_A_ROW = 4, COLS_OF_SOME = 512 };

/* Short columns: some rows of a matrix with this leading dimension, and as many below them in the
 * next copy. Each kind is 63 to 67 MB in a row. */
enum { LONG_LD = 4096, LONG_COLS = ROWS * COLS / LONG_LD, KINDS = 2 };
static const struct {
    int64_t rows;
    int times;
} kinds[KINDS] = {{256, 8}, {640, 3}};

/* The first attempt warms up. The machine's other work disturbs several in a row, so there are
 * many, as far as they take no longer than this. */
enum { LEAST_ATTEMPTS = 4, MOST_ATTEMPTS = 16 };
#define ATTEMPTS_MS 150.0

/* Another size takes the place of the usual one if it is faster by this. */
#define CHUNK_GAIN 1.05

/* Returns whether to go on after so many attempts, which began then. */
static bool once_more(int attempts, double begun_ms)
{
    return attempts < LEAST_ATTEMPTS ||
           (attempts < MOST_ATTEMPTS && accel_now_ms() - begun_ms < ATTEMPTS_MS);
}

/* Copies in a row: of this rectangle, and of those that begin so many elements behind each
 * other. */
struct row_of_copies {
    struct host_rectangle first;
    int times;
    int64_t step;
};

static struct host_rectangle copy_number(const struct row_of_copies *copies, int number)
{
    struct host_rectangle r = copies->first;
    r.host += number * copies->step * r.size;
    return r;
}

static enum gpu_status copy_up(struct stream_ctx *ctx, CUdeviceptr device,
                               const struct row_of_copies *copies)
{
    for (int i = 0; i < copies->times; i++) {
        const struct host_rectangle r = copy_number(copies, i);
        GPU_TRY(stream_ctx_upload(ctx, (struct dmat){device, r.rows}, &r));
    }
    return stream_ctx_wait(ctx);
}

static enum gpu_status copy_down(struct stream_ctx *ctx, CUdeviceptr device,
                                 const struct row_of_copies *copies)
{
    int64_t done_cols, done_rows;
    for (int i = 0; i < copies->times; i++) {
        const struct host_rectangle r = copy_number(copies, i);
        GPU_TRY(
            stream_ctx_download(ctx, &r, (struct dmat){device, r.rows}, &done_cols, &done_rows));
    }
    return GPU_OK;
}

/* What one of the best copies in a row took, in milliseconds. */
struct ways {
    double up_ms, down_ms;
};

static enum gpu_status time_copies(struct stream_ctx *ctx, CUdeviceptr device,
                                   const struct row_of_copies *copies, struct ways *best)
{
    const double begun = accel_now_ms();
    *best = (struct ways){1e30, 1e30};
    for (int i = 0; once_more(i, begun); i++) {
        const double start = accel_now_ms();
        GPU_TRY(copy_up(ctx, device, copies));
        const double up = accel_now_ms();
        GPU_TRY(copy_down(ctx, device, copies));
        const double up_ms = (up - start) / copies->times,
                     down_ms = (accel_now_ms() - up) / copies->times;
        if (i == 0)
            continue;
        best->up_ms = up_ms < best->up_ms ? up_ms : best->up_ms;
        best->down_ms = down_ms < best->down_ms ? down_ms : best->down_ms;
    }
    return GPU_OK;
}

/* Columns that are one run of memory. */
static struct row_of_copies of_one_run(char *host, int64_t cols, int times)
{
    return (struct row_of_copies){host_whole(host, ROWS, cols, ROWS, sizeof(double)), times, 0};
}

static enum gpu_status choose_chunk(struct stream_ctx *ctx, CUdeviceptr device, char *host)
{
    struct gpu_device *common = &ctx->device->common;
    const struct row_of_copies copies = of_one_run(host, COLS_OF_SOME, 1);
    double best_ms = 1e30, usual_ms = 1e30;
    int64_t best = GPU_CHUNK_USUAL;
    enum gpu_status status = GPU_OK;
    for (int i = 0; status == GPU_OK && i < GPU_CHUNKS; i++) {
        gpu_set_chunk(common, gpu_chunk_sizes[i]);
        struct ways took;
        status = time_copies(ctx, device, &copies, &took);
        const double ms = took.up_ms + took.down_ms;
        if (gpu_chunk_sizes[i] == GPU_CHUNK_USUAL)
            usual_ms = ms;
        if (ms < best_ms) {
            best_ms = ms;
            best = gpu_chunk_sizes[i];
        }
    }
    gpu_set_chunk(common, best_ms * CHUNK_GAIN < usual_ms ? best : GPU_CHUNK_USUAL);
    return status;
}

static enum gpu_status measure_rates(struct stream_ctx *ctx, CUdeviceptr device, char *host,
                                     struct gpu_copy_rates *rates)
{
    const struct row_of_copies copies = of_one_run(host, COLS, IN_A_ROW);
    const double megabytes = (double)ROWS * COLS * sizeof(double) * 1e-6;
    struct ways took;
    const enum gpu_status status = time_copies(ctx, device, &copies, &took);
    rates->up_gbps = megabytes / took.up_ms;
    rates->down_gbps = megabytes / took.down_ms;
    return status;
}

/* Of columns of each kind, what one takes longer than as much of one run of memory, copied as
 * often: so what each copy takes besides does not count. */
static enum gpu_status measure_short_columns(struct stream_ctx *ctx, CUdeviceptr device, char *host,
                                             struct gpu_copy_rates *rates)
{
    double bytes[KINDS], up_ms[KINDS], down_ms[KINDS];
    for (int i = 0; i < KINDS; i++) {
        const int64_t rows = kinds[i].rows, cols = LONG_COLS * rows / ROWS;
        const struct row_of_copies runs = {host_whole(host, ROWS, cols, ROWS, sizeof(double)),
                                           kinds[i].times, cols * ROWS},
                                   columns = {
                                       host_whole(host, rows, LONG_COLS, LONG_LD, sizeof(double)),
                                       kinds[i].times, rows};
        struct ways whole, divided;
        GPU_TRY(time_copies(ctx, device, &runs, &whole));
        GPU_TRY(time_copies(ctx, device, &columns, &divided));
        bytes[i] = (double)rows * sizeof(double);
        up_ms[i] = (divided.up_ms - whole.up_ms) / LONG_COLS;
        down_ms[i] = (divided.down_ms - whole.down_ms) / LONG_COLS;
    }
    rates->short_up = short_columns_by(bytes, up_ms);
    rates->short_down = short_columns_by(bytes, down_ms);
    return GPU_OK;
}

static enum gpu_status measure_copies(struct cuda_device *device, char *host,
                                      struct gpu_copy_rates *rates)
{
    struct stream_ctx *ctx;
    CUdeviceptr memory = 0;
    bool grew;
    GPU_TRY(stream_ctx_acquire(device, true, &ctx));
    enum gpu_status status =
        pool_get(device, (int64_t)ROWS * COLS * (int64_t)sizeof(double), &memory, &grew);
    if (status == GPU_OK)
        status = choose_chunk(ctx, memory, host);
    if (status == GPU_OK)
        status = measure_rates(ctx, memory, host, rates);
    if (status == GPU_OK)
        status = measure_short_columns(ctx, memory, host, rates);
    bool quiet = stream_ctx_wait(ctx) == GPU_OK;
    if (quiet && memory)
        pool_put(device, memory);
    stream_ctx_release(ctx, !quiet);
    if (quiet)
        pool_settle(device);
    return status;
}

bool cuda_measure_copies(struct gpu_device *device, struct gpu_copy_rates *rates)
{
    struct cuda_device *own = cuda_device_of(device);
    struct gpu_scope scope;
    struct failure outer;
    struct gpu_copy_rates found = {0};
    char *host = calloc((size_t)ROWS * COLS, sizeof(double));
    if (!host || gpu_enter(own, &scope) != GPU_OK) {
        free(host);
        return false;
    }
    failure_begin(&outer);
    enum gpu_status status = measure_copies(own, host, &found);
    failure_pass_on(&outer, device);
    gpu_leave(&scope);
    free(host);
    if (status != GPU_OK)
        return false;
    *rates = found;
    return true;
}
