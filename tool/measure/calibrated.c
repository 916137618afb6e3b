#include "calibrated.h"

#include "ops/op.h"

#include <math.h>
#include <stdio.h>

/* Returns the track of the double-precision product: that of the first bench plan that has one. */
static const struct bench_track *find_product(const struct bench_plan *plan, int plans, bool gpu)
{
    const struct accel_routine *product = accel_sample_of(ACCEL_SAMPLE_PRODUCT, ACCEL_FLOAT64);
    for (const struct bench_plan *end = plan + plans; plan < end; plan++)
        for (int i = 0; i < plan->tracks; i++) {
            const struct bench_track *x = &plan->track[i];
            if (x->routine == product && x->gpu == gpu)
                return x;
        }
    return NULL;
}

/* Returns the largest measured square with fewer flops than `limit`; NULL if there is none. */
static const struct bench_shape *largest_square(const struct bench_track *track, double limit)
{
    const struct bench_shape *best = NULL;
    for (int i = 0; track && i < track->shapes; i++)
        if (track->shape[i].kind == BENCH_SQUARE && track->shape[i].ms > 0 &&
            track->shape[i].flops < limit)
            best = &track->shape[i];
    return best;
}

static void report_rate(const struct bench_track *track)
{
    const struct bench_shape *x = largest_square(track, INFINITY);
    if (x)
        printf("%s of order %lld on the %s: %.4g Gflop/s\n", track->routine->name,
               (long long)x->size[ACCEL_n], track->gpu ? "GPU" : "CPU",
               x->flops / x->model_ms * 1e-6);
}

/* Prints the order from which on a square product is faster on the GPU, copies included:
 * interpolates, by logarithms, between the largest order that is not and the next. */
static void report_crossover(const struct bench_track *cpu, const struct bench_track *gpu)
{
    double limit = INFINITY, order = 0, above = 0;
    const struct bench_shape *x, *y;
    if (!cpu || !gpu)
        return;
    const char *name = cpu->routine->name;
    while ((x = largest_square(cpu, limit)) && (y = largest_square(gpu, limit))) {
        if (x->flops != y->flops) { /* one side was measured further */
            limit = fmax(x->flops, y->flops);
            continue;
        }
        double gain = log(x->ms / y->ms), n = (double)x->size[ACCEL_n];
        if (gain <= 0) {
            if (order > 0)
                printf("%s is faster on the GPU from order %.0f on, copies included\n", name,
                       exp(log(n) + log(order / n) * -gain / (above - gain)));
            else
                printf("%s is faster on the CPU up to order %.0f, copies to the GPU included\n",
                       name, n);
            return;
        }
        order = n;
        above = gain;
        limit = x->flops;
    }
    if (order > 0)
        printf("%s is faster on the GPU from order %.0f on, copies included\n", name, order);
}

static void report_short_columns(const char *way, const struct short_columns *x)
{
    if (x->ms > 0)
        printf("columns of a matrix of less than %.3g KB take up to %.3g ns more each %s\n",
               x->bytes * 1e-3, x->ms * 1e6, way);
}

static void report_paces(enum accel_dtype dtype, const struct block_paces *paces)
{
    int slowest = 0, fastest = 0;
    for (int i = 1; i < PACES; i++) {
        slowest = paces->of[i] < paces->of[slowest] ? i : slowest;
        fastest = paces->of[i] > paces->of[fastest] ? i : fastest;
    }
    if (paces->of[0] > 0 && paces->of[slowest] < paces->of[fastest])
        printf("%s: blocks of %lld rows are multiplied %.2f times as fast as those of %lld\n",
               accel_sample_of(ACCEL_SAMPLE_PRODUCT, dtype)->name, (long long)pace_rows(fastest),
               (double)(paces->of[fastest] / paces->of[slowest]), (long long)pace_rows(slowest));
}

void calibrated_print(const char *path, const struct sections *sections,
                      const struct bench_plan *plan, int plans, const char *no_gpu)
{
    const struct bench_track *cpu = find_product(plan, plans, false),
                             *gpu = find_product(plan, plans, true);
    int discarded = 0;
    for (int i = 0; i < plans; i++)
        discarded += plan[i].discarded;
    printf("%s\n", path);
    for (int i = 0; i < sections->count; i++)
        printf("%s: %d routine%s\n", sections->key[i], sections->routines[i],
               sections->routines[i] == 1 ? "" : "s");
    if (no_gpu)
        printf("no GPU was measured: %s\n", no_gpu);
    else
        printf("copies: %.1f GB/s to the GPU, %.1f GB/s back, in pieces of %lld KiB\n"
               "first calls: %.3g ms for a routine's kernels, %.3g ms for cuSOLVER\n",
               plan->copies.up_gbps, plan->copies.down_gbps,
               (long long)gpu_chunk(plan->device) / 1024, plan->first.kernels_ms,
               plan->first.solver_ms);
    if (!no_gpu) {
        report_short_columns("to the GPU", &plan->copies.short_up);
        report_short_columns("back", &plan->copies.short_down);
    }
    for (int i = 0; !no_gpu && i < ACCEL_DTYPES; i++)
        report_paces((enum accel_dtype)i, &plan->paces[i]);
    if (!no_gpu && plan->place_gbps > 0)
        printf("operands in host memory: kernels read %.1f GB/s in place\n", plan->place_gbps);
    for (int i = GPU_NATIVE + 1; !no_gpu && i < GPU_PRECISIONS; i++)
        if (plan->gains.gain[i] > 0)
            printf("products: %s is %.3g times as fast as native\n", gpu_precision_names[i],
                   plan->gains.gain[i]);
    if (discarded)
        printf("%d call%s left out, as larger ones took less than half as long\n", discarded,
               discarded == 1 ? " was" : "s were");
    report_rate(cpu);
    if (no_gpu)
        return;
    report_rate(gpu);
    report_crossover(cpu, gpu);
}
