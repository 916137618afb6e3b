/* Usage: record cpu|gpu [SECONDS [ROUTINE]]
 *
 * Times every routine that the GPU has (or one), in three shapes with sizes from 8 to 16384, by the
 * system's libraries or by libaccel's GPU side, and prints a line for each: routine, sizes,
 * milliseconds (on the GPU with the copies). A time that begins with ~ was not measured, because
 * one call would take longer than SECONDS (0.15) or more memory than there is: it is what the two
 * largest measured ones say of the operations and the steps, and what its copies take, or what its
 * schedule says of them. */
#define _GNU_SOURCE
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "dispatch/cost/model.h"
#include "ops/typical.h"
#include "tool/measure/bench_plan.h"
#include "tool/measure/workload.h"

enum { LEAST = 8, MOST = 16384, SHAPES = 3, RUNS = 12 };

/* The last two calls of one shape of a routine that were measured on one side: operations, and
 * milliseconds without the copies. */
struct last {
    double flops[2], ms[2];
    bool failed; /* it cannot be had */
};

struct recorder {
    struct libraries library;
    struct gpu_device *device; /* NULL: not asked for */
    struct workload_memory memory;
    double most_ms;
    struct gpu_copy_rates copies;
};

static void size_of(int64_t size[ACCEL_DIMENSIONS], int shape, int64_t s)
{
    int64_t part = accel_max(8, s / 16);
    const int64_t sizes[SHAPES][ACCEL_DIMENSIONS] = {
        {s, s, s, s}, {s, s, part, 1}, {s, part, part, part}};
    memcpy(size, sizes[shape], sizeof sizes[shape]);
}

/* Shapes that are the same for a routine are recorded once. */
static bool is_new(const struct accel_routine *routine, int shape)
{
    bool m = accel_has_dimension(routine, ACCEL_m);
    bool inner = accel_has_dimension(routine, ACCEL_k) || accel_has_dimension(routine, ACCEL_nrhs);
    return shape == 0 || (shape == 1 ? inner : m || accel_has_dimension(routine, ACCEL_nrhs));
}

/* The best of a few runs after one that warms up; negative where it fails. kernel_ms: of a call
 * whose copies and kernels overlap, else 0. */
static double best_ms(struct recorder *r, const struct accel_routine *routine,
                      const int64_t size[ACCEL_DIMENSIONS], const struct library_function *function,
                      double *kernel_ms)
{
    struct workload workload;
    struct gpu_host host;
    enum gpu_status status;
    double best = -1, sum = 0;
    if (!workload_make(&workload, &r->memory, routine, size, function))
        return -1;
    *kernel_ms = function ? 0
                          : workload_kernel_ms(&workload, r->device,
                                               &(struct workload_device){.copies = &r->copies}, 2);
    for (int run = 0; run <= RUNS && (run < 3 || sum < r->most_ms / 10); run++) {
        double ms = function ? workload_cpu_ms(&workload)
                             : workload_gpu_ms(&workload, r->device, &host, &status);
        if (ms < 0)
            return -1;
        sum += ms;
        if (run > 0 && (best < 0 || ms < best))
            best = ms;
    }
    return best;
}

/* Part of the time grows with the operations, and part with the order, as steps that wait for each
 * other do: what the last two say of both. */
static double extrapolated_ms(const struct last *last, double flops)
{
    double steps[2] = {cbrt(last->flops[0]), cbrt(last->flops[1])};
    if (last->ms[1] <= 0)
        return 0;
    double per_flop = last->ms[1] / last->flops[1], per_step = 0;
    if (last->ms[0] > 0) {
        double scale = steps[0] / steps[1];
        double rest = last->ms[1] - last->ms[0] / scale,
               more = last->flops[1] - last->flops[0] / scale;
        per_flop = more > 0 ? fmax(rest / more, 0.1 * per_flop) : per_flop;
        per_step = fmax(0, (last->ms[1] - per_flop * last->flops[1]) / steps[1]);
    }
    return per_flop * flops + per_step * cbrt(flops);
}

