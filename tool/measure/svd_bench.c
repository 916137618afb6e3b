#include "svd_bench.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cpu_ref/verify.h"
#include "dispatch/cost/calibration.h"
#include "call/matrix.h"
#include "call/shape.h"
#include "ops/op.h"
#include "fill.h"
#include "bench_plan.h"

static const int64_t orders[SVD_ORDERS] = {48, 192, 800, 1600};

enum content { CONTENT_RANDOM, CONTENT_SINGULAR, CONTENT_GRADED, CONTENTS };

/* A call that is timed and judged with several algorithms and matrices. */
struct svd_trial {
    struct gpu_device *device;
    struct workload workload;
    void *before;   /* the matrix before the call */
    void *expected; /* its singular values by Xgesvd */
};

/* ---- The matrix ---- */

static void scale_column(const struct accel_span *a, int64_t column, double by)
{
    const int64_t numbers = a->rows * parts_of(a->dtype);
    for (int64_t i = column * numbers; i < (column + 1) * numbers; i++)
        store_real(a->ptr, a->dtype, i, load_real(a->ptr, a->dtype, i) * by);
}

/* Makes the matrix. Singular: the second half of the columns repeats the first. Graded: the
 * columns' lengths fall to the type's resolution. */
static void fill_matrix(const struct svd_trial *trial, enum content content)
{
    const struct accel_call *call = &trial->workload.call;
    const struct accel_span *a = &call->span[ACCEL_a];
    const double eps = accel_is_double(a->dtype) ? DBL_EPSILON : (double)FLT_EPSILON;
    const int64_t half = a->cols / 2;
    fill_operand(call, ACCEL_a);
    if (content == CONTENT_SINGULAR)
        memcpy((char *)a->ptr + half * a->rows * (int64_t)accel_dtype_size(a->dtype), a->ptr,
               (size_t)(half * a->rows) * accel_dtype_size(a->dtype));
    for (int64_t j = 0; content == CONTENT_GRADED && j < a->cols; j++)
        scale_column(a, j, pow(eps, (double)j / (double)a->cols));
    memcpy(trial->before, a->ptr, (size_t)accel_bytes(a));
}

static bool make_trial(struct svd_trial *trial, struct gpu_device *device,
                       struct workload_memory *memory, enum accel_dtype dtype, bool vectors,
                       int64_t order)
{
    const struct accel_routine *routine = accel_sample_of(ACCEL_SAMPLE_SVD, dtype);
    const int64_t size[ACCEL_DIMENSIONS] = {order, order, 0, 0};
    struct accel_call *call = &trial->workload.call;
    *trial = (struct svd_trial){.device = device};
    if (!routine || !workload_make(&trial->workload, memory, routine, size, NULL))
        return false;
    call->blas.flag[ACCEL_jobz] = vectors ? 'S' : 'N';
    shape_operands(call);
    trial->before = malloc((size_t)accel_bytes(&call->span[ACCEL_a]));
    trial->expected = malloc((size_t)accel_bytes(&call->span[ACCEL_x]));
    return trial->before && trial->expected;
}

static void end_trial(struct svd_trial *trial)
{
    free(trial->before);
    free(trial->expected);
}

/* ---- Running and judging ---- */

static void choose_algorithm(const struct svd_trial *trial, bool vectors, enum gpu_svd algorithm)
{
    const struct accel_call *call = &trial->workload.call;
    const int64_t order = call->blas.size[ACCEL_n];
    gpu_svd_choose(trial->device, call->routine->dtype, vectors, gpu_svd_octave(order), algorithm);
}

/* Returns milliseconds; infinity if the call fails. */
static double run_trial(struct svd_trial *trial, enum content content)
{
    const struct accel_call *call = &trial->workload.call;
    struct gpu_host host = {0};
    enum gpu_status status;
    fill_matrix(trial, content);
    const double ms = workload_run_ms(trial->device, call, &host, &status);
    return ms < 0 ? INFINITY : ms;
}

/* Compares like LAPACK's zdrvbd the values of two drivers: they may differ by 30 n eps times the
 * largest. */
static bool values_agree(const struct svd_trial *trial)
{
    const struct accel_span *s = &trial->workload.call.span[ACCEL_x];
    const double eps = accel_is_double(s->dtype) ? DBL_EPSILON : (double)FLT_EPSILON;
    const double largest = load_real(trial->expected, s->dtype, 0);
    for (int64_t i = 0; i < s->cols; i++)
        if (!(fabs(load_real(s->ptr, s->dtype, i) - load_real(trial->expected, s->dtype, i)) <=
              30 * (double)s->cols * eps * largest))
            return false;
    return true;
}

