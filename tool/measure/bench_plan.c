#define _GNU_SOURCE
#include "bench_plan.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "dispatch/cost/problem.h"
#include "ops/op.h"
#include "ops/typical.h"
#include "base/thread/clock.h"

/* ---- Shapes ---- */

/* Evenly spaced by their logarithms. None is a power of two: some libraries are slower there. */
static const int64_t orders[] = {12, 24, 48, 96, 192, 384, 800, 1600, 3200};
enum { ORDERS = sizeof orders / sizeof *orders };

enum {
    /* Shapes with no more operations than a square of this are measured at any rate */
    LEAST_ORDER = 48,
    RUNS = 10, /* of a short call, after one that warms up */
    LEAST_INNER = 4
};

/* Skinny: inner size and right-hand sides are a part of the order. Tall: one size is long, with one
 * right-hand side, or, for every other order, with as many as a tall matrix has columns. */
static void choose_sizes(int64_t size[ACCEL_DIMENSIONS], const struct accel_routine *routine,
                         enum bench_kind kind, int order)
{
    int64_t s = orders[order], part = s / 32;
    int64_t inner = accel_max(LEAST_INNER, part), sides = accel_max(1, part);
    bool has_m = accel_has_dimension(routine, ACCEL_m),
         has_k = accel_has_dimension(routine, ACCEL_k);
    const int64_t sizes[BENCH_KINDS][ACCEL_DIMENSIONS] = {
        [BENCH_SQUARE] = {s, s, s, s},
        [BENCH_SKINNY] = {s, s, inner, sides},
        [BENCH_TALL] = {s, has_m || has_k ? inner : s, has_m ? inner : s,
                        has_m && order % 2 ? inner : 1},
    };
    for (int i = 0; i < ACCEL_DIMENSIONS; i++)
        size[i] = accel_has_dimension(routine, i) ? sizes[kind][i] : 0;
}

/* Adds a shape, unless another kind gives the same sizes. */
static void add_shape(struct bench_track *track, enum bench_kind kind, int order)
{
    struct bench_shape *shape = &track->shape[track->shapes];
    struct accel_call call;
    *shape = (struct bench_shape){.kind = kind};
    choose_sizes(shape->size, track->routine, kind, order);
    for (const struct bench_shape *x = track->shape; x < shape; x++)
        if (memcmp(x->size, shape->size, sizeof x->size) == 0)
            return;
    shape_typical(&call, track->routine, shape->size);
    shape->flops = accel_flops(&call);
    track->shapes++;
}

static int by_flops(const void *a, const void *b)
{
    const struct bench_shape *x = a, *y = b;
    return (x->flops > y->flops) - (x->flops < y->flops);
}

static void make_track(struct bench_track *track, const struct accel_routine *routine, bool gpu)
{
    *track = (struct bench_track){.routine = routine, .gpu = gpu};
    for (int kind = 0; kind < BENCH_KINDS; kind++)
        for (int i = 0; i < ORDERS; i++)
            add_shape(track, (enum bench_kind)kind, i);
    qsort(track->shape, (size_t)track->shapes, sizeof *track->shape, by_flops);
    for (int i = 0; i < track->shapes; i++)
        if (track->shape[i].kind == BENCH_SQUARE && track->shape[i].size[ACCEL_n] <= LEAST_ORDER)
            track->least = i + 1;
}

bool bench_plan_open(struct bench_plan *plan)
{
    plan->tracks = 0;
    plan->track = calloc(2 * accel_routine_count, sizeof *plan->track);
    for (uint32_t i = 0; plan->track && i < accel_routine_count; i++) {
        const struct accel_routine *routine = &accel_routines[i];
        struct library_function function;
        if (!workload_is_for(routine))
            continue;
        if (libraries_find(plan->library, routine, &function)) {
            make_track(&plan->track[plan->tracks], routine, false);
            plan->track[plan->tracks++].function = function;
        }
        if (plan->gpu)
            make_track(&plan->track[plan->tracks++], routine, true);
    }
    return plan->track;
}

void bench_plan_close(struct bench_plan *plan)
{
    free(plan->track);
    plan->track = NULL;
}

/* ---- The time that a shape will take ---- */

