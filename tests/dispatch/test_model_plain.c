/*
 * The cost model, compared with a plain version of what its header says: logarithms by frexp(3),
 * sums in double precision, points in a list that only grows; and its small functions by numbers
 * that can be worked out by hand.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "call/shape.h"
#include "dispatch/cost/model.h"
#include "ops/op.h"
#include "ops/typical.h"
#include "tests/lib/routine.h"

static void assert_near(double a, double b, double relative)
{
    if (!(fabs(a - b) <= relative * fabs(b)))
        fail_msg("%.9g is not near %.9g", a, b);
}

static struct model_work work_of(const char *name, int64_t m, int64_t n, int64_t k)
{
    const int64_t size[ACCEL_DIMENSIONS] = {m, n, k, k};
    struct accel_call call;
    struct model_work work;
    shape_typical(&call, routine(name), size);
    model_work_of(&call, false, &work);
    return work;
}

static double uniform(double from, double to)
{
    return from + (to - from) * rand() / RAND_MAX;
}

/* ---- The plain version ---- */

/* Exact at powers of 2, linear in between. */
static double plain_log2(double x)
{
    int exponent;
    const double m = frexp(x, &exponent); /* in [0.5, 1) */
    return exponent - 1 + (2 * m - 1);
}

static double plain_power(double y)
{
    y = fmax(-100, fmin(100, y));
    return ldexp(1 + (y - floor(y)), (int)floor(y));
}

static double plain_sum(const double ms[MODEL_TERMS], const struct model_work *work)
{
    return ms[0] * work->term[0] + ms[1] * work->term[1] + ms[2] * work->term[2] +
           ms[3] * work->term[3];
}

/* Sizes that differ count as no smaller than five octaves below the largest one of their call. The
 * products of a batch count as they are. */
static double plain_distance2(const float a[MODEL_SIZES], const float b[MODEL_SIZES])
{
    double most_a = 0, most_b = 0,
           sum = pow((double)a[ACCEL_DIMENSIONS] - (double)b[ACCEL_DIMENSIONS], 2);
    for (int i = 0; i < ACCEL_DIMENSIONS; i++) {
        most_a = fmax(most_a, (double)a[i]);
        most_b = fmax(most_b, (double)b[i]);
    }
    for (int i = 0; i < ACCEL_DIMENSIONS; i++)
        if (a[i] != b[i])
            sum += pow(fmax((double)a[i], most_a - 5) - fmax((double)b[i], most_b - 5), 2);
    return sum;
}

static double plain_ms(const struct model_curve *curve, const struct model_work *work)
{
    double all = pow(9.02, -2), mean = 0;
    for (int i = 0; i < curve->points; i++)
        all += pow(plain_distance2(curve->point[i].place, work->place) + 0.02, -2);
    for (int i = 0; i < curve->points; i++)
        mean += pow(plain_distance2(curve->point[i].place, work->place) + 0.02, -2) / all *
                (double)curve->point[i].log2_ratio;
    return plain_sum(curve->ms, work) * plain_power(mean);
}

/* Sizes of which some are far below others. */
static void random_places(float place[MODEL_SIZES])
{
    for (int i = 0; i < MODEL_SIZES; i++)
        place[i] = rand() % 3 ? (float)uniform(0, 14) : (float)(rand() % 15);
    if (rand() % 2)
        place[ACCEL_DIMENSIONS] = 0;
}

static void note_largest(struct model_point *point)
{
    point->largest = 0;
    for (int i = 0; i < ACCEL_DIMENSIONS; i++)
        point->largest = fmaxf(point->largest, point->place[i]);
}

