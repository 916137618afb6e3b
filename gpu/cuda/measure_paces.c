/* Measures how fast the device multiplies blocks of some numbers of rows. */
#include "base/clock.h"
#include "device.h"
#include "gpu/kernels.h"
#include "gpu/pack.h"

#include <stdlib.h>
#include <string.h>

enum {
    DEPTH = PACE_COLS,
    IN_A_ROW =
        2, /* products; between these and the next ones the device pauses for some microseconds */
    LEAST_ROUNDS = 3,
    MOST_ROUNDS = 7,
    PATTERN_COLS =
        16 /* of random numbers, again and again: with zeros a device draws less power, and is faster than with a program's data */
};

/* Of all sizes in turn, so that what slows the device down for a while slows down all of them. */
#define ROUNDS_MS 1000.0

/* A device that needs longer for products of these orders is not measured: the largest ones would take it many times as long. */
enum { PROBED = 2, SMALL = 256, LARGER = 1024 };
#define SLOW_MS      2.0
#define FAR_TOO_SLOW 20

struct product {
    struct gpu_work *work;
    struct gpu_tile a, b, c;
};

static enum gpu_status multiply(struct product *x, int64_t rows, int64_t cols, int64_t depth,
                                int times, double *ms)
{
    static const struct accel_complex one = {1, 0}, half = {0.5, 0};
    const int64_t ld = gpu_device_ld(rows, x->work->call->routine->dtype);
    const struct gpu_tile a = {x->a.ptr, ld}, c = {x->c.ptr, ld};
    const double start = accel_now_ms();
    enum gpu_status status = GPU_OK;
    for (int i = 0; status == GPU_OK && i < times; i++)
        status = kernel_gemm(x->work, 'N', 'N', rows, cols, depth, one, a, x->b, half, c);
    if (status == GPU_OK)
        status = lane_wait(x->work->lane);
    *ms = (accel_now_ms() - start) / times;
    return status;
}

static enum gpu_status fill(struct product *x, struct gpu_tile tile, int64_t cols,
                            const struct lane_rectangle *pattern)
{
    const int64_t column = tile.ld * pattern->size;
    enum gpu_status status = GPU_OK;
    for (int64_t col = 0; status == GPU_OK && col < cols; col += pattern->cols)
        status =
            lane_upload(x->work->lane, tile.ptr + (gpu_address)(col * column), tile.ld, pattern);
    return status;
}

/* Takes memory for the largest product, and fills it. */
static enum gpu_status set_up(struct product *x, char *host)
{
    const enum accel_dtype dtype = x->work->call->routine->dtype;
    const int64_t size = (int64_t)accel_dtype_size(dtype), ld = gpu_device_ld(PACE_MOST, dtype);
    const struct lane_rectangle pattern =
        lane_whole(host, PACE_MOST, PATTERN_COLS, PACE_MOST, size);
    struct gpu_tile *const tiles[] = {&x->a, &x->b, &x->c};
    enum gpu_status status = GPU_OK;
    for (int i = 0; status == GPU_OK && i < 3; i++) {
        tiles[i]->ld = ld;
        status = gpu_work_take(x->work, ld * PACE_COLS * size, &tiles[i]->ptr);
        if (status == GPU_OK)
            status = fill(x, *tiles[i], PACE_COLS, &pattern);
    }
    return status == GPU_OK ? lane_wait(x->work->lane) : status;
}

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* Sets what one product of each size takes: the median of all rounds. The first round warms up. */
static enum gpu_status time_sizes(struct product *x, double ms[PACES])
{
    double took[PACES][MOST_ROUNDS + 1];
    const double begun = accel_now_ms();
    enum gpu_status status = GPU_OK;
    int rounds = 0;
    for (; status == GPU_OK && rounds <= MOST_ROUNDS &&
           (rounds <= LEAST_ROUNDS || accel_now_ms() - begun < ROUNDS_MS);
         rounds++)
        for (int i = 0; status == GPU_OK && i < PACES; i++)
            status = multiply(x, PACE_LEAST + i * PACE_STEP, PACE_COLS, DEPTH, IN_A_ROW,
                              &took[i][rounds]);
    for (int i = 0; status == GPU_OK && i < PACES; i++) {
        qsort(took[i] + 1, (size_t)rounds - 1, sizeof took[i][0], by_size);
        ms[i] = took[i][1 + (rounds - 1) / 2];
    }
    return status;
}