/* Extrapolates from the last two measured shapes of the same kind: the times of small shapes grow
 * by less than their operations, and those of a larger one by a little more than before. Without
 * such shapes: from the last one measured, by the operations. 0 if nothing was measured. */
static double predicted_ms(const struct bench_track *track, const struct bench_shape *shape)
{
    const struct bench_shape *last = NULL, *before = NULL, *other = NULL;
    for (const struct bench_shape *x = track->shape; x < shape; x++) {
        if (x->ms <= 0)
            continue;
        other = x;
        if (x->kind == shape->kind) {
            before = last;
            last = x;
        }
    }
    const struct bench_shape *from = last ? last : other;
    if (!from)
        return 0;
    double growth = 1;
    if (before && last->flops > before->flops)
        growth = log(last->ms / before->ms) / log(last->flops / before->flops) + 0.25;
    return from->ms * pow(shape->flops / from->flops, fmin(fmax(growth, 0.25), 1.1));
}

static double cost_ms(const struct bench_track *track, double limit_ms)
{
    if (track->next < track->least)
        return 0;
    double run = predicted_ms(track, &track->shape[track->next]);
    return run + fmin(RUNS * run, limit_ms);
}

/* ---- Measuring ---- */

/* Returns the milliseconds of one run; negative if it fails. Ends the track if the GPU cannot run
 * the routine, and the GPU's measurements if the GPU itself fails. */
static double run_once(struct bench_plan *plan, struct bench_track *track,
                       struct workload *workload, struct gpu_host *host)
{
    if (!track->gpu)
        return workload_cpu_ms(workload);
    enum gpu_status status;
    double ms = workload_gpu_ms(workload, plan->device, host, &status);
    bool routine = status == GPU_ERROR && host->blame != GPU_BLAME_DEVICE;
    if (status == GPU_UNSUPPORTED || routine)
        track->next = track->shapes;
    else if (status != GPU_OK && status != GPU_NO_MEMORY)
        plan->gpu = false;
    return ms;
}

/* Returns how often the system has taken a processor from this process's threads. */
static long preemptions(void)
{
    struct rusage usage;
    return getrusage(RUSAGE_SELF, &usage) == 0 ? usage.ru_nivcsw : 0;
}

static struct workload_device measured_of(const struct bench_plan *plan)
{
    return (struct workload_device){&plan->copies, &plan->solves, plan->paces};
}

static void measure_kernel(const struct bench_plan *plan, struct bench_shape *shape,
                           struct workload *workload, int runs)
{
    const struct workload_device measured = measured_of(plan);
    const double ms = workload_kernel_ms(workload, plan->device, &measured, runs);
    if (ms > 0)
        shape->kernel_ms = shape->kernel_ms > 0 ? fmin(shape->kernel_ms, ms) : ms;
}

/* Sets shape->ms to the best of some runs, and of what it was: other work makes a time longer,
 * never shorter. Runs until limit_ms are spent. If the best run was interrupted, or took far longer
 * than expected_ms, goes on within the bench plan's time: to three runs, or to three times
 * limit_ms. */
static void measure_shape(struct bench_plan *plan, struct bench_track *track,
                          struct bench_shape *shape, double expected_ms, double limit_ms)
{
    if (plan->progress)
        plan->progress(plan, track, shape);
    struct workload workload;
    struct gpu_host host;
    struct timing timing = {.most = RUNS, .enough_ms = limit_ms};
    bool is_short = expected_ms <= limit_ms;
    double ms;
    long before;
    if (!workload_make(&workload, &plan->memory, track->routine, shape->size,
                       track->gpu ? NULL : &track->function) ||
        (is_short && run_once(plan, track, &workload, &host) < 0)) /* warms up */
        return;
    if (track->gpu)
        measure_kernel(plan, shape, &workload, is_short ? 2 : 1);
    do {
        before = preemptions();
        ms = run_once(plan, track, &workload, &host);
        if (timing.runs > 0 && ms >= timing.best_ms)
            continue;
        const bool doubtful =
            bench_now() < plan->deadline &&
            (preemptions() > before || (ms > 1.5 * expected_ms && expected_ms > 0));
        timing.least = doubtful ? 3 : 1;
        timing.enough_ms = doubtful && is_short ? 3 * limit_ms : limit_ms;
    } while (timing_add(&timing, ms));
    if (timing.best_ms < 0)
        return;
    const double best = fmax(timing.best_ms, 1e-6); /* the clock's resolution */
    shape->ms = shape->ms > 0 ? fmin(shape->ms, best) : best;
    if (track->gpu)
        shape->copies_ms = 1e-6 * ((double)host.up_bytes / plan->copies.up_gbps +
                                   (double)host.down_bytes / plan->copies.down_gbps);
}