static void times_of_any_curve(void **state)
{
    (void)state;
    srand(5);
    for (int n = 0; n < 20000; n++) {
        struct model_curve curve = {.points = rand() % 7};
        struct model_work work = {.up_bytes = 0};
        for (int i = 0; i < MODEL_TERMS; i++) {
            curve.ms[i] = rand() % 4 ? uniform(0, 2) : 0;
            work.term[i] = uniform(0, 100);
        }
        random_places(work.place);
        for (int i = 0; i < curve.points; i++) {
            random_places(curve.point[i].place);
            if (rand() % 3 == 0)
                memcpy(curve.point[i].place, work.place, sizeof work.place);
            if (rand() % 3 == 0)
                curve.point[i].place[rand() % MODEL_SIZES] += 1;
            note_largest(&curve.point[i]);
            curve.point[i].log2_ratio = (float)uniform(-6, 6);
        }
        assert_near(model_ms(&curve, &work), plain_ms(&curve, &work), 1e-6);
        if (curve.points > 0)
            assert_near(model_point_ms(&curve, &curve.point[0], &work),
                        plain_sum(curve.ms, &work) * plain_power((double)curve.point[0].log2_ratio),
                        1e-9);
    }
    /* No correction is more than by 2^100. */
    struct model_curve curve = {.ms = {1}, .points = 1};
    const struct model_work work = {.term = {1}};
    curve.point[0].log2_ratio = 500;
    assert_near(model_point_ms(&curve, &curve.point[0], &work), ldexp(1, 100), 1e-12);
    curve.point[0].log2_ratio = -500;
    assert_near(model_point_ms(&curve, &curve.point[0], &work), ldexp(1, -100), 1e-12);
}

/* ---- Learning ---- */

/* A call of about these sizes, as the plain version knows it. */
struct known {
    float place[MODEL_SIZES];
    double ratio, last;
    int runs;
};

/* A time below the estimate is believed at once; one above it as far as the call before was as
 * slow, and as one of at most eight. */
static void plain_refine(struct known *known, double ratio)
{
    const double sure = fmin(ratio, known->last);
    known->last = ratio;
    known->runs = known->runs < 8 ? known->runs + 1 : 8;
    known->ratio = sure < known->ratio ? sure : known->ratio + (sure - known->ratio) / known->runs;
}

static void plain_learn(struct known *known, int *count, const struct model_curve *before,
                        const struct model_work *work, double ms)
{
    const double sum = plain_sum(before->ms, work), thought = plain_ms(before, work);
    int nearest = -1;
    for (int i = 0; i < *count; i++)
        if (nearest < 0 || plain_distance2(known[i].place, work->place) <
                               plain_distance2(known[nearest].place, work->place))
            nearest = i;
    if (nearest >= 0 && plain_distance2(known[nearest].place, work->place) < 0.05) {
        plain_refine(&known[nearest], plain_log2(ms / sum));
        return;
    }
    struct known *const at = &known[*count < MODEL_POINTS ? (*count)++ : nearest];
    memcpy(at->place, work->place, sizeof at->place);
    at->ratio = plain_log2(fmin(ms, 2 * thought) / sum);
    at->last = plain_log2(ms / sum);
    at->runs = 1;
}

static void any_calls_are_learned(void **state)
{
    const struct model_rates rates = model_cpu_rates(2);
    int refined = 0, replaced = 0;
    (void)state;
    srand(7);
    for (int round = 0; round < 40; round++) {
        struct model_curve curve;
        struct known known[MODEL_POINTS];
        int count = 0;
        model_nominal_cpu(&curve, routine("dgemm"), &rates);
        for (int n = 0; n < 150; n++) {
            const struct model_curve before = curve;
            const int64_t order = 4 << rand() % (round % 2 ? 3 : 10);
            const struct model_work work =
                work_of("dgemm", order + rand() % 3, order, 1 + rand() % order);
            const double ms = plain_sum(curve.ms, &work) * pow(2, uniform(-4, 4));
            model_learn(&curve, &work, ms);
            plain_learn(known, &count, &before, &work, ms);
            assert_int_equal(curve.points, count);
            assert_memory_equal(curve.ms, before.ms, sizeof curve.ms);
            for (int i = 0; i < count; i++) {
                const struct model_point *point = &curve.point[i];
                assert_memory_equal(point->place, known[i].place, sizeof point->place);
                assert_true(fabs((double)point->log2_ratio - known[i].ratio) < 1e-4);
                assert_true(fabs((double)point->last - known[i].last) < 1e-4);
                assert_true((int)point->runs == known[i].runs);
                known[i].ratio = (double)point->log2_ratio; /* rounding does not add up */
                refined += known[i].runs == 8;
            }
            replaced += n > 0 && before.points == MODEL_POINTS &&
                        memcmp(before.point, curve.point, sizeof curve.point) != 0;
        }
    }
    assert_true(refined > 100 && replaced > 100);
}

