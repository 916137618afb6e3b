#include "model.h"

#include <string.h>

#include "gpu/plan/scheduled.h"
#include "ops/rules/lapack_rules.h"
#include "ops/op.h"
#include "call/shape.h"

/* ---- Logarithms ---- */

/* Of a positive number, to the base 2: exact at its powers, linear in between, which is as exact as
 * the curve is. */
static float log2_of(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return (float)((int64_t)(bits >> 52) - 1023) +
           (float)(bits & (((uint64_t)1 << 52) - 1)) / (float)((uint64_t)1 << 52);
}

/* The inverse of log2_of(), for ratios. */
static double power_of_2(double y)
{
    const double most = 100;
    y = y > most ? most : y > -most ? y : -most;
    int64_t whole = (int64_t)y - (y < 0);
    uint64_t bits = (uint64_t)(whole + 1023) << 52;
    double power;
    memcpy(&power, &bits, sizeof power);
    return power * (1 + (y - (double)whole));
}

/* ---- The work of a call ---- */

static struct accel_effort effort_of(const struct accel_call *call, bool device)
{
    const struct accel_op *op = call->op;
    return op->cost->effort
               ? op->cost->effort(call, device)
               : (struct accel_effort){accel_flops(call), op->foreign ? 0 : shape_steps(call)};
}

static void add_sent(const struct accel_call *call, const struct accel_span *x,
                     struct model_work *work)
{
    if (x->access & ACCEL_WRITE)
        work->down_bytes += lapack_sent_bytes(call, x, true);
    if (accel_is_read(call, x))
        work->up_bytes += lapack_sent_bytes(call, x, false);
}

void model_work_of(const struct accel_call *call, bool device, struct model_work *work)
{
    const int64_t *size = accel_sizes(call);
    const struct accel_effort effort = effort_of(call, device);
    double batch = (double)call->batch, elements = 0;
    *work = (struct model_work){.term = {[MODEL_CALL] = 1}};
    for (int i = 0; i < ACCEL_SPANS; i++) {
        const struct accel_span *x = &call->span[i];
        if (!x->access) /* the routine has no such operand */
            continue;
        const double count = (double)x->rows * (double)x->cols * batch;
        if (count <= 0)
            continue;
        const double bytes = count * (double)accel_dtype_size(x->dtype);
        elements += count;
        if (x->place != ACCEL_HOST)
            continue;
        if (accel_uses_solver(call->routine)) {
            add_sent(call, x, work);
            continue;
        }
        if (x->access & ACCEL_WRITE)
            work->down_bytes += bytes;
        /* Matrices that products share go up once. An array without a first matrix may not be
         * read. */
        if (accel_is_read(call, x))
            work->up_bytes += call->batch > 1 && (!x->array || x->ptr)
                                  ? bytes / batch * (double)scheduled_distinct(x, call->batch)
                                  : bytes;
    }
    work->term[MODEL_STEP] = effort.steps * batch;
    work->term[MODEL_ELEMENT] = elements * 1e-6;
    work->term[MODEL_OPERATION] = effort.operations * 1e-9;
    for (int i = 0; i < ACCEL_DIMENSIONS; i++)
        if (size[i] > 1)
            work->place[i] = log2_of((double)size[i]);
    if (call->batch > 1)
        work->place[ACCEL_DIMENSIONS] = log2_of(batch);
}

/* ---- The time ---- */

static double sum_of_terms(const double ms[MODEL_TERMS], const struct model_work *work)
{
    double sum = 0;
    for (int i = 0; i < MODEL_TERMS; i++)
        sum += ms[i] * work->term[i];
    return sum;
}

double model_terms_ms(const struct model_curve *curve, const struct model_work *work,
                      double *operations)
{
    const double sum = sum_of_terms(curve->ms, work);
    *operations = sum > 0 ? curve->ms[MODEL_OPERATION] * work->term[MODEL_OPERATION] / sum : 0;
    return sum;
}

/* A size this many octaves below the largest hardly matters to the time: one right-hand side or
 * eight. */
enum { FAR_BELOW = 5 };

static double largest_of(const float place[MODEL_SIZES])
{
    double largest = 0;
    for (int i = 0; i < ACCEL_DIMENSIONS; i++)
        largest = (double)place[i] > largest ? (double)place[i] : largest;
    return largest;
}

/* Every decision asks for it of each point of two curves. largest: of the work's sizes. */
static double distance2(const struct model_point *point, const struct model_work *work,
                        double largest)
{
    const double least[2] = {(double)point->largest - FAR_BELOW, largest - FAR_BELOW};
    double sum = 0;
    for (int i = 0; i < MODEL_SIZES; i++) {
        if (point->place[i] == work->place[i])
            continue;
        double one = (double)point->place[i], other = (double)work->place[i];
        if (i < ACCEL_DIMENSIONS) {
            one = one > least[0] ? one : least[0];
            other = other > least[1] ? other : least[1];
        }
        sum += (one - other) * (one - other);
    }
    return sum;
}

