/*
 * What the device computes of the blocks that schedules have (gpu/plan/schedule.h): products one
 * after the other, on one stream and on two in turn; products by a few columns, which the memory
 * limits; triangles of products by a transpose, as wholes and divided; and triangles that are
 * solved, whose steps wait for each other, alone and beside products.
 */
#include "driver.h"
#include "base/thread/clock.h"
#include "measure.h"

#include <stdio.h>
#include <stdlib.h>

enum { ATTEMPTS = 4, IN_A_ROW = 12, STREAMS = 2 };

static const double one = 1, half = 0.5;

/* A stream with a handle of its own, and so a workspace. */
struct lane {
    CUstream stream;
    cublasHandle_t handle;
};

struct blocks {
    struct lane lane[STREAMS];
    CUdeviceptr a, b, c; /* c: as many results as are computed in a row */
    int m, n, k;
    int beyond; /* how much longer leading dimensions are than rows */
};

static bool start_lane(struct lane *lane)
{
    return CUDA_OK(cuStreamCreate, &lane->stream, CU_STREAM_NON_BLOCKING) &&
           CUBLAS_OK(cublasCreate_v2, &lane->handle) &&
           CUBLAS_OK(cublasSetStream_v2, lane->handle, lane->stream);
}

static void end_lane(struct lane *lane)
{
    if (lane->handle)
        CUBLAS_OK(cublasDestroy_v2, lane->handle);
    if (lane->stream)
        CUDA_OK(cuStreamDestroy, lane->stream);
}

static bool wait_for_all(const struct blocks *x)
{
    return CUDA_OK(cuStreamSynchronize, x->lane[0].stream) &&
           CUDA_OK(cuStreamSynchronize, x->lane[1].stream);
}

/* ---- Memory ---- */

/* A little of each number, so that sums stay finite, and a triangle whose diagonal is larger than
 * what is beside it. */
static bool fill(CUdeviceptr device, size_t bytes, size_t diagonal)
{
    const size_t part = bytes < 8 << 20 ? bytes : 8 << 20, count = part / sizeof(double);
    double *values = malloc(part);
    bool good = values != NULL;
    for (size_t i = 0; good && i < count; i++)
        values[i] = (2.0 * rand() / RAND_MAX - 1) * 1e-3;
    for (size_t at = 0; good && at < bytes; at += part)
        good = CUDA_OK(cuMemcpyHtoD, device + at, values, at + part <= bytes ? part : bytes - at);
    for (size_t i = 0; good && i < diagonal; i++)
        good = CUDA_OK(cuMemcpyHtoD, device + i * (diagonal + 1) * sizeof one, &one, sizeof one);
    free(values);
    return good;
}

static void give_back(struct blocks *x)
{
    CUdeviceptr *all[] = {&x->a, &x->b, &x->c};
    for (int i = 0; i < 3; i++) {
        if (*all[i])
            CUDA_OK(cuMemFree, *all[i]);
        *all[i] = 0;
    }
}

static size_t bytes_of(int rows, int cols, int matrices)
{
    return sizeof(double) * (size_t)rows * (size_t)cols * (size_t)matrices;
}

static bool take(struct blocks *x, int results, bool triangle)
{
    const size_t a = bytes_of(x->m + x->beyond, x->k, 1), b = bytes_of(x->k + x->beyond, x->n, 1),
                 c = bytes_of(x->m + x->beyond, x->n, results);
    return CUDA_OK(cuMemAlloc, &x->a, a) && CUDA_OK(cuMemAlloc, &x->b, b) &&
           CUDA_OK(cuMemAlloc, &x->c, c) && fill(x->a, a, triangle ? (size_t)x->m : 0) &&
           fill(x->b, b, 0) && fill(x->c, c, 0);
}

/* ---- Work ---- */

static bool multiply(const struct blocks *x, const struct lane *lane, int result)
{
    return CUBLAS_OK(cublasDgemm_v2, lane->handle, CUBLAS_OP_N, CUBLAS_OP_N, x->m, x->n, x->k, &one,
                     (const double *)x->a, x->m + x->beyond, (const double *)x->b, x->k + x->beyond,
                     &half, (double *)(x->c + bytes_of(x->m + x->beyond, x->n, result)),
                     x->m + x->beyond);
}

