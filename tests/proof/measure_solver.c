/*
 * What cuSOLVER takes for factorisations of matrices that are on the device already: with the
 * copies up and down, the time that libaccel's are compared with.
 */
#include "driver.h"
#include "base/thread/clock.h"
#include "measure.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { ATTEMPTS = 3, PATTERN = 1 << 18 };

struct solver {
    cusolverDnHandle_t handle;
    cusolverDnParams_t params;
    CUstream stream;
    int64_t n;
    CUdeviceptr matrix, list, info, work; /* list: pivots, or scalars of reflectors */
    size_t work_bytes, host_bytes;
    void *host_work;
    double *pattern; /* random numbers */
};

#define AT(address) (void *)(uintptr_t)(address)
#define MATRIX      CUDA_R_64F, AT(s->matrix), s->n
#define SIZES       &s->work_bytes, &s->host_bytes
#define WORK        AT(s->work), s->work_bytes, s->host_work, s->host_bytes, AT(s->info)

/* Each returns the sizes of its workspaces, or factors. */

static bool getrf(struct solver *s, bool sizes)
{
    return sizes ? CUSOLVER_OK(cusolverDnXgetrf_bufferSize, s->handle, s->params, s->n, s->n,
                               MATRIX, CUDA_R_64F, SIZES)
                 : CUSOLVER_OK(cusolverDnXgetrf, s->handle, s->params, s->n, s->n, MATRIX,
                               AT(s->list), CUDA_R_64F, WORK);
}

static bool potrf(struct solver *s, bool sizes)
{
    return sizes ? CUSOLVER_OK(cusolverDnXpotrf_bufferSize, s->handle, s->params,
                               CUBLAS_FILL_MODE_LOWER, s->n, MATRIX, CUDA_R_64F, SIZES)
                 : CUSOLVER_OK(cusolverDnXpotrf, s->handle, s->params, CUBLAS_FILL_MODE_LOWER, s->n,
                               MATRIX, CUDA_R_64F, WORK);
}

static bool geqrf(struct solver *s, bool sizes)
{
    return sizes ? CUSOLVER_OK(cusolverDnXgeqrf_bufferSize, s->handle, s->params, s->n, s->n,
                               MATRIX, CUDA_R_64F, AT(s->list), CUDA_R_64F, SIZES)
                 : CUSOLVER_OK(cusolverDnXgeqrf, s->handle, s->params, s->n, s->n, MATRIX,
                               CUDA_R_64F, AT(s->list), CUDA_R_64F, WORK);
}

static const struct factorisation {
    const char *name;
    bool (*step)(struct solver *s, bool sizes);
} factorisations[] = {{"dgetrf", getrf}, {"dpotrf", potrf}, {"dgeqrf", geqrf}};

/* Columns differ, and the diagonal outweighs the rest: the matrix is definite. */
static bool fill(struct solver *s)
{
    const size_t column = (size_t)s->n * sizeof(double);
    const double large = (double)s->n;
    bool good = true;
    for (int64_t j = 0; good && j < s->n; j++) {
        const double *from = s->pattern + j * 7919 % (PATTERN - s->n);
        const CUdeviceptr to = s->matrix + (CUdeviceptr)j * column;
        good = CUDA_OK(cuMemcpyHtoD, to, from, column) &&
               CUDA_OK(cuMemcpyHtoD, to + (CUdeviceptr)j * sizeof large, &large, sizeof large);
    }
    return good;
}

/* Milliseconds of the best of some; negative for a failure. */
static double factor_ms(struct solver *s, const struct factorisation *f)
{
    double best = -1;
    for (int i = 0; i < ATTEMPTS; i++) {
        int info = 0;
        if (!fill(s))
            return -1;
        const double start = accel_now_ms();
        if (!f->step(s, false) || !CUDA_OK(cuStreamSynchronize, s->stream))
            return -1;
        const double ms = accel_now_ms() - start;
        if (!CUDA_OK(cuMemcpyDtoH, &info, s->info, sizeof info) || info != 0)
            return -1;
        best = measure_best(best, ms); /* the first one warms up */
    }
    return best;
}

static void measure_one(struct solver *s, const struct factorisation *f)
{
    char name[48];
    double ms = -1;
    s->work = 0;
    s->host_work = NULL;
    s->work_bytes = s->host_bytes = 0;
    snprintf(name, sizeof name, "cusolver_%s_%d", f->name, (int)s->n);
    if (f->step(s, true) && (s->work_bytes == 0 || CUDA_OK(cuMemAlloc, &s->work, s->work_bytes))) {
        s->host_work = malloc(s->host_bytes + 1);
        ms = s->host_work ? factor_ms(s, f) : -1;
    }
    if (ms > 0)
        report(name, ms, "ms");
    else
        report_missing(name, "");
    free(s->host_work);
    if (s->work)
        CUDA_OK(cuMemFree, s->work);
}

static void measure_order(struct solver *s, int64_t n)
{
    const size_t order = (size_t)n;
    char name[48];
    s->n = n;
    s->matrix = s->list = s->info = 0;
    snprintf(name, sizeof name, "cusolver_%d", (int)n);
    if (CUDA_OK(cuMemAlloc, &s->matrix, order * order * sizeof(double)) &&
        CUDA_OK(cuMemAlloc, &s->list, order * sizeof(double)) &&
        CUDA_OK(cuMemAlloc, &s->info, sizeof(int)))
        for (size_t i = 0; i < sizeof factorisations / sizeof *factorisations; i++)
            measure_one(s, &factorisations[i]);
    else
        report_missing(name, "");
    const CUdeviceptr memory[] = {s->matrix, s->list, s->info};
    for (int i = 0; i < 3; i++)
        if (memory[i])
            CUDA_OK(cuMemFree, memory[i]);
}

void measure_solver(bool quick)
{
    struct solver s = {.pattern = malloc(PATTERN * sizeof(double))};
    for (int i = 0; s.pattern && i < PATTERN; i++)
        s.pattern[i] = 2.0 * rand() / RAND_MAX - 1;
    if (s.pattern && driver_open_cusolver() && CUSOLVER_OK(cusolverDnCreate, &s.handle) &&
        CUSOLVER_OK(cusolverDnCreateParams, &s.params) &&
        CUDA_OK(cuStreamCreate, &s.stream, CU_STREAM_NON_BLOCKING) &&
        CUSOLVER_OK(cusolverDnSetStream, s.handle, s.stream))
        for (int64_t n = quick ? 64 : 4096; n <= (quick ? 128 : 16384); n *= 2)
            measure_order(&s, n);
    else
        report_missing("cusolver", "");
    if (s.params)
        CUSOLVER_OK(cusolverDnDestroyParams, s.params);
    if (s.handle)
        CUSOLVER_OK(cusolverDnDestroy, s.handle);
    if (s.stream)
        CUDA_OK(cuStreamDestroy, s.stream);
    free(s.pattern);
}