/* The terms alone weigh as much as one point three octaves away: they count if nothing near was
 * measured. */
static double weight_of(double distance_squared)
{
    double d = distance_squared + 0.02;
    return 1 / (d * d);
}

double model_ms(const struct model_curve *curve, const struct model_work *work)
{
    const double largest = largest_of(work->place);
    double weights = weight_of(9), logarithms = 0;
    for (int i = 0; i < curve->points; i++) {
        double weight = weight_of(distance2(&curve->point[i], work, largest));
        weights += weight;
        logarithms += weight * (double)curve->point[i].log2_ratio;
    }
    return sum_of_terms(curve->ms, work) * power_of_2(logarithms / weights);
}

struct model_work model_work_of_time(const struct model_work *work, double ms)
{
    struct model_work time = {.term = {[MODEL_CALL] = ms}};
    memcpy(time.place, work->place, sizeof time.place);
    return time;
}

double model_copies_ms(const struct model_work *work, double up_gbps, double down_gbps)
{
    return work->up_bytes / up_gbps * 1e-6 + work->down_bytes / down_gbps * 1e-6;
}

double model_point_ms(const struct model_curve *curve, const struct model_point *point,
                      const struct model_work *work)
{
    return sum_of_terms(curve->ms, work) * power_of_2((double)point->log2_ratio);
}

/* ---- Fitting ---- */

/* Normal equations of the relative errors. */
struct normal {
    double a[MODEL_TERMS][MODEL_TERMS], b[MODEL_TERMS];
};

static struct normal normal_of(const struct model_work *works, const double *ms, int count)
{
    struct normal normal = {0};
    for (int p = 0; p < count; p++)
        for (int i = 0; i < MODEL_TERMS; i++) {
            double x = works[p].term[i] / ms[p];
            normal.b[i] += x;
            for (int j = 0; j < MODEL_TERMS; j++)
                normal.a[i][j] += x * works[p].term[j] / ms[p];
        }
    return normal;
}

/* Solves for the terms of a set by Gauss's elimination. False if they cannot be told apart, or one
 * is negative. */
static bool solve_for_terms(const struct normal *normal, unsigned set, double ms[MODEL_TERMS])
{
    double a[MODEL_TERMS][MODEL_TERMS + 1];
    int index[MODEL_TERMS], n = 0;
    for (int i = 0; i < MODEL_TERMS; i++)
        if (set & 1u << i)
            index[n++] = i;
    for (int i = 0; i < n; i++) {
        for (int j = 0; j < n; j++)
            a[i][j] = normal->a[index[i]][index[j]];
        a[i][n] = normal->b[index[i]];
    }
    for (int i = 0; i < n; i++) {
        if (!(a[i][i] > 1e-9 * normal->a[index[i]][index[i]]) || !(a[i][i] > 0))
            return false;
        for (int r = i + 1; r < n; r++) {
            double factor = a[r][i] / a[i][i];
            for (int j = i; j <= n; j++)
                a[r][j] -= factor * a[i][j];
        }
    }
    memset(ms, 0, MODEL_TERMS * sizeof *ms);
    for (int i = n; i-- > 0;) {
        double x = a[i][n];
        for (int j = i + 1; j < n; j++)
            x -= a[i][j] * ms[index[j]];
        x /= a[i][i];
        if (!(x >= 0))
            return false;
        ms[index[i]] = x;
    }
    return true;
}

static double error_of(const double ms[MODEL_TERMS], const struct model_work *works,
                       const double *measured, int count)
{
    double sum = 0;
    for (int p = 0; p < count; p++) {
        double e = sum_of_terms(ms, &works[p]) / measured[p] - 1;
        sum += e * e;
    }
    return sum;
}

/* Tries all sets of terms: they are few. A term that explains less than the noise of the
 * measurements is left out, or it would grow beyond the measured sizes. */
static bool best_terms(double best[MODEL_TERMS], const struct model_work *works,
                       const double *measured, int count)
{
    const double worth = 0.02; /* of the sum of squared errors */
    const struct normal normal = normal_of(works, measured, count);
    bool found = false;
    double least = 0;
    for (unsigned set = 1; set < 1u << MODEL_TERMS; set++) {
        double ms[MODEL_TERMS];
        int terms = __builtin_popcount(set);
        if (terms > count || !solve_for_terms(&normal, set, ms))
            continue;
        double error = error_of(ms, works, measured, count) + worth * terms;
        if (!found || error < least) {
            found = true;
            least = error;
            memcpy(best, ms, sizeof ms);
        }
    }
    return found;
}