/* Whether an algorithm's results pass LAPACK's tests on every kind of matrix. */
static bool is_accurate(struct svd_trial *trial, bool vectors, enum gpu_svd algorithm)
{
    const struct accel_call *call = &trial->workload.call;
    const struct accel_span *s = &call->span[ACCEL_x];
    const void *before[ACCEL_SPANS] = {[ACCEL_a] = trial->before};
    for (int content = 0; content < CONTENTS; content++) {
        choose_algorithm(trial, vectors, GPU_SVD_GESVD);
        if (isinf(run_trial(trial, (enum content)content)))
            return false;
        memcpy(trial->expected, s->ptr, (size_t)accel_bytes(s));
        choose_algorithm(trial, vectors, algorithm);
        if (isinf(run_trial(trial, (enum content)content)) ||
            cpu_ref_verify(call, before, (uint64_t)content + 1, 0) > 1 || !values_agree(trial))
            return false;
    }
    return true;
}

/* Returns the best of some runs. An algorithm that is far behind has one run. */
static double time_algorithm(struct svd_trial *trial, bool vectors, enum gpu_svd algorithm,
                             double best)
{
    struct timing timing = {.most = 3};
    choose_algorithm(trial, vectors, algorithm);
    run_trial(trial, CONTENT_RANDOM); /* warms up */
    while (timing_add(&timing, run_trial(trial, CONTENT_RANDOM)) && timing.best_ms < 3 * best)
        ;
    return timing.best_ms;
}

static enum gpu_svd fastest(struct svd_trial *trial, bool vectors)
{
    enum gpu_svd found = GPU_SVD_GESVD;
    double best = time_algorithm(trial, vectors, GPU_SVD_GESVD, INFINITY);
    for (int i = 0; i < GPU_SVDS; i++) {
        const enum gpu_svd algorithm = (enum gpu_svd)i;
        if (algorithm == GPU_SVD_GESVD)
            continue;
        double ms = time_algorithm(trial, vectors, algorithm, best);
        /* It must gain a twentieth, as for all decisions. */
        if (ms < 0.95 * best && is_accurate(trial, vectors, algorithm)) {
            best = ms;
            found = algorithm;
        }
    }
    return found;
}

/* ---- All orders ---- */

/* Returns the index of the measured order that is nearest in octaves. */
static int nearest_order(const struct svd_bench *found, int octave)
{
    int nearest = 0;
    for (int i = 1; i < found->measured; i++)
        if (abs(gpu_svd_octave(orders[i]) - octave) < abs(gpu_svd_octave(orders[nearest]) - octave))
            nearest = i;
    return nearest;
}

static void tell_gpu(struct gpu_device *device, const struct svd_bench *found)
{
    for (int octave = 0; found->measured > 0 && octave < GPU_SVD_OCTAVES; octave++)
        for (int dtype = 0; dtype < ACCEL_DTYPES; dtype++)
            for (int vectors = 0; vectors < 2; vectors++)
                gpu_svd_choose(device, (enum accel_dtype)dtype, vectors, octave,
                               found->algorithm[nearest_order(found, octave)][dtype][vectors]);
}

void svd_bench_run(struct svd_bench *found, struct gpu_device *device,
                   struct workload_memory *memory, double deadline, void (*progress)(int64_t order))
{
    found->measured = 0;
    double begun = bench_now(), last = 0;
    for (int i = 0; i < SVD_ORDERS; i++) {
        /* The time grows by the cube of the order. */
        double growth = i > 0 ? pow((double)orders[i] / (double)orders[i - 1], 3) : 0;
        if (i > 0 && bench_now() + fmin(growth, 10) * last > deadline)
            break;
        if (progress)
            progress(orders[i]);
        bool made = true;
        for (int j = 0; made && j < 2 * ACCEL_DTYPES; j++) {
            struct svd_trial trial;
            made = make_trial(&trial, device, memory, (enum accel_dtype)(j / 2), j % 2, orders[i]);
            if (made)
                found->algorithm[i][j / 2][j % 2] = fastest(&trial, j % 2);
            end_trial(&trial);
        }
        if (!made)
            break;
        found->measured = i + 1;
        last = bench_now() - begun;
        begun = bench_now();
    }
    tell_gpu(device, found);
}

void svd_bench_write(const struct svd_bench *found, FILE *to)
{
    char name[CALIBRATION_SVD_BYTES];
    for (int j = 0; found->measured > 0 && j < 2 * ACCEL_DTYPES; j++) {
        calibration_svd_name(name, (enum accel_dtype)(j / 2), j % 2);
        fputs(name, to);
        for (int i = 0; i < found->measured; i++)
            fprintf(to, " %lld:%s", (long long)orders[i],
                    gpu_svd_names[found->algorithm[i][j / 2][j % 2]]);
        fputc('\n', to);
    }
}