static void a_curve_without_terms_learns_nothing(void **state)
{
    struct model_curve curve = {.points = 0}, same = curve;
    const struct model_work work = work_of("dgemm", 8, 8, 8);
    (void)state;
    model_learn(&curve, &work, 1);
    assert_memory_equal(&curve, &same, sizeof curve);
    curve.ms[MODEL_CALL] = 1;
    model_learn(&curve, &work, 4);
    assert_int_equal(curve.points, 1);
    assert_true(curve.point[0].log2_ratio == 1 && curve.point[0].last == 2);
}

/* ---- Fitting ---- */

/* The last calls are the points. */
static void as_many_points_as_there_is_room_for(void **state)
{
    enum { CALLS = MODEL_POINTS + 8 };
    struct model_work works[CALLS];
    double ms[CALLS];
    (void)state;
    for (int count = 1; count <= CALLS; count++) {
        struct model_curve curve = {.points = 17};
        for (int p = 0; p < count; p++) {
            works[p] = work_of("dgemm", 16 + p, 64, 64);
            ms[p] = 0.25 * works[p].term[MODEL_OPERATION] * (1 + p % 2);
        }
        model_fit(&curve, works, ms, count);
        const int points = count < MODEL_POINTS ? count : MODEL_POINTS;
        assert_int_equal(curve.points, points);
        for (int i = 0; i < points; i++) {
            const int p = count - points + i;
            assert_memory_equal(curve.point[i].place, works[p].place, sizeof works[p].place);
            assert_near(model_point_ms(&curve, &curve.point[i], &works[p]), ms[p], 0.001);
            assert_true(curve.point[i].runs == 1 &&
                        curve.point[i].last == curve.point[i].log2_ratio);
        }
    }
}

/* Fits calls of dgemm of m rows, one for each, that take 3 ms and 5 for each 10^9 operations.
 * Returns whether the curve has those terms now; else it has its own. */
static bool takes_terms(const int64_t *rows, int count, double own_ms)
{
    struct model_work works[8];
    double ms[8];
    struct model_curve curve = {.ms = {[MODEL_STEP] = own_ms}};
    for (int p = 0; p < count; p++) {
        works[p] = work_of("dgemm", rows[p], 100, 100);
        ms[p] = 3 + 5 * works[p].term[MODEL_OPERATION];
    }
    model_fit(&curve, works, ms, count);
    for (int p = 0; p < count; p++)
        assert_near(model_point_ms(&curve, &curve.point[p], &works[p]), ms[p], 0.001);
    if (curve.ms[MODEL_STEP] == own_ms && own_ms > 0) {
        assert_true(curve.ms[MODEL_CALL] == 0 && curve.ms[MODEL_ELEMENT] == 0 &&
                    curve.ms[MODEL_OPERATION] == 0);
        return false;
    }
    assert_near(curve.ms[MODEL_CALL], 3, 0.01);
    return true;
}

/* Four calls do if one has fifty times the operations of another, in any order. A curve without
 * terms takes what there is. */
static void few_calls_do_not_tell_terms(void **state)
{
    (void)state;
    assert_true(takes_terms((const int64_t[]){2000, 40000, 400000, 100000}, 4, 7));
    assert_true(takes_terms((const int64_t[]){100000, 40000, 2000, 4000}, 4, 7));
    assert_false(takes_terms((const int64_t[]){100000, 40000, 2001, 4000}, 4, 7));
    assert_false(takes_terms((const int64_t[]){2000, 40000, 400000}, 3, 7));
    assert_true(takes_terms((const int64_t[]){2000, 40000, 400000}, 3, 0));
}

/* Times that do not depend on the size give a rate of operations all the same: ten times the
 * fastest that was measured, a hundred times on a GPU. */
