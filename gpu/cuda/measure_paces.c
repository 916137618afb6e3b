/* Measures how fast the device multiplies blocks of some numbers of rows. */
#include "base/thread/clock.h"
#include "call/matrix.h"
#include "device.h"
#include "gpu/device/kernels.h"
#include "gpu/pack/pack.h"

#include <stdlib.h>
#include <string.h>

enum {
    LEAST_ROUNDS = 3, /* after one that warms up */
    MOST_ROUNDS = 7,
    /* Random numbers, again and again: with zeros a device draws less power, and is faster than
     * with a program's data */
    PATTERN_COLS = 16
};

/* So many products are in a row that the wait behind them hardly counts. */
#define ROW_MS  3.0
#define MOST_IN 16

/* The orders of products that tell whether there is time for the others: the first one takes
 * little, however slow the device is. */
static const int64_t probed[] = {256, 1024};
enum { PROBED = sizeof probed / sizeof *probed };

struct timed_product {
    struct gpu_work *work;
    struct dmat a, b, c;
};

static enum gpu_status multiply(struct timed_product *x, int64_t rows, int64_t cols, int64_t depth)
{
    static const struct accel_complex one = {1, 0}, half = {0.5, 0};
    const int64_t ld = gpu_device_ld(rows, x->work->call->routine->dtype);
    const struct dmat a = {x->a.ptr, ld}, c = {x->c.ptr, ld};
    return gpu_kernels(x->work)->gemm(x->work, 'N', 'N', rows, cols, depth, one, a, x->b, half, c);
}

/* Times the products of so many rows, all of them so many times. Sets *ms to what they take
 * once. */
static enum gpu_status time_rows(struct timed_product *x, int64_t rows, int times, double *ms)
{
    const double start = accel_now_ms();
    for (int i = 0; i < times * PACE_WIDTHS; i++)
        GPU_TRY(multiply(x, rows, pace_widths[i % PACE_WIDTHS], PACE_DEPTH));
    const enum gpu_status status = stream_ctx_wait(x->work->ctx);
    *ms = (accel_now_ms() - start) / times;
    return status;
}

static enum gpu_status upload_pattern(struct timed_product *x, struct dmat tile, int64_t cols,
                                      const struct host_rectangle *pattern)
{

    for (int64_t col = 0; col < cols; col += pattern->cols)
        GPU_TRY(stream_ctx_upload(x->work->ctx, dmat_part(tile, 0, col, pattern->size), pattern));
    return GPU_OK;
}

/* Takes memory for the largest product, and fills it. */
static enum gpu_status set_up(struct timed_product *x, char *host)
{
    const enum accel_dtype dtype = x->work->call->routine->dtype;
    const int64_t size = (int64_t)accel_dtype_size(dtype), ld = gpu_device_ld(PACE_MOST, dtype);
    const struct host_rectangle pattern =
        host_whole(host, PACE_MOST, PATTERN_COLS, PACE_MOST, size);
    struct dmat *const tiles[] = {&x->a, &x->b, &x->c};
    for (int i = 0; i < 3; i++) {
        tiles[i]->ld = ld;
        GPU_TRY(gpu_memory(x->work)->take(x->work, ld * PACE_WIDEST * size, &tiles[i]->ptr));
        GPU_TRY(upload_pattern(x, *tiles[i], PACE_WIDEST, &pattern));
    }
    return stream_ctx_wait(x->work->ctx);
}

static double multiply_adds(int64_t order)
{
    return (double)order * (double)order * (double)order;
}

/* Sets *round_ms to about what a round of all sizes takes: by a product's least time of some, of
 * which the first one loads the kernel. One that shows that there is no time for all rounds is the
 * last. */
static enum gpu_status estimate_round(struct timed_product *x, double limit_ms, double *round_ms)
{
    enum { TIMES = 20, FAR_TOO_LONG = 20 };
    double all = 0;
    for (int i = 0; i < PACES; i++)
        for (int k = 0; k < PACE_WIDTHS; k++)
            all += (double)pace_rows(i) * (double)pace_widths[k] * PACE_DEPTH;
    *round_ms = 0;
    for (int i = 0; *round_ms * LEAST_ROUNDS <= limit_ms && i < PROBED; i++) {
        *round_ms = 1e30;
        for (int k = 0; *round_ms * LEAST_ROUNDS > limit_ms && k < TIMES; k++) {
            const double start = accel_now_ms();
            GPU_TRY(multiply(x, probed[i], probed[i], probed[i]));
            GPU_TRY(stream_ctx_wait(x->work->ctx));
            /* A small product does not fill the device: a large one is not as much slower. */
            const double share = i == 0 ? 0.01 : 1,
                         ms = share * (accel_now_ms() - start) * all / multiply_adds(probed[i]);
            *round_ms = ms < *round_ms ? ms : *round_ms;
            if (k > 0 && ms * LEAST_ROUNDS > FAR_TOO_LONG * limit_ms)
                break;
        }
    }
    return GPU_OK;
}

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* Sets what the products of each size take: the median of all rounds. In a round all sizes come in
 * turn, so that what slows the device down for a while slows down all of them. */
