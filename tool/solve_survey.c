#include "solve_survey.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cpu_ref/verify.h"
#include "ops/op.h"
#include "ops/shape.h"

enum { RUNS = 4 };     /* the first warms up */
#define ENOUGH_MS 50.0 /* of runs */

/* The first one is small: it tells whether our own kernel is right, and too slow to be measured at all (on a device that is emulated, say). The last
 * ones are those of a schedule's cells. */
const int64_t solve_shapes[SOLVE_SHAPES][2] = {
    [SOLVE_SMALL] = {40, 1024}, [SOLVE_FEW] = {640, 1024}, [SOLVE_MANY] = {640, 8192}};

/* Our own must gain a twentieth, as for all decisions. */
static const double gain = 0.95, far_behind = 10;

/* A solution, or of a product with a square of the triangle's order, which has twice as many operations. */
static bool make(struct workload *workload, struct workload_memory *memory,
                 enum accel_sample sample, enum accel_dtype dtype, const int64_t shape[2])
{
    const struct accel_routine *routine = accel_sample_of(sample, dtype);
    const int64_t size[ACCEL_DIMENSIONS] = {
        [ACCEL_m] = shape[0],
        [ACCEL_n] = shape[1],
        [ACCEL_k] = routine && accel_has_size(routine, ACCEL_k) ? shape[0] : 0};
    return routine && workload_make(workload, memory, routine, size, NULL);
}

/* Returns the least milliseconds of some runs; infinity if one fails. */
static double time_of(struct workload *workload, struct gpu_device *device)
{
    double least = INFINITY, spent = 0;
    for (int run = 0; run < RUNS && spent < ENOUGH_MS; run++) {
        const double ms = workload_span_ms(workload, device);
        if (!(ms > 0))
            return INFINITY;
        least = fmin(least, ms);
        spent += ms;
    }
    return least;
}

/* Returns whether a run's result passes the tests. */
static bool is_right(struct workload *workload, struct gpu_device *device)
{
    const struct accel_call *call = &workload->call;
    const struct accel_span *b = &call->span[ACCEL_b];
    void *old = malloc((size_t)accel_bytes(b));
    const void *before[ACCEL_SPANS] = {[ACCEL_b] = old};
    double ratio = INFINITY;
    if (old) {
        workload_fill(workload);
        memcpy(old, b->ptr, (size_t)accel_bytes(b)); /* without gaps */
        if (workload_span_ms(workload, device) > 0)
            ratio = cpu_ref_verify(call, before, 1, 0);
    }
    free(old);
    return ratio >= 0 && ratio <= 1;
}

static struct solve_times measure(struct gpu_device *device, struct workload_memory *memory,
                                  enum accel_dtype dtype, const int64_t shape[2], bool try_own)
{
    struct solve_times times = {INFINITY, INFINITY, INFINITY};
    struct workload workload;
    gpu_solve_by_own(device, dtype, 0);
    if (make(&workload, memory, ACCEL_SAMPLE_PRODUCT, dtype, shape))
        times.product = time_of(&workload, device);
    if (!make(&workload, memory, ACCEL_SAMPLE_SOLVE, dtype, shape))
        return times;
    times.blas = time_of(&workload, device);
    gpu_solve_by_own(device, dtype, try_own ? 1 : 0);
    if (gpu_solves_by_own(device, dtype, shape[1]) && is_right(&workload, device))
        times.own = time_of(&workload, device);
    gpu_solve_by_own(device, dtype, 0);
    return times;
}

int64_t solve_own_sides(const struct solve_times times[SOLVE_SHAPES])
{
    const struct solve_times *few = &times[SOLVE_FEW], *many = &times[SOLVE_MANY];
    return !isfinite(few->own) || !(many->own < gain * many->blas) ? 0
           : few->own < gain * few->blas                           ? solve_shapes[SOLVE_FEW][1]
                                         : solve_shapes[SOLVE_MANY][1] / 2;
}

struct solve_way solve_way_of(enum accel_dtype dtype, const struct solve_times times[SOLVE_SHAPES],
                              bool own)
{
    const double most_gbps = 1e4, least_row_ms = 1e-6;
    const int64_t *few = solve_shapes[SOLVE_FEW], *many = solve_shapes[SOLVE_MANY];
    const double bytes = (double)(many[0] * many[1]) * (double)accel_dtype_size(dtype);
    double rest[SOLVE_SHAPES]; /* besides the operations, half as many as those of the product */
    for (int i = SOLVE_FEW; i <= SOLVE_MANY; i++)
        rest[i] = (own ? times[i].own : times[i].blas) - times[i].product / 2;
    if (!isfinite(rest[SOLVE_FEW]) || !isfinite(rest[SOLVE_MANY]))
        return (struct solve_way){0, 0};
    return (struct solve_way){.gbps =
                                  bytes / fmax(rest[SOLVE_MANY], bytes / most_gbps * 1e-6) * 1e-6,
                              .row_ms = fmax(rest[SOLVE_FEW] / (double)few[0], least_row_ms)};
}

static void survey_type(struct solve_survey *found, struct gpu_device *device,
                        struct workload_memory *memory, enum accel_dtype dtype)
{
    struct solve_times times[SOLVE_SHAPES];
    bool try_own = true;
    for (int i = 0; i < SOLVE_SHAPES; i++) {
        times[i] = measure(device, memory, dtype, solve_shapes[i], try_own);
        try_own = try_own && times[i].own < far_behind * times[i].blas;
    }
    found->own_sides[dtype] = solve_own_sides(times);
    found->way[dtype][0] = solve_way_of(dtype, times, false);
    if (found->own_sides[dtype] > 0)
        found->way[dtype][1] = solve_way_of(dtype, times, true);
    gpu_solve_by_own(device, dtype, found->own_sides[dtype]);
}

struct solve_survey solve_survey_run(struct gpu_device *device, struct workload_memory *memory)
{
    struct solve_survey found = {.own_sides = {0}};
    survey_type(&found, device, memory, ACCEL_FLOAT32);
    survey_type(&found, device, memory, ACCEL_FLOAT64);
    return found;
}
