/* Measures how fast operands come up to the device and go back, and by which pieces. */
#define _GNU_SOURCE
#include "base/clock.h"
#include "device.h"
#include "gpu/flow.h"

#include <stdlib.h>

/* Of doubles: 134 MB, beside which the start of a copy does not count. The size of a piece counts for copies of some megabytes: larger ones have
 * larger pieces anyway. */
enum { ROWS = 2048, COLS = 8192, COLS_OF_SOME = 512 };
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

/* Times some copies of so many columns each way, and returns the best, in milliseconds. */
static enum gpu_status time_copies(struct gpu_lane *lane, CUdeviceptr device, char *host,
                                   int64_t cols, double *up_ms, double *down_ms)
{
    const struct lane_rectangle r = lane_whole(host, ROWS, cols, ROWS, sizeof(double));
    int64_t done_cols, done_rows;
    enum gpu_status status = GPU_OK;
    const double begun = accel_now_ms();
    *up_ms = *down_ms = 1e30;
    for (int i = 0; status == GPU_OK && once_more(i, begun); i++) {
        double start = accel_now_ms();
        status = lane_upload(lane, device, ROWS, &r);
        if (status == GPU_OK)
            status = lane_wait(lane);
        double up = accel_now_ms();
        if (status == GPU_OK)
            status = lane_download(lane, &r, device, ROWS, &done_cols, &done_rows);
        double down = accel_now_ms();
        if (i == 0)
            continue;
        *up_ms = up - start < *up_ms ? up - start : *up_ms;
        *down_ms = down - up < *down_ms ? down - up : *down_ms;
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
        status = time_copies(lane, device, host, COLS_OF_SOME, &up_ms, &down_ms);
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

/* ---- Both ways at once ---- */

/* The first columns come up, the others go down: as many of each as take the same time, in so many cells, and so often that the start and the end hardly
 * count. */
enum { CELLS = 16, ROUNDS = 4 };

struct both_ways {
    char *host;
    CUdeviceptr device;
};

/* A step copies step->j columns, from number step->i on. */
static void describe_cell(void *context, const struct schedule_step *step, struct flow_copy *copy)
{
    const struct both_ways *both = context;
    const int64_t before = step->i * ROWS * (int64_t)sizeof(double);
    *copy = (struct flow_copy){
        .host = lane_whole(both->host + before, ROWS, step->j, ROWS, sizeof(double)),
        .device = both->device + (CUdeviceptr)before,
        .device_ld = ROWS};
}

static void note_cell(void *context, const struct schedule_step *step)
{
    (void)context;
    (void)step;
}

static bool add_copy(struct schedule *s, int *room, int engine, int first, int cols)
{
    struct schedule_step *step = schedule_add(s, room, engine);
    if (!step)
        return false;
    step->i = first;
    step->j = cols;
    return true;
}

/* Makes the steps. The last download is of one column, and waits for all uploads: so the flow ends when all is done. */
static bool make_copies(struct schedule *s, int up_cols)
{
    int room = 0;
    for (int step = 0; step < ROUNDS * CELLS; step++) {
        const int i = step % CELLS, up = i * up_cols / CELLS, up_end = (i + 1) * up_cols / CELLS;
        const int down = i * (COLS - 1 - up_cols) / CELLS,
                  down_end = (i + 1) * (COLS - 1 - up_cols) / CELLS;
        if (!add_copy(s, &room, SCHEDULE_UP, up, up_end - up) ||
            !add_copy(s, &room, SCHEDULE_DOWN, up_cols + down, down_end - down))
            return false;
    }
    if (!add_copy(s, &room, SCHEDULE_DOWN, COLS - 1, 1))
        return false;
    s->step[s->count - 1].after[SCHEDULE_UP] = ROUNDS * CELLS;
    return true;
}

/* Times copies both ways at once, and returns the best, in milliseconds. up_ms, down_ms: of all columns, each way alone. */
static enum gpu_status time_both(struct gpu_lane *lane, CUdeviceptr device, char *host,
                                 double up_ms, double down_ms, double *both_ms)
{
    const int cols = (int)(COLS * down_ms / (up_ms + down_ms));
    const int up_cols = cols < CELLS ? CELLS : cols > COLS - 2 * CELLS ? COLS - 2 * CELLS : cols;
    struct both_ways both = {host, device};
    struct schedule s = {.count = 0};
    enum gpu_status status = make_copies(&s, up_cols) ? GPU_OK : GPU_NO_MEMORY;
    const double begun = accel_now_ms();
    *both_ms = 1e30;
    for (int i = 0; status == GPU_OK && once_more(i, begun); i++) {
        struct flow flow = {.schedule = &s,
                            .result_bytes =
                                (int64_t)ROWS * (COLS - up_cols) * (int64_t)sizeof(double),
                            .context = &both,
                            .copy_of = describe_cell,
                            .arrived = note_cell};
        const double start = accel_now_ms();
        status = lane_flow(lane, &flow);
        const double ms = accel_now_ms() - start;
        if (i > 0)
            *both_ms = ms < *both_ms ? ms : *both_ms;
    }
    schedule_free(&s);
    return status;
}

/* Returns the rate both ways: no less than the faster one alone has, and no more than both have. 1e30: it is not known. */
static double both_of(double up_gbps, double down_gbps, double both_ms)
{
    const double all = (double)ROWS * (ROUNDS * (COLS - 1) + 1) * sizeof(double) * 1e-6 / both_ms;
    const double faster = up_gbps > down_gbps ? up_gbps : down_gbps;
    return both_ms >= 1e30             ? 0
           : all < faster              ? faster
           : all < up_gbps + down_gbps ? all
                                       : up_gbps + down_gbps;
}

static enum gpu_status measure(struct cuda_device *device, char *host, double *up_ms,
                               double *down_ms, double *both_ms)
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
        status = time_copies(lane, memory, host, COLS, up_ms, down_ms);
    if (status == GPU_OK)
        status = time_both(lane, memory, host, *up_ms, *down_ms, both_ms);
    if (status == GPU_NO_MEMORY && *both_ms >= 1e30) /* the others are measured */
        status = GPU_OK;
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
    double up_ms = 0, down_ms = 0, both_ms = 0;
    char *host = calloc((size_t)ROWS * COLS, sizeof(double));
    if (!host || gpu_enter(own, &scope) != GPU_OK) {
        free(host);
        return false;
    }
    failure_begin(&outer);
    enum gpu_status status = measure(own, host, &up_ms, &down_ms, &both_ms);
    failure_pass_on(&outer, device);
    gpu_leave(&scope);
    free(host);
    if (status != GPU_OK)
        return false;
    const double megabytes = (double)ROWS * COLS * sizeof(double) * 1e-6;
    *rates = (struct gpu_copy_rates){megabytes / up_ms, megabytes / down_ms,
                                     both_of(megabytes / up_ms, megabytes / down_ms, both_ms)};
    return true;
}