/* Beyond the measured sizes the ramp and the steps fade, but no CPU gets ten times as fast as the
 * fastest measured call, and no GPU a hundred times. */
static double least_ms_per_operation(const struct model_work *works, const double *measured,
                                     int count, bool device)
{
    double least = 0;
    for (int p = 0; p < count; p++) {
        double gflop = works[p].term[MODEL_OPERATION];
        if (gflop > 0 && (least == 0 || measured[p] / gflop < least))
            least = measured[p] / gflop;
    }
    return least / (device ? 100 : 10);
}

/* Whether the calls tell the terms apart. Few calls, or calls of about one size, do not: the curve
 * keeps its terms, and the points correct them. */
static bool tells_terms(const struct model_curve *curve, const struct model_work *works, int count)
{
    const int least_points = 4;
    const double least_spread = 50;
    double least = 0, most = 0;
    for (int p = 0; p < count; p++) {
        double operations = works[p].term[MODEL_OPERATION];
        least = p == 0 || operations < least ? operations : least;
        most = operations > most ? operations : most;
    }
    bool has_terms = false;
    for (int i = 0; i < MODEL_TERMS; i++)
        has_terms = has_terms || curve->ms[i] > 0;
    return !has_terms || (count >= least_points && most >= least_spread * least);
}

static void add_point(struct model_curve *curve, const struct model_work *work, double ms)
{
    struct model_point *point = &curve->point[curve->points++];
    double operations, sum = model_terms_ms(curve, work, &operations);
    memcpy(point->place, work->place, sizeof point->place);
    point->largest = (float)largest_of(point->place);
    point->operations = (float)operations;
    point->log2_ratio = point->last = sum > 0 ? log2_of(ms / sum) : 0;
    point->runs = 1;
}

void model_fit(struct model_curve *curve, const struct model_work *works, const double *ms,
               int count)
{
    double terms[MODEL_TERMS];
    if (tells_terms(curve, works, count) && best_terms(terms, works, ms, count)) {
        double least = least_ms_per_operation(works, ms, count, curve->device);
        if (terms[MODEL_OPERATION] < least)
            terms[MODEL_OPERATION] = least;
        memcpy(curve->ms, terms, sizeof terms);
    }
    curve->points = 0;
    int first = count > MODEL_POINTS ? count - MODEL_POINTS : 0; /* the last are the largest */
    for (int p = first; p < count; p++)
        add_point(curve, &works[p], ms[p]);
}

double model_ratio(const struct model_curve *curves, uint32_t count)
{
    double logarithms = 0;
    int points = 0;
    for (uint32_t c = 0; c < count; c++)
        for (int i = 0; i < curves[c].points; i++, points++)
            logarithms += (double)curves[c].point[i].log2_ratio;
    return points > 0 ? power_of_2(logarithms / points) : 1;
}

int64_t model_largest_square(const struct model_curve *curve, unsigned sizes)
{
    const double about = 0.1; /* octaves */
    double largest = 0;
    for (int i = 0; i < curve->points; i++) {
        const float *place = curve->point[i].place;
        double most = (double)curve->point[i].largest, least = most;
        for (int size = 0; size < ACCEL_DIMENSIONS; size++)
            if (sizes & 1u << size && (double)place[size] < least)
                least = (double)place[size];
        if (most - least < about && most > largest)
            largest = most;
    }
    return largest > 0 ? (int64_t)(power_of_2(largest) + 0.5) : 0;
}

void model_take_rates(struct model_curve *curve, const struct model_curve *from)
{
    const double ratio = model_ratio(from, 1);
    for (int i = 0; i < MODEL_TERMS; i++)
        curve->ms[i] = from->ms[i] * ratio;
}

static struct model_point *nearest_point(struct model_curve *curve, const struct model_work *work,
                                         double *distance_squared)
{
    const double largest = largest_of(work->place);
    struct model_point *nearest = NULL;
    for (int i = 0; i < curve->points; i++) {
        double d = distance2(&curve->point[i], work, largest);
        if (!nearest || d < *distance_squared) {
            nearest = &curve->point[i];
            *distance_squared = d;
        }
    }
    return nearest;
}

/* A run is slow for many reasons, and fast only because it can be. One alone, as of a process that
 * has been stopped meanwhile, tells nothing: two that follow each other do. */
static void refine_point(struct model_point *point, float log2_ratio)
{
    const float most = 8; /* runs that count: the machine may change */
    const float sure = log2_ratio < point->last ? log2_ratio : point->last;
    point->last = log2_ratio;
    if (point->runs < most)
        point->runs++;
    point->log2_ratio += (sure - point->log2_ratio) / (sure < point->log2_ratio ? 1 : point->runs);
}