static void no_rate_is_without_end(void **state)
{
    (void)state;
    for (int device = 0; device < 2; device++) {
        struct model_curve curve = {.device = device};
        struct model_work works[4];
        const double ms[4] = {2, 2, 2, 2};
        for (int p = 0; p < 4; p++)
            works[p] = work_of("dgemm", 64 << p, 64, 64);
        model_fit(&curve, works, ms, 4);
        assert_near(curve.ms[MODEL_CALL], 2, 1e-9);
        assert_near(curve.ms[MODEL_OPERATION],
                    2 / works[3].term[MODEL_OPERATION] / (device ? 100 : 10), 1e-9);
    }
}

/* ---- Small functions ---- */

static struct model_curve curve_of_ratios(const float *ratio, int count)
{
    struct model_curve curve = {.ms = {1, 2, 3, 4}, .points = count};
    for (int i = 0; i < count; i++)
        curve.point[i].log2_ratio = ratio[i];
    return curve;
}

static void ratios(void **state)
{
    const struct model_curve curves[] = {curve_of_ratios(NULL, 0),
                                         curve_of_ratios((const float[]){1, 2}, 2),
                                         curve_of_ratios((const float[]){6}, 1)};
    struct model_curve taken = {.points = 1};
    (void)state;
    assert_true(model_ratio(curves, 0) == 1 && model_ratio(curves, 1) == 1);
    assert_true(model_ratio(curves, 3) == 8 && model_ratio(&curves[2], 1) == 64);
    assert_true(model_ratio(&curves[1], 1) == 3); /* linear between powers of 2 */
    model_take_rates(&taken, &curves[2]);
    for (int i = 0; i < MODEL_TERMS; i++)
        assert_true(taken.ms[i] == 64.0 * (i + 1));
    assert_int_equal(taken.points, 1);
}

static void the_largest_square(void **state)
{
    const unsigned product = 1u << ACCEL_m | 1u << ACCEL_n | 1u << ACCEL_k;
    struct model_curve curve = {.points = 0};
    (void)state;
    assert_int_equal(model_largest_square(&curve, product), 0);
    static const int64_t sizes[][3] = {{100, 100, 100},
                                       {1000, 1000, 1000},
                                       {2000, 2000, 100},
                                       {500, 500, 500},
                                       {4000, 2000, 4000}};
    for (int i = 0; i < 5; i++) {
        const struct model_work work = work_of("dgemm", sizes[i][0], sizes[i][1], sizes[i][2]);
        memcpy(curve.point[curve.points].place, work.place, sizeof work.place);
        note_largest(&curve.point[curve.points++]);
    }
    assert_int_equal(model_largest_square(&curve, product), 1000);
    /* Of a routine without a k */
    assert_int_equal(model_largest_square(&curve, 1u << ACCEL_m | 1u << ACCEL_n), 2000);
    assert_int_equal(model_largest_square(&curve, 1u << ACCEL_m), 4000);
    /* About equal: within a tenth of an octave */
    const struct model_work about = work_of("dgemm", 4096, 4300, 4096),
                            not = work_of("dgemm", 8192, 9100, 8192);
    memcpy(curve.point[0].place, about.place, sizeof about.place);
    memcpy(curve.point[3].place, not .place, sizeof not .place);
    note_largest(&curve.point[0]);
    note_largest(&curve.point[3]);
    assert_int_equal(model_largest_square(&curve, product), 4300);
}