static enum gpu_status time_sizes(struct timed_product *x, double limit_ms, double ms[PACES])
{
    double took[PACES][MOST_ROUNDS];
    const double begun = accel_now_ms();
    int rounds = 0, times[PACES];
    for (int i = 0; i < PACES; i++) {
        GPU_TRY(time_rows(x, pace_rows(i), 1, &ms[i]));
        const double fit = ROW_MS / (ms[i] > 0 ? ms[i] : ROW_MS) + 1;
        times[i] = fit < MOST_IN ? (int)fit : MOST_IN;
    }
    for (; rounds < MOST_ROUNDS && (rounds < LEAST_ROUNDS || accel_now_ms() - begun < limit_ms);
         rounds++)
        for (int i = 0; i < PACES; i++)
            GPU_TRY(time_rows(x, pace_rows(i), times[i], &took[i][rounds]));
    for (int i = 0; i < PACES; i++) {
        qsort(took[i], (size_t)rounds, sizeof took[i][0], by_size);
        ms[i] = took[i][rounds / 2];
    }
    return GPU_OK;
}

/* Leaves the times as they are if there is no time. */
static enum gpu_status time_paces(struct timed_product *x, char *host, double limit_ms,
                                  double ms[PACES])
{
    double round_ms = 0;
    GPU_TRY(set_up(x, host));
    GPU_TRY(estimate_round(x, limit_ms, &round_ms));
    return round_ms * LEAST_ROUNDS <= limit_ms ? time_sizes(x, limit_ms, ms) : GPU_OK;
}

/* Returns a pattern of numbers from -1 to 1 in the call's type; NULL without memory. */
static char *random_pattern(const struct accel_call *call)
{
    const enum accel_dtype dtype = call->routine->dtype;
    const size_t bytes = accel_dtype_size(dtype) * PACE_MOST * PATTERN_COLS;
    char *host = malloc(bytes);
    uint32_t random = 1;
    for (int64_t i = 0; host && i < PACE_MOST * PATTERN_COLS * parts_of(dtype); i++) {
        random = random * 1664525 + 1013904223;
        store_real(host, dtype, i, (random >> 8) * 0x1p-23 - 1);
    }
    return host;
}

/* The device has not failed if a library fails at one type, or if memory is short at the moment. */
static void end_failures(const struct failure *outer, struct gpu_device *device,
                         enum gpu_status status)
{
    if (status == GPU_LOST || failure_noted()->kind == FAILURE_DEVICE)
        failure_pass_on(outer, device);
    else
        failure_end(outer);
}

bool cuda_measure_paces(struct gpu_device *device, const struct accel_call *product,
                        double limit_ms, struct block_paces *paces)
{
    struct cuda_device *own = cuda_device_of(device);
    struct gpu_host settings = {.precision = GPU_NATIVE};
    struct gpu_work work = {
        .call = product, .host = &settings, .device = device, .largest = INT64_MAX};
    struct timed_product x = {.work = &work};
    struct gpu_scope scope;
    struct failure outer;
    double ms[PACES] = {0};
    bool quiet = true;
    char *host = random_pattern(product);
    *paces = (struct block_paces){.highest = 0};
    failure_begin(&outer);
    enum gpu_status status = host ? gpu_enter(own, &scope) : GPU_NO_MEMORY;
    const bool entered = status == GPU_OK;
    if (entered)
        status = stream_ctx_acquire(own, true, &work.ctx);
    if (status == GPU_OK) {
        status = time_paces(&x, host, limit_ms, ms);
        quiet = stream_ctx_wait(work.ctx) == GPU_OK;
        if (quiet)
            gpu_memory(&work)->drop(&work);
        stream_ctx_release(work.ctx, !quiet);
    }
    end_failures(&outer, device, status);
    if (entered && quiet)
        pool_settle(own);
    if (entered)
        gpu_leave(&scope);
    free(host);
    return status == GPU_OK && block_paces_by(paces, ms, schedule_nominal.half);
}