/* Sets *slow by the least of some times, of which the first one loads the kernel. */
static enum gpu_status is_slow(struct product *x, bool *slow)
{
    static const int64_t orders[PROBED] = {SMALL, LARGER};
    enum { TIMES = 20 };
    enum gpu_status status = GPU_OK;
    *slow = false;
    for (int i = 0; status == GPU_OK && !*slow && i < PROBED; i++) {
        double least = 1e30, ms;
        for (int k = 0; status == GPU_OK && least > SLOW_MS && k < TIMES; k++) {
            status = multiply(x, orders[i], orders[i], orders[i], 1, &ms);
            least = ms < least ? ms : least;
            if (k > 0 && ms > FAR_TOO_SLOW * SLOW_MS)
                break;
        }
        *slow = least > SLOW_MS;
    }
    return status;
}

/* Leaves the times as they are if the device is slow. */
static enum gpu_status measure(struct product *x, char *host, double ms[PACES])
{
    bool slow = false;
    enum gpu_status status = set_up(x, host);
    if (status == GPU_OK)
        status = is_slow(x, &slow);
    return status == GPU_OK && !slow ? time_sizes(x, ms) : status;
}

/* Returns a pattern of numbers from -1 to 1 in the call's type; NULL without memory. */
static char *random_pattern(const struct accel_call *call)
{
    const enum accel_dtype dtype = call->routine->dtype;
    const size_t bytes = accel_dtype_size(dtype) * PACE_MOST * PATTERN_COLS;
    char *host = malloc(bytes);
    uint32_t random = 1;
    for (size_t at = 0; host && at < bytes;) {
        random = random * 1664525 + 1013904223;
        const double x = (random >> 8) * 0x1p-23 - 1;
        const float single = (float)x;
        const size_t size = accel_is_double(dtype) ? sizeof x : sizeof single;
        memcpy(host + at, accel_is_double(dtype) ? (const void *)&x : (const void *)&single, size);
        at += size;
    }
    return host;
}

bool cuda_measure_paces(struct gpu_device *device, const struct accel_call *product,
                        struct block_paces *paces)
{
    struct cuda_device *own = cuda_device_of(device);
    struct gpu_host settings = {.precision = GPU_NATIVE};
    struct gpu_work work = {
        .call = product, .host = &settings, .device = device, .largest = INT64_MAX};
    struct product x = {.work = &work};
    struct gpu_scope scope;
    struct failure outer;
    double ms[PACES] = {0};
    bool quiet = true;
    char *host = random_pattern(product);
    *paces = (struct block_paces){{0}};
    failure_begin(&outer);
    enum gpu_status status = host ? gpu_enter(own, &scope) : GPU_NO_MEMORY;
    const bool entered = status == GPU_OK;
    if (entered)
        status = lane_acquire(own, &work.lane);
    if (status == GPU_OK) {
        status = measure(&x, host, ms);
        quiet = lane_wait(work.lane) == GPU_OK;
        if (quiet)
            gpu_work_drop(&work);
        lane_release(work.lane, !quiet);
    }
    if (status == GPU_NO_MEMORY)
        failure_end(
            &outer); /* it has no more of it at the moment, which is no failure of the device's */
    else
        failure_pass_on(&outer, device);
    if (entered && quiet)
        pool_settle(own);
    if (entered)
        gpu_leave(&scope);
    free(host);
    return status == GPU_OK && ms[0] > 0 && block_paces_by(paces, ms, schedule_nominal.half);
}
