/*
 * Solutions by a triangle as libaccel makes them (gpu/exec/blas/triangle_solve.h), by the device's
 * BLAS and by our own kernel: how long one takes, of a few in a row, for orders and right-hand
 * sides that schedules have, and how far both results differ.
 */
#include "base/thread/clock.h"
#include "gpu/cuda/device.h"
#include "gpu/exec/blas/triangle_solve.h"
#include "measure.h"
#include "ops/names.h"
#include "ops/op.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { ATTEMPTS = 4, IN_A_ROW = 4 };

static const struct accel_complex one = {1, 0};

struct problem {
    struct gpu_work *work;
    struct dmat a, b;
    int64_t order, nrhs;
    double *host; /* of order x order numbers, and of order x nrhs */
};

static bool put(const struct problem *p, gpu_address to, int64_t rows, int64_t cols)
{
    const struct host_rectangle all =
        host_whole((char *)p->host, rows, cols, rows, sizeof *p->host);
    return stream_ctx_upload(p->work->ctx, (struct dmat){to, rows}, &all) == GPU_OK &&
           stream_ctx_wait(p->work->ctx) == GPU_OK;
}

/* A triangle whose diagonal is larger than what is beside it, and right-hand sides. */
static bool fill(struct problem *p)
{
    for (int64_t j = 0; j < p->order; j++)
        for (int64_t i = 0; i < p->order; i++)
            p->host[i + j * p->order] =
                i == j ? 1 : ((double)rand() / RAND_MAX - 0.5) / (double)p->order;
    if (!put(p, p->a.ptr, p->order, p->order))
        return false;
    for (int64_t i = 0; i < p->order * p->nrhs; i++)
        p->host[i] = (double)rand() / RAND_MAX - 0.5;
    return put(p, p->b.ptr, p->order, p->nrhs);
}

static bool solve(const struct problem *p)
{
    return triangle_solve(p->work, 'L', 'L', 'N', 'N', p->order, p->nrhs, one, p->a, p->b) ==
           GPU_OK;
}

/* Returns the milliseconds of one solution; negative for a failure. */
static double time_of(const struct problem *p)
{
    double best = -1;
    for (int attempt = 0; attempt <= ATTEMPTS; attempt++) {
        const double start = accel_now_ms();
        for (int i = 0; i < IN_A_ROW; i++)
            if (!solve(p))
                return -1;
        if (stream_ctx_wait(p->work->ctx) != GPU_OK)
            return -1;
        if (attempt > 0) /* the first one loads the kernels */
            best = measure_best(best, (accel_now_ms() - start) / IN_A_ROW);
    }
    return best;
}

/* Solves once, and returns the result, which the caller frees; NULL for a failure. */
static double *solution(struct problem *p)
{
    int64_t done_cols, done_rows;
    double *x = malloc((size_t)(p->order * p->nrhs) * sizeof *x);
    const struct host_rectangle all = host_whole((char *)x, p->order, p->nrhs, p->order, sizeof *x);
    srand(1); /* the same problem each time */
    if (x && fill(p) && solve(p) &&
        stream_ctx_download(p->work->ctx, &all, (struct dmat){p->b.ptr, p->order}, &done_cols,
                            &done_rows) == GPU_OK)
        return x;
    free(x);
    return NULL;
}

static void compare(const struct problem *p, const double *x, const double *y, const char *name)
{
    double most = 0;
    for (int64_t i = 0; i < p->order * p->nrhs; i++) {
        const double d = fabs(x[i] - y[i]); /* of numbers of up to a half */
        if (isnan(d) || d > most)           /* fmax() would leave out what is no number */
            most = d;
    }
    report(name, most, "");
}

static void measure_one(struct problem *p)
{
    double *x[2] = {NULL, NULL};
    bool is_there = false;
    char name[64];
    for (int own = 0; own < 2; own++) {
        gpu_solve_by_own(p->work->device, ACCEL_FLOAT64, own);
        snprintf(name, sizeof name, "solve_%lldx%lld_%s", (long long)p->order, (long long)p->nrhs,
                 own ? "own" : "blas");
        x[own] = solution(p);
        is_there = !own || gpu_solves_by_own(p->work->device, ACCEL_FLOAT64, p->nrhs);
        const double ms = x[own] && is_there ? time_of(p) : -1;
        if (ms > 0)
            report(name, ms, "ms");
        else
            report_missing(name, is_there ? failure_noted()->text : "the kernel is not there");
    }
    snprintf(name, sizeof name, "solve_%lldx%lld_difference", (long long)p->order,
             (long long)p->nrhs);
    if (x[0] && x[1] && is_there) /* else the device's BLAS has solved both */
        compare(p, x[0], x[1], name);
    free(x[0]);
    free(x[1]);
}

static void measure_with(struct gpu_work *work, int64_t order, int64_t nrhs)
{
    struct problem p = {.work = work, .order = order, .nrhs = nrhs};
    const int64_t size = sizeof *p.host, most = order > nrhs ? order : nrhs;
    p.host = malloc((size_t)(order * most * size));
    p.a.ld = p.b.ld = order;
    if (p.host && gpu_memory(work)->take(work, order * order * size, &p.a.ptr) == GPU_OK &&
        gpu_memory(work)->take(work, order * nrhs * size, &p.b.ptr) == GPU_OK)
        measure_one(&p);
    else
        report_missing("solve", "no memory");
    stream_ctx_wait(work->ctx);
    gpu_memory(work)->drop(work);
    free(p.host);
}

static void measure_on(struct gpu_device *device, bool quick)
{
    static const int64_t shape[][2] = {{64, 4096},  {64, 16384},   {640, 1024},  {640, 4096},
                                       {960, 8192}, {1152, 16384}, {2752, 2752}, {2752, 4096}};
    const int shapes = sizeof shape / sizeof *shape;
    struct gpu_host host = {.caches = false};
    const struct accel_call call =
        accel_call_of(accel_name_routine((uint32_t)accel_name_find("dtrsm_")));
    struct gpu_work work = {.call = &call, .host = &host, .device = device};
    struct gpu_scope scope;
    struct failure outer;
    failure_begin(&outer);
    if (gpu_enter(cuda_device_of(device), &scope) == GPU_OK &&
        stream_ctx_acquire(cuda_device_of(device), true, &work.ctx) == GPU_OK) {
        for (int i = 0; i < (quick ? 1 : shapes); i++)
            measure_with(&work, quick ? 70 : shape[i][0], quick ? 40 : shape[i][1]);
        stream_ctx_release(work.ctx, false);
        gpu_leave(&scope);
    } else {
        report_missing("solve", failure_noted()->text);
    }
    failure_end(&outer);
}

void measure_solves(bool quick)
{
    const struct gpu_config config = {.memory_share = 0.5, .cuda_dir = getenv("ACCEL_CUDA_DIR")};
    char why[GPU_FAILURE_BYTES];
    struct gpu_device *device = gpu_start(&config, why);
    if (device)
        measure_on(device, quick);
    else
        report_missing("solve", why);
    gpu_stop(device);
}
