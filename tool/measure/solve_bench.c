#include "solve_bench.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cpu_ref/verify.h"
#include "ops/op.h"

/* The first one is small: it tells whether our own kernel is right, and too slow to be measured at
 * all (on a device that is emulated, say). Others are those of a schedule's tiles. */
const struct solve_shape solve_shapes[SOLVE_SHAPES] = {[SOLVE_SMALL] = {'L', 64, 256},
                                                       [SOLVE_FEW] = {'L', 640, 1024},
                                                       [SOLVE_MANY] = {'L', 640, 8192},
                                                       [SOLVE_RIGHT] = {'R', 640, 8192}};

/* Our own must gain a twentieth, as for all decisions. */
static const double gain = 0.95, far_behind = 2;

/* Triangles that are read along columns and along rows, from the first row on and from the last. */
struct form {
    char uplo, trans, diag;
    double alpha;
};
static const struct form typical = {'L', 'N', 'N', 1};
static const struct form forms[] = {
    {'L', 'N', 'N', 1}, {'U', 'N', 'U', -0.75}, {'L', 'T', 'N', 1.5}, {'U', 'T', 'N', 1}};
enum { FORMS = sizeof forms / sizeof *forms };

/* Makes a call of this shape; a product is one with a square of the triangle's order. */
static bool make_call(struct workload *workload, struct workload_memory *memory,
                      enum accel_sample sample, enum accel_dtype dtype,
                      const struct solve_shape *shape)
{
    const struct accel_routine *routine = accel_sample_of(sample, dtype);
    const bool left = shape->side == 'L';
    const int64_t size[ACCEL_DIMENSIONS] = {[ACCEL_m] = left ? shape->order : shape->nrhs,
                                            [ACCEL_n] = left ? shape->nrhs : shape->order,
                                            [ACCEL_k] = shape->order};
    return routine && workload_make(workload, memory, routine, size, NULL);
}

static bool make_solution(struct workload *workload, struct workload_memory *memory,
                          enum accel_dtype dtype, const struct solve_shape *shape,
                          const struct form *form)
{
    struct blas_arguments *x = &workload->call.blas;
    if (!make_call(workload, memory, ACCEL_SAMPLE_SOLVE, dtype, shape))
        return false;
    x->flag[ACCEL_side] = shape->side;
    x->flag[ACCEL_uplo] = form->uplo;
    x->flag[ACCEL_trans] = form->trans;
    x->flag[ACCEL_diag] = form->diag;
    x->scalar[ACCEL_alpha] = (struct accel_complex){form->alpha, 0};
    return workload_place(workload, memory, NULL);
}

/* Returns the least milliseconds of some runs; infinity if one fails. */
static double time_workload(struct workload *workload, struct gpu_device *device)
{
    struct timing timing = {.warm = 1, .most = 4, .enough_ms = 50}; /* the first loads kernels */
    while (timing_add(&timing, workload_compute_ms(workload, device, GPU_NATIVE)))
        ;
    return timing.best_ms < 0 ? INFINITY : timing.best_ms;
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
        if (workload_compute_ms(workload, device, GPU_NATIVE) > 0)
            ratio = cpu_ref_verify(call, before, 1, 0);
    }
    free(old);
    return ratio >= 0 && ratio <= 1;
}

/* Returns whether our own kernel is there, and right in all forms. */
static bool own_is_right(struct gpu_device *device, struct workload_memory *memory,
                         enum accel_dtype dtype)
{
    struct solve_shape shape = solve_shapes[SOLVE_SMALL];
    struct workload workload;
    bool right = true;
    gpu_solve_by_own(device, dtype, 1);
    for (int i = 0; right && i < 2 * FORMS; i++) {
        shape.side = i % 2 ? 'R' : 'L';
        shape.order = i / 2 % 2 ? 200 : 64; /* several blocks, of which the last one has few rows */
        shape.nrhs = 100;
        right = make_solution(&workload, memory, dtype, &shape, &forms[i / 2]) &&
                is_right(&workload, device);
    }
    right = right && gpu_solves_by_own(device, dtype, 1); /* it has not turned out to be missing */
    gpu_solve_by_own(device, dtype, 0);
    return right;
}