/* Solves in place, with the triangle in `a`, of order m = k. */
static bool solve(const struct blocks *x, const struct lane *lane, int result)
{
    return CUBLAS_OK(cublasDtrsm_v2, lane->handle, CUBLAS_SIDE_LEFT, CUBLAS_FILL_MODE_LOWER,
                     CUBLAS_OP_N, CUBLAS_DIAG_NON_UNIT, x->m, x->n, &one, (const double *)x->a,
                     x->m, (double *)(x->c + bytes_of(x->m, x->n, result)), x->m);
}

/* Of the n rows from `row` on, adds the lower triangle of A times its transpose: by one kernel, or
 * of either half of the rows and what is between, so many times over. */
static bool add_rank_k(const struct blocks *x, const struct lane *lane, CUdeviceptr c, int row,
                       int n, int divisions)
{
    const int top = n / 2;
    const double *a = (const double *)x->a + row;
    double *at = (double *)c + (size_t)row * (size_t)x->m + row;
    if (divisions == 0)
        return CUBLAS_OK(cublasDsyrk_v2, lane->handle, CUBLAS_FILL_MODE_LOWER, CUBLAS_OP_N, n, x->k,
                         &one, a, x->m, &half, at, x->m);
    return add_rank_k(x, lane, c, row, top, divisions - 1) &&
           CUBLAS_OK(cublasDgemm_v2, lane->handle, CUBLAS_OP_N, CUBLAS_OP_T, n - top, top, x->k,
                     &one, a + top, x->m, a, x->m, &half, at + top, x->m) &&
           add_rank_k(x, lane, c, row + top, n - top, divisions - 1);
}

/* Results are computed in turn on so many streams, and of two in a row, so many are solved; or they
 * are triangles, divided so many times. */
struct way {
    const char *name;
    int streams, solves;
    bool rank_k;
    int divisions;
};

static bool compute(const struct blocks *x, const struct way *way, int result)
{
    const struct lane *lane = &x->lane[result % way->streams];
    if (way->rank_k)
        return add_rank_k(x, lane, x->c + bytes_of(x->m, x->n, result), 0, x->m, way->divisions);
    return (result % 2 < 2 - way->solves ? multiply : solve)(x, lane, result);
}

/* Returns the milliseconds of the best of some rows of results; negative for a failure. */
static double row_ms(const struct blocks *x, const struct way *way, int results)
{
    double best = -1;
    for (int attempt = 0; attempt <= ATTEMPTS; attempt++) {
        const double start = accel_now_ms();
        for (int i = 0; i < results; i++)
            if (!compute(x, way, i))
                return -1;
        if (!wait_for_all(x))
            return -1;
        const double ms = accel_now_ms() - start;
        if (attempt > 0) /* the first one loads the kernels */
            best = measure_best(best, ms);
    }
    return best;
}

/* ---- What is reported ---- */

static void measure_row(struct blocks *x, const char *name, const struct way *way, int results,
                        double amount, const char *unit)
{
    char full[64];
    const double ms = x->a ? row_ms(x, way, results) : -1;
    snprintf(full, sizeof full, "%s_%s", name, way->name);
    if (ms > 0)
        report(full, amount > 0 ? amount * 1e-6 / ms : ms, unit);
    else
        report_missing(full, "");
}

/* Reports these ways of the blocks that are set. solved: the matrix A is a triangle. */
static void measure_ways(struct blocks *x, const char *name, const struct way *ways, int count,
                         bool solved, double amount, const char *unit)
{
    if (!take(x, IN_A_ROW, solved))
        give_back(x);
    for (int i = 0; i < count; i++)
        measure_row(x, name, &ways[i], IN_A_ROW, amount, unit);
    give_back(x);
}

/* beyond: see struct blocks. Columns whose distance is a power of 2 may meet in the same places of
 * the device's caches. */