static void slower_operations(void **state)
{
    struct model_curve curve = {.ms = {1, 2, 3, 4}, .points = 6};
    const struct model_point points[] = {
        {.log2_ratio = 3, .last = 5, .operations = 1, .runs = 2},
        {.log2_ratio = 3, .last = 5, .operations = 0.5F, .runs = 1},
        {.log2_ratio = 1, .last = 1.5F, .operations = 1, .runs = 1}, /* believed as far as -0.5 */
        {.log2_ratio = 1, .last = 5, .operations = 1, .runs = 1},    /* believed in full */
        {.log2_ratio = 1, .last = 0.5F, .operations = 1, .runs = 1}, /* it was fast */
        {.log2_ratio = 1, .last = 5, .operations = 1, .runs = 2},    /* it was confirmed */
    };
    const float ratio[] = {1, 2, -0.5F, 0, -1, -1}, last[] = {3, 4, -0.5F, 3, -1.5F, 3};
    struct model_curve same;
    (void)state;
    memcpy(curve.point, points, sizeof points);
    same = curve;
    model_slow_operations(&curve, 0);
    model_slow_operations(&curve, -2);
    model_slow_operations(&curve, NAN);
    assert_memory_equal(&curve, &same, sizeof curve);
    curve.point[1].operations = 1.0F / 3;
    model_slow_operations(&curve,
                          4); /* a third of the time takes four times as long: all takes twice */
    assert_true(curve.ms[MODEL_CALL] == 1 && curve.ms[MODEL_STEP] == 2 &&
                curve.ms[MODEL_ELEMENT] == 3 && curve.ms[MODEL_OPERATION] == 16);
    for (int i = 0; i < 6; i++) {
        assert_true(fabs((double)(curve.point[i].log2_ratio - ratio[i])) < 1e-6);
        assert_true(fabs((double)(curve.point[i].last - last[i])) < 1e-6);
        assert_near((double)curve.point[i].operations, i == 1 ? 2.0 / 3 : 1, 1e-6);
        assert_true(curve.point[i].runs == points[i].runs);
    }
}

static void times_of_terms(void **state)
{
    const struct model_curve curve = {.ms = {1, 2, 3, 4}}, none = {.points = 0};
    const struct model_work work = {
        .term = {1, 10, 100, 1000}, .place = {1, 2, 3, 4, 5}, .up_bytes = 3e9, .down_bytes = 1e9};
    double operations = -1;
    (void)state;
    assert_true(model_terms_ms(&curve, &work, &operations) == 4321);
    assert_near(operations, 4000.0 / 4321, 1e-12);
    assert_true(model_terms_ms(&none, &work, &operations) == 0 && operations == 0);
    assert_near(model_copies_ms(&work, 10, 20), 300 + 50, 1e-12);
    const struct model_work time = model_work_of_time(&work, 7);
    assert_true(time.term[MODEL_CALL] == 7 && time.term[MODEL_STEP] == 0 &&
                time.term[MODEL_ELEMENT] == 0 && time.term[MODEL_OPERATION] == 0);
    assert_true(time.up_bytes == 0 && time.down_bytes == 0);
    assert_memory_equal(time.place, work.place, sizeof work.place);
}

static void work_of_a_batch(void **state)
{
    const int64_t size[ACCEL_DIMENSIONS] = {16, 1, 3, 0};
    struct accel_call call;
    struct model_work work;
    (void)state;
    shape_typical(&call, routine("dgemm_batch_strided"), size);
    call.batch = 1;
    model_work_of(&call, true, &work);
    const double steps = work.term[MODEL_STEP];
    assert_true(work.place[ACCEL_DIMENSIONS] == 0);
    assert_true(work.place[ACCEL_m] == 4 && work.place[ACCEL_n] == 0 &&
                work.place[ACCEL_k] == 1.5F);
    call.batch = 8;
    model_work_of(&call, true, &work);
    assert_true(steps > 0 && work.term[MODEL_STEP] == 8 * steps);
    assert_true(work.place[ACCEL_DIMENSIONS] == 3);
    assert_near(work.term[MODEL_ELEMENT], 8 * (48 + 3 + 16) * 1e-6, 1e-12);
    assert_near(work.down_bytes, 8 * 16 * 8, 0);
    for (int i = 0; i < ACCEL_SPANS; i++)
        call.span[i].place = ACCEL_DEVICE;
    model_work_of(&call, true, &work);
    assert_true(work.up_bytes == 0 && work.down_bytes == 0 && work.term[MODEL_ELEMENT] > 0);
}

/* ---- Nominal rates ---- */