double bench_now(void)
{
    return accel_now_ms() * 1e-3;
}

/* Returns the side's track whose next shape is the cheapest; NULL if none is left. */
static struct bench_track *cheapest(const struct bench_plan *plan, bool gpu, double limit_ms,
                                    double *cost)
{
    struct bench_track *best = NULL;
    for (int i = 0; i < plan->tracks; i++) {
        struct bench_track *track = &plan->track[i];
        if (track->next == track->shapes || track->gpu != gpu || (gpu && !plan->gpu))
            continue;
        double ms = cost_ms(track, limit_ms);
        if (!best || ms < *cost) {
            best = track;
            *cost = ms;
        }
    }
    return best;
}

/* Measures the shapes that are left on one side, the cheapest first. */
static void measure_rest(struct bench_plan *plan, bool gpu, double limit_ms, double deadline)
{
    struct bench_track *track;
    double cost = 0;
    while ((track = cheapest(plan, gpu, limit_ms, &cost)) &&
           (bench_now() + cost * 1e-3 <= deadline || cost == 0)) {
        struct bench_shape *shape = &track->shape[track->next++];
        measure_shape(plan, track, shape, predicted_ms(track, shape), limit_ms);
    }
}

/* Larger calls are estimated, and their schedules made, by a square of this order, of products and
 * of factorisations. A smaller one comes before, and tells whether there is time for it. A large
 * GPU is not full before products are larger: the rate of those is that of all that is divided into
 * blocks. */
enum { GUIDING_ORDER = 1600, BEFORE_ORDER = 192, FILLING_ORDER = PACE_USUAL };

static struct bench_shape *square(struct bench_track *track, int64_t order)
{
    for (struct bench_shape *x = track->shape; x < track->shape + track->shapes; x++)
        if (x->kind == BENCH_SQUARE && x->size[ACCEL_n] == order)
            return x;
    return NULL;
}

static bool guides(const struct bench_track *track, const struct bench_shape *shape)
{
    struct accel_call call;
    struct problem problem;
    shape_typical(&call, track->routine, shape->size);
    problem_of(&problem, &call);
    return problem.is_divided || accel_gpu_of(accel_op_of(track->routine))->in_panels;
}

/* Measures a square, if there is time, by what a smaller one has taken. */
static void measure_behind(struct bench_plan *plan, struct bench_track *track,
                           const struct bench_shape *before, int64_t order, double limit_ms,
                           double deadline)
{
    const double runs = 6;
    struct bench_shape *shape = square(track, order);
    if (!shape || before->ms <= 0)
        return;
    const double ms = before->ms * shape->flops / before->flops;
    if (bench_now() + 1e-3 * runs * ms <= deadline)
        measure_shape(plan, track, shape, 0, limit_ms);
}

static void measure_guide(struct bench_plan *plan, struct bench_track *track, double limit_ms,
                          double deadline)
{
    const struct bench_shape *guide = square(track, GUIDING_ORDER);
    struct bench_shape *before = square(track, BEFORE_ORDER);
    if (bench_now() >= deadline || !guide || !before || !guides(track, guide))
        return;
    measure_shape(plan, track, before, 0, limit_ms);
    measure_behind(plan, track, before, GUIDING_ORDER, limit_ms, deadline);
    if (track->routine == accel_sample_of(ACCEL_SAMPLE_PRODUCT, track->routine->dtype))
        measure_behind(plan, track, guide, FILLING_ORDER, limit_ms, deadline);
}

/* Of routines without such a guide, the time of a square that is not small tells how it grows: that
 * of eigenvalues and singular values far less than their operations. So those of LAPACK in double
 * precision are measured even if a busy machine leaves no time. */