static struct solve_times measure_solve(struct gpu_device *device, struct workload_memory *memory,
                                        enum accel_dtype dtype, const struct solve_shape *shape,
                                        bool try_own)
{
    struct solve_times times = {INFINITY, INFINITY, INFINITY};
    struct workload workload;
    if (make_call(&workload, memory, ACCEL_SAMPLE_PRODUCT, dtype, shape))
        times.product = time_workload(&workload, device);
    if (!make_solution(&workload, memory, dtype, shape, &typical))
        return times;
    times.blas = time_workload(&workload, device);
    gpu_solve_by_own(device, dtype, try_own ? 1 : 0);
    /* A kernel that is not there turns out to be missing when it is to run: cuBLAS solves then. */
    if (try_own && is_right(&workload, device) && gpu_solves_by_own(device, dtype, shape->nrhs))
        times.own = time_workload(&workload, device);
    gpu_solve_by_own(device, dtype, 0);
    return times;
}

bool solve_own_is_near(const struct solve_times *times)
{
    return times->own < far_behind * times->blas;
}

int64_t solve_own_nrhs(const struct solve_times times[SOLVE_SHAPES])
{
    bool gains[SOLVE_SHAPES];
    for (int i = 0; i < SOLVE_SHAPES; i++) {
        if (!solve_own_is_near(&times[i]))
            return 0;
        gains[i] = times[i].own < gain * times[i].blas;
    }
    return !gains[SOLVE_MANY] || !gains[SOLVE_RIGHT] ? 0
           : gains[SOLVE_FEW]                        ? solve_shapes[SOLVE_FEW].nrhs
                                                     : solve_shapes[SOLVE_MANY].nrhs;
}

struct schedule_solving solve_rates_of(enum accel_dtype dtype,
                                       const struct solve_times times[SOLVE_SHAPES], bool own)
{
    const double most_gbps = 1e4, least_row_ms = 1e-6;
    const struct solve_shape *few = &solve_shapes[SOLVE_FEW], *many = &solve_shapes[SOLVE_MANY];
    const double bytes = (double)(many->order * many->nrhs) * (double)accel_dtype_size(dtype);
    double rest[SOLVE_SHAPES]; /* besides the operations, half as many as those of the product */
    for (int i = SOLVE_FEW; i <= SOLVE_MANY; i++)
        rest[i] = (own ? times[i].own : times[i].blas) - times[i].product / 2;
    if (!isfinite(rest[SOLVE_FEW]) || !isfinite(rest[SOLVE_MANY]))
        return (struct schedule_solving){0, 0};
    return (struct schedule_solving){
        .gbps = bytes / fmax(rest[SOLVE_MANY], bytes / most_gbps * 1e-6) * 1e-6,
        .row_ms = fmax(rest[SOLVE_FEW] / (double)few->order, least_row_ms)};
}

static void bench_type(struct solve_bench *found, struct gpu_device *device,
                       struct workload_memory *memory, enum accel_dtype dtype)
{
    struct solve_times times[SOLVE_SHAPES];
    bool try_own = true;
    for (int i = SOLVE_SMALL; i < SOLVE_SHAPES; i++) {
        times[i] = (struct solve_times){INFINITY, INFINITY, INFINITY};
        if (!try_own && i != SOLVE_FEW && i != SOLVE_MANY) /* these two tell cuBLAS's rates */
            continue;
        times[i] = measure_solve(device, memory, dtype, &solve_shapes[i], try_own);
        try_own = try_own && solve_own_is_near(&times[i]) &&
                  (i > SOLVE_SMALL || own_is_right(device, memory, dtype));
    }
    found->own_nrhs[dtype] = solve_own_nrhs(times);
    found->by[dtype][0] = solve_rates_of(dtype, times, false);
    if (found->own_nrhs[dtype] > 0)
        found->by[dtype][1] = solve_rates_of(dtype, times, true);
    gpu_solve_by_own(device, dtype, found->own_nrhs[dtype]);
}

struct solve_bench solve_bench_run(struct gpu_device *device, struct workload_memory *memory)
{
    struct solve_bench found = {.own_nrhs = {0}};
    bench_type(&found, device, memory, ACCEL_FLOAT32);
    bench_type(&found, device, memory, ACCEL_FLOAT64);
    return found;
}