static void nominal_rates(void **state)
{
    static const double share[KERNELS][2] = {[KERNELS_TUNED] = {1, 1},
                                             [KERNELS_AVX] = {0.65, 0.75},
                                             [KERNELS_SSE] = {0.25, 0.4},
                                             [KERNELS_LOOPS] = {0.05, 0.1}};
    const double peaks[2] = {1000, 600};
    (void)state;
    for (int threads = 1; threads <= 40; threads++)
        for (int kernels = KERNELS_TUNED; kernels < KERNELS; kernels++) {
            const struct model_rates r = model_kernels_rates((enum cpu_kernels)kernels, threads);
            assert_true(r.gbps == (threads <= 20 ? 10 * threads : 200));
            for (int dtype = 0; dtype < ACCEL_DTYPES; dtype++) {
                const bool is_double = dtype == ACCEL_FLOAT64 || dtype == ACCEL_COMPLEX128;
                const double of_tuned = r.gflops[dtype] / (threads * (is_double ? 25 : 50));
                assert_true(of_tuned >= share[kernels][0] && of_tuned <= share[kernels][1]);
            }
        }
    const struct model_rates gpu = model_rates_of_peaks(peaks, 300), fast = model_gpu_rates();
    assert_true(gpu.gbps == 300);
    assert_near(gpu.gflops[ACCEL_FLOAT32], 700, 1e-12);
    assert_near(gpu.gflops[ACCEL_COMPLEX64], 700, 1e-12);
    assert_near(gpu.gflops[ACCEL_FLOAT64], 420, 1e-12);
    assert_near(gpu.gflops[ACCEL_COMPLEX128], 420, 1e-12);
    /* A fast GPU: an A100, at least. */
    assert_true(fast.gbps >= 1555 && fast.gflops[ACCEL_FLOAT32] >= MODEL_REACH * 19500 &&
                fast.gflops[ACCEL_FLOAT64] >= MODEL_REACH * 19500);
}

/* A large product is computed at the rate, and its elements are moved at the memory's. */
static void nominal_curves_of_products(void **state)
{
    static const char *const names[] = {"sgemm", "dgemm", "cgemm", "zgemm"};
    static const double bytes[] = {4, 8, 8, 16};
    const struct model_rates rates = {.gflops = {100, 50, 80, 40}, .gbps = 20};
    (void)state;
    for (int i = 0; i < 4; i++) {
        const struct accel_routine *const product = routine(names[i]);
        struct model_curve curve;
        memset(&curve, 0xff, sizeof curve);
        model_nominal_cpu(&curve, product, &rates);
        assert_true(curve.points == 0 && !curve.device);
        assert_near(curve.ms[MODEL_ELEMENT], bytes[i] / 20, 1e-12);
        assert_near(curve.ms[MODEL_OPERATION], 1e3 / rates.gflops[product->dtype], 1e-12);
        assert_true(curve.ms[MODEL_CALL] > 0 && curve.ms[MODEL_CALL] < 0.001);
        memset(&curve, 0xff, sizeof curve);
        model_nominal_gpu(&curve, product, &rates);
        assert_true(curve.points == 0 && curve.device);
        assert_true(curve.ms[MODEL_CALL] == MODEL_LAUNCH_MS);
        assert_near(curve.ms[MODEL_ELEMENT], bytes[i] / 20, 1e-12);
        assert_near(curve.ms[MODEL_OPERATION], 1e3 / rates.gflops[product->dtype], 1e-12);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(times_of_any_curve),
        cmocka_unit_test(any_calls_are_learned),
        cmocka_unit_test(a_curve_without_terms_learns_nothing),
        cmocka_unit_test(as_many_points_as_there_is_room_for),
        cmocka_unit_test(few_calls_do_not_tell_terms),
        cmocka_unit_test(no_rate_is_without_end),
        cmocka_unit_test(ratios),
        cmocka_unit_test(the_largest_square),
        cmocka_unit_test(slower_operations),
        cmocka_unit_test(times_of_terms),
        cmocka_unit_test(work_of_a_batch),
        cmocka_unit_test(nominal_rates),
        cmocka_unit_test(nominal_curves_of_products),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