void model_learn(struct model_curve *curve, const struct model_work *work, double ms)
{
    double distance, sum = sum_of_terms(curve->ms, work);
    struct model_point *nearest = nearest_point(curve, work, &distance);
    if (!(sum > 0) || !(ms > 0))
        return;
    if (nearest && distance < 0.05) { /* sizes differ by less than a fifth or so */
        refine_point(nearest, log2_of(ms / sum));
        return;
    }
    const double thought = model_ms(curve, work);
    int points = curve->points;
    if (points == MODEL_POINTS) /* replace the nearest */
        curve->points = (int)(nearest - curve->point);
    struct model_point *const added = &curve->point[curve->points];
    /* The first call of a size may set something up. */
    add_point(curve, work, ms > 2 * thought ? 2 * thought : ms);
    added->last = log2_of(ms / sum);
    if (points == MODEL_POINTS)
        curve->points = points;
}

void model_slow_operations(struct model_curve *curve, double times)
{
    if (!(times > 0))
        return;
    curve->ms[MODEL_OPERATION] *= times;
    for (int i = 0; i < curve->points; i++) {
        struct model_point *point = &curve->point[i];
        const double share = (double)point->operations, grown = 1 + share * (times - 1);
        point->log2_ratio -= log2_of(grown);
        point->last -= log2_of(grown);
        point->operations = (float)(share * times / grown);
        /* A first run that was not believed is confirmed as far as the new rates go. */
        if (point->runs <= 1 && point->log2_ratio < 0 && point->last > point->log2_ratio)
            point->log2_ratio = point->last < 0 ? point->last : 0;
    }
}

/* ---- Nominal rates and curves ---- */

struct model_rates model_kernels_rates(enum cpu_kernels kernels, int threads)
{
    /* Of a thread, in single and in double precision. By products of order 600 on a core of Zen 5,
     * OpenBLAS's kernels for Sandybridge reach 0.7 of what those for Zen do, older ones 0.25 to
     * 0.4, and the reference library 0.05 to 0.1. */
    static const double gflops[KERNELS][2] = {[KERNELS_TUNED] = {50, 25},
                                              [KERNELS_AVX] = {36, 18},
                                              [KERNELS_SSE] = {16, 8},
                                              [KERNELS_LOOPS] = {3, 2}};
    struct model_rates rates = {.gbps = threads < 20 ? 10.0 * threads : 200};
    for (int dtype = 0; dtype < ACCEL_DTYPES; dtype++)
        rates.gflops[dtype] = threads * gflops[kernels][accel_is_double((enum accel_dtype)dtype)];
    return rates;
}

struct model_rates model_cpu_rates(int threads)
{
    return model_kernels_rates(KERNELS_TUNED, threads);
}

struct model_rates model_rates_of_peaks(const double peak_gflops[2], double memory_gbps)
{
    struct model_rates rates = {.gbps = memory_gbps};
    for (int dtype = 0; dtype < ACCEL_DTYPES; dtype++)
        rates.gflops[dtype] = MODEL_REACH * peak_gflops[accel_is_double((enum accel_dtype)dtype)];
    return rates;
}

struct model_rates model_gpu_rates(void)
{
    const double peak_gflops[2] = {60e3, 40e3};
    return model_rates_of_peaks(peak_gflops, 2000);
}

/* ms for 10^6 elements, and for 10^9 operations */
static double ms_per_element(const struct accel_routine *routine, double gbps)
{
    return (double)accel_dtype_size(routine->dtype) / gbps;
}

static double ms_per_operation(const struct accel_routine *routine, const struct model_rates *rates,
                               double share)
{
    return 1e3 / (share * rates->gflops[routine->dtype]);
}

void model_nominal_cpu(struct model_curve *curve, const struct accel_routine *routine,
                       const struct model_rates *rates)
{
    *curve = (struct model_curve){.points = 0};
    const struct accel_nominal nominal = accel_op_of(routine)->cost->nominal;
    curve->ms[MODEL_CALL] = 0.0005;
    curve->ms[MODEL_STEP] = nominal.cpu_step_ms;
    curve->ms[MODEL_ELEMENT] = ms_per_element(routine, rates->gbps);
    curve->ms[MODEL_OPERATION] = ms_per_operation(routine, rates, nominal.cpu_share);
}

void model_nominal_gpu(struct model_curve *curve, const struct accel_routine *routine,
                       const struct model_rates *rates)
{
    const struct accel_nominal nominal = accel_op_of(routine)->cost->nominal;
    *curve = (struct model_curve){.device = true};
    curve->ms[MODEL_CALL] = MODEL_LAUNCH_MS;
    curve->ms[MODEL_STEP] = nominal.gpu_step_ms;
    curve->ms[MODEL_ELEMENT] = ms_per_element(routine, rates->gbps);
    curve->ms[MODEL_OPERATION] = ms_per_operation(routine, rates, nominal.gpu_share);
}