static void measure_block(struct blocks *x, int m, int n, int k, int beyond)
{
    static const struct way ways[] = {{.name = "1_stream", .streams = 1},
                                      {.name = "2_streams", .streams = 2}};
    char name[48];
    x->m = m, x->n = n, x->k = k, x->beyond = beyond;
    snprintf(name, sizeof name, beyond ? "block_%dx%dx%d_ld_%d" : "block_%dx%dx%d", m, n, k,
             m + beyond);
    measure_ways(x, name, ways, 2, false, 2.0 * m * n * (double)k * IN_A_ROW, "Gflop/s");
    x->beyond = 0;
}

/* 10^9 bytes of the matrix a second, where it is taken in blocks of k columns. */
static void measure_thin(struct blocks *x, int m, int k)
{
    static const struct way way = {.name = "1_stream", .streams = 1};
    char name[48];
    x->m = m, x->n = 16, x->k = k;
    snprintf(name, sizeof name, "thin_%dx%d", m, k);
    measure_ways(x, name, &way, 1, false, (double)bytes_of(m, k, IN_A_ROW), "GB/s");
}

/* The operations are those of the triangle. */
static void measure_rank_k(struct blocks *x, int n, int k)
{
    static const struct way ways[] = {
        {.name = "whole", .streams = 1, .rank_k = true},
        {.name = "halves", .streams = 1, .rank_k = true, .divisions = 1},
        {.name = "quarters", .streams = 1, .rank_k = true, .divisions = 2}};
    char name[48];
    x->m = x->n = n, x->k = k;
    snprintf(name, sizeof name, "rank_k_%dx%d", n, k);
    measure_ways(x, name, ways, 3, false, (double)n * n * (double)k * IN_A_ROW, "Gflop/s");
}

static void measure_solved(struct blocks *x, int m, int n)
{
    static const struct way ways[] = {{.name = "solved", .streams = 1, .solves = 2},
                                      {.name = "multiplied", .streams = 1},
                                      {.name = "in_turn", .streams = 1, .solves = 1},
                                      {.name = "beside", .streams = 2, .solves = 1}};
    char name[48];
    x->m = x->k = m, x->n = n;
    snprintf(name, sizeof name, "triangle_%dx%d", m, n);
    measure_ways(x, name, ways, 4, true, 0, "ms");
}

void measure_blocks(bool quick)
{
    static const int block[][4] = {
        {1024, 832, 4096, 0},  {4096, 384, 1408, 0},  {2048, 2048, 2048, 0}, {2752, 2752, 4096, 0},
        {1536, 2816, 4096, 0}, {4096, 4096, 4096, 0}, {4096, 4096, 4096, 16}};
    const int blocks = sizeof block / sizeof *block;
    static const int orders[] = {640, 1024, 1536, 2816};
    static const int solved[][2] = {{640, 4096}, {960, 8192}, {2752, 2752}};
    struct blocks x = {.a = 0};
    if (cuda.cublasCreate_v2 && start_lane(&x.lane[0]) && start_lane(&x.lane[1])) {
        for (int i = 0; i < (quick ? 1 : blocks); i++)
            measure_block(&x, quick ? 64 : block[i][0], quick ? 52 : block[i][1],
                          quick ? 96 : block[i][2], quick ? 16 : block[i][3]);
        for (int k = quick ? 96 : 1408; k <= (quick ? 96 : 16384); k = k < 4096 ? 4096 : 4 * k)
            measure_thin(&x, quick ? 128 : 16384, k);
        for (int i = 0; i < (quick ? 1 : 4); i++)
            measure_rank_k(&x, quick ? 64 : orders[i], quick ? 96 : 4096);
        for (int i = 0; i < (quick ? 1 : 3); i++)
            measure_solved(&x, quick ? 64 : solved[i][0], quick ? 128 : solved[i][1]);
    } else {
        report_missing("blocks", cuda.cublasCreate_v2 ? "" : "no cuBLAS");
    }
    end_lane(&x.lane[0]);
    end_lane(&x.lane[1]);
}