static void measure_growth(struct bench_plan *plan, struct bench_track *track, double limit_ms,
                           double deadline)
{
    const struct accel_routine *routine = track->routine;
    struct bench_shape *shape = square(track, BEFORE_ORDER);
    const bool always = routine->dtype == ACCEL_FLOAT64 && accel_uses_solver(routine);
    if (shape && shape->ms <= 0 && (always || bench_now() < deadline))
        measure_shape(plan, track, shape, 0, limit_ms);
}

typedef void measure_some(struct bench_plan *plan, struct bench_track *track, double limit_ms,
                          double deadline);

/* Measures the shapes on the GPU that tell most, before the cheap ones: these may take all the
 * time. First those of double precision. */
static void measure_first(struct bench_plan *plan, measure_some *some, double limit_ms,
                          double deadline)
{
    static const enum accel_dtype types[] = {ACCEL_FLOAT64, ACCEL_FLOAT32, ACCEL_COMPLEX128,
                                             ACCEL_COMPLEX64};
    for (size_t type = 0; type < sizeof types / sizeof *types; type++)
        for (int t = 0; t < plan->tracks && plan->gpu; t++) {
            struct bench_track *track = &plan->track[t];
            if (track->gpu && track->routine->dtype == types[type])
                some(plan, track, limit_ms, deadline);
        }
}

/* Returns a larger shape that took far less, as only the machine's other work can make it: half the
 * time for a shape of the same kind, a quarter beside a square, which has the best rate of all.
 * NULL if there is none. */
static const struct bench_shape *faster_larger(const struct bench_track *track,
                                               const struct bench_shape *shape)
{
    for (const struct bench_shape *x = shape + 1; x < track->shape + track->shapes; x++) {
        bool larger = x->kind == shape->kind && shape->ms > 2 * x->ms;
        for (int i = 0; i < ACCEL_DIMENSIONS; i++)
            larger = larger && x->size[i] >= shape->size[i];
        if (x->ms > 0 && (larger || (shape->kind == BENCH_SQUARE && shape->ms > 4 * x->ms)))
            return x;
    }
    return NULL;
}

/* Measures the shapes again whose times cannot be true. */
static void retry(struct bench_plan *plan, bool gpu, double limit_ms, double deadline)
{
    for (int t = 0; t < plan->tracks; t++) {
        struct bench_track *track = &plan->track[t];
        for (int i = 0; track->gpu == gpu && (!gpu || plan->gpu) && i < track->shapes; i++) {
            struct bench_shape *shape = &track->shape[i];
            const struct bench_shape *faster = faster_larger(track, shape);
            if (faster && bench_now() + 3e-3 * shape->ms <= deadline)
                measure_shape(plan, track, shape, faster->ms, limit_ms);
        }
    }
}

/* Leaves out the shapes whose times still cannot be true. */
static void discard_impossible(struct bench_plan *plan)
{
    for (int t = 0; t < plan->tracks; t++)
        for (int i = 0; i < plan->track[t].shapes; i++) {
            struct bench_shape *shape = &plan->track[t].shape[i];
            if (faster_larger(&plan->track[t], shape)) {
                shape->ms = 0;
                plan->discarded++;
            }
        }
}

struct measured {
    struct bench_track *track;
    struct bench_shape *shape;
};

static int by_time(const void *a, const void *b)
{
    const struct measured *x = a, *y = b;
    return (x->shape->ms > y->shape->ms) - (x->shape->ms < y->shape->ms);
}

/* Measures one side's shapes once more, some time after the first: first the short ones, which the
 * machine's other work disturbs most. */
static void repeat(struct bench_plan *plan, bool gpu, double limit_ms, double deadline)
{
    struct measured *list = malloc((size_t)plan->tracks * BENCH_SHAPES * sizeof *list);
    int count = 0;
    if (!list)
        return;
    for (int t = 0; t < plan->tracks; t++) {
        struct bench_track *track = &plan->track[t];
        for (int i = 0; track->gpu == gpu && i < track->shapes; i++)
            if (track->shape[i].ms > 0)
                list[count++] = (struct measured){track, &track->shape[i]};
    }
    qsort(list, (size_t)count, sizeof *list, by_time);
    for (const struct measured *x = list; x < list + count && (!gpu || plan->gpu); x++) {
        double ms = x->shape->ms;
        if (bench_now() + 1e-3 * (ms + fmin(RUNS * ms, limit_ms)) > deadline)
            break;
        measure_shape(plan, x->track, x->shape, ms, limit_ms);
    }
    free(list);
}