/* Prints one time. */
static void record(struct recorder *r, struct last *last, const struct accel_routine *routine,
                   const int64_t size[ACCEL_DIMENSIONS], const struct library_function *function)
{
    struct accel_call call;
    struct model_work work;
    shape_typical(&call, routine, size);
    model_work_of(&call, !function, &work);
    double flops = work.term[MODEL_OPERATION];
    double copies = function ? 0 : model_copies_ms(&work, r->copies.up_gbps, r->copies.down_gbps);
    double bytes = work.term[MODEL_ELEMENT] * 1e6 * (double)accel_dtype_size(routine->dtype);
    const double alone = extrapolated_ms(last, flops);
    const double overlapped =
        function ? 0
                 : workload_schedule_ms(&call, r->device,
                                        &(struct workload_device){.copies = &r->copies}, alone);
    double predicted = overlapped > 0 ? overlapped : alone + copies;
    if (predicted < r->most_ms && bytes < 1e9 && !last->failed) {
        double kernel_ms, ms = best_ms(r, routine, size, function, &kernel_ms);
        if (ms < 0) {
            last->failed = true;
            fprintf(stderr, "record: %s is not recorded: it fails\n", routine->name);
            printf(" -");
            return;
        }
        last->flops[0] = last->flops[1];
        last->ms[0] = last->ms[1];
        last->flops[1] = flops;
        /* The copies take no longer than the whole. */
        last->ms[1] = kernel_ms > 0 ? kernel_ms : ms - fmin(copies, 0.95 * ms);
        printf(" %.6g", ms);
    } else if (last->failed) {
        printf(" -");
    } else {
        printf(" ~%.6g", predicted);
    }
}

static void record_shapes(struct recorder *r, const struct accel_routine *routine,
                          const struct library_function *function)
{
    for (int shape = 0; shape < SHAPES; shape++) {
        struct last last = {0};
        for (int64_t s = LEAST; is_new(routine, shape) && s <= MOST; s *= 2) {
            int64_t size[ACCEL_DIMENSIONS];
            char mark = ' ';
            size_of(size, shape, s);
            printf("%s", routine->name);
            for (int d = 0; d < ACCEL_DIMENSIONS; d++)
                if (accel_has_dimension(routine, d)) {
                    printf("%c%lld", mark, (long long)size[d]);
                    mark = 'x';
                }
            record(r, &last, routine, size, function);
            printf("\n");
            fflush(stdout);
        }
    }
}

int main(int argc, char **argv)
{
    struct recorder r = {.most_ms = 150, .copies = {.up_gbps = 1, .down_gbps = 1}};
    bool on_gpu = argc > 1 && strcmp(argv[1], "gpu") == 0;
    const struct gpu_config config = {.cuda_dir = getenv("ACCEL_CUDA_DIR"), .memory_share = 0.8};
    char why[GPU_FAILURE_BYTES];
    if (argc < 2 || (!on_gpu && strcmp(argv[1], "cpu") != 0)) {
        fprintf(stderr, "usage: record cpu|gpu [SECONDS]\n");
        return 2;
    }
    if (argc > 2)
        r.most_ms = 1e3 * atof(argv[2]);
    const char *wrong = libraries_open(&r.library, NULL);
    if (wrong || !workload_memory_open(&r.memory, (size_t)3 << 30)) {
        fprintf(stderr, "record: %s\n", wrong ? wrong : "no memory");
        return 1;
    }
    if (on_gpu && ((r.device = gpu_start(&config, why)) == NULL ||
                   !gpu_measure_copies(r.device, &r.copies))) {
        fprintf(stderr, "record: no GPU: %s\n", r.device ? gpu_failure(r.device) : why);
        return 1;
    }
    for (uint32_t i = 0; i < accel_routine_count; i++) {
        struct library_function function;
        if (argc > 3 && strcmp(argv[3], accel_routines[i].name) != 0)
            continue;
        if (workload_is_for(&accel_routines[i]) &&
            libraries_find(&r.library, &accel_routines[i], &function))
            record_shapes(&r, &accel_routines[i], on_gpu ? NULL : &function);
    }
    return 0;
}