/* Returns what a call takes whatever its size: the time of the smallest one, without copies. */
static double call_ms(const struct bench_track *track)
{
    for (const struct bench_shape *x = track->shape; x < track->shape + track->shapes; x++)
        if (x->ms > 0 && x->kernel_ms <= 0)
            return fmin(fmax(x->ms - x->copies_ms, 0.02 * x->ms), x->ms);
    return 0;
}

/* Sets model_ms: the time without the copies. It is the kernel's, and the call's own, where copies
 * and kernels overlap; else what the copies leave, at the measured rates. If these take almost all
 * of it, the difference says little: then a call takes as long as a smaller one of its kind. */
static void leave_out_copies(struct bench_track *track)
{
    const double call = call_ms(track);
    double least[BENCH_KINDS] = {0};
    for (struct bench_shape *shape = track->shape; shape < track->shape + track->shapes; shape++) {
        double floor = fmax(least[shape->kind], 0.02 * shape->ms);
        shape->model_ms = shape->kernel_ms > 0 ? shape->kernel_ms + call
                                               : fmax(shape->ms - shape->copies_ms, floor);
        shape->model_ms = fmin(shape->model_ms, shape->ms);
        least[shape->kind] = fmax(least[shape->kind], shape->model_ms);
    }
}

/* Adds the logarithms of the times over those that the schedules say. Returns how many. */
static int compare_with_schedules(const struct bench_plan *plan, const struct bench_track *track,
                                  double *logarithms)
{
    int count = 0;
    for (const struct bench_shape *x = track->shape; x < track->shape + track->shapes; x++) {
        struct accel_call call;
        if (x->ms <= 0)
            continue;
        shape_typical(&call, track->routine, x->size);
        const struct workload_device measured = measured_of(plan);
        const double ms = workload_schedule_ms(&call, plan->device, &measured, x->kernel_ms);
        if (ms <= 0)
            continue;
        *logarithms += log(x->ms / (ms + call_ms(track)));
        count++;
    }
    return count;
}

static void find_schedule_ratio(struct bench_plan *plan)
{
    double logarithms = 0;
    int count = 0;
    for (int i = 0; i < plan->tracks; i++)
        if (plan->track[i].gpu)
            count += compare_with_schedules(plan, &plan->track[i], &logarithms);
    plan->schedule_ratio = count > 0 ? exp(logarithms / count) : 0;
}

/* The GPU comes first: a library's threads spin for a while after a call, and would disturb it. */
void bench_plan_run(struct bench_plan *plan)
{
    const double start = plan->start, seconds = plan->deadline - start;
    const double limit_ms = fmax(0.08 * seconds, 1); /* 4 ms of 50 s */
    measure_first(plan, measure_guide, limit_ms, bench_now() + 0.2 * seconds);
    measure_first(plan, measure_growth, limit_ms, bench_now() + 0.06 * seconds);
    const double at_least = bench_now() + 0.1 * seconds;
    measure_rest(plan, true, limit_ms, fmax(start + 0.4 * seconds, at_least));
    retry(plan, true, limit_ms, fmax(start + 0.45 * seconds, at_least));
    measure_rest(plan, false, limit_ms, start + 0.75 * seconds);
    retry(plan, false, limit_ms, start + 0.85 * seconds);
    /* A time that was too long may have kept larger shapes back. */
    measure_rest(plan, false, limit_ms, start + 0.75 * seconds);
    if (plan->gpu) {
        const struct timespec wait = {.tv_nsec = 200000000};
        nanosleep(&wait, NULL);
        repeat(plan, true, limit_ms, start + 0.88 * seconds);
    }
    repeat(plan, false, limit_ms, plan->deadline);
    discard_impossible(plan);
    for (int i = 0; i < plan->tracks; i++)
        leave_out_copies(&plan->track[i]);
    find_schedule_ratio(plan);
}
