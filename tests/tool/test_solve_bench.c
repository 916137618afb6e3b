/* What is made of the times of solutions by a triangle: when our own kernel is used, and the
 * rates. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>

#include "tool/measure/solve_bench.h"

/* Where cuBLAS takes 1 ms each; by a small triangle, our own takes as long. */
static int64_t own_nrhs(double few, double many, double right)
{
    const struct solve_times times[SOLVE_SHAPES] = {[SOLVE_SMALL] = {1, 1, 1},
                                                    [SOLVE_FEW] = {1, 1, few},
                                                    [SOLVE_MANY] = {1, 1, many},
                                                    [SOLVE_RIGHT] = {1, 1, right}};
    return solve_own_nrhs(times);
}

static void our_own_must_gain_a_twentieth(void **state)
{
    (void)state;
    assert_int_equal(own_nrhs(0.94, 0.94, 0.94), solve_shapes[SOLVE_FEW].nrhs);
    assert_int_equal(own_nrhs(0.96, 0.94, 0.94), solve_shapes[SOLVE_MANY].nrhs);
    assert_int_equal(own_nrhs(0.94, 0.96, 0.94), 0);
    assert_int_equal(own_nrhs(0.94, 0.94, 0.96), 0);
}

static void what_is_far_behind_anywhere_is_not_used(void **state)
{
    (void)state;
    assert_int_equal(own_nrhs(1.9, 0.94, 0.94), solve_shapes[SOLVE_MANY].nrhs);
    assert_int_equal(own_nrhs(2.1, 0.94, 0.94), 0);
    const struct solve_times small[SOLVE_SHAPES] = {
        {1, 1, 2.1}, {1, 1, 0.1}, {1, 1, 0.1}, {1, 1, 0.1}};
    assert_int_equal(solve_own_nrhs(small), 0);
}

static void what_fails_or_is_wrong_is_not_used(void **state)
{
    (void)state;
    assert_int_equal(own_nrhs(0.5, INFINITY, 0.5), 0);
    assert_int_equal(own_nrhs(INFINITY, 0.5, 0.5), 0);
    assert_int_equal(own_nrhs(0.5, 0.5, INFINITY), 0);
    assert_int_equal(own_nrhs(INFINITY, INFINITY, INFINITY), 0);
}

static bool is_about(double x, double expected)
{
    return fabs(x - expected) <= 1e-9 * expected;
}

/* Times of both shapes by both ways, and of their products. */
static struct schedule_solving way_of(enum accel_dtype dtype, bool own, double few, double many,
                                      double product)
{
    const struct solve_times times[SOLVE_SHAPES] = {
        [SOLVE_SMALL] = {INFINITY, INFINITY, INFINITY},
        [SOLVE_FEW] = {product, own ? 9 : few, own ? few : 9},
        [SOLVE_MANY] = {product, own ? 9 : many, own ? many : 9}};
    return solve_rates_of(dtype, times, own);
}

static void rates_are_apart_from_the_operations(void **state)
{
    const struct solve_shape *many = &solve_shapes[SOLVE_MANY];
    const double megabytes = (double)(many->order * many->nrhs) * 8e-6;
    const double rows = (double)solve_shapes[SOLVE_FEW].order;
    (void)state;
    for (int own = 0; own < 2; own++) {
        assert_true(is_about(way_of(ACCEL_FLOAT64, own, 4, 1.5, 1).gbps, megabytes));
        assert_true(is_about(way_of(ACCEL_FLOAT32, own, 4, 1.5, 1).gbps, megabytes / 2));
        assert_true(is_about(way_of(ACCEL_FLOAT64, own, 4, 2.5, 3).gbps, megabytes));
        assert_true(is_about(way_of(ACCEL_FLOAT64, own, 4, 2.5, 3).row_ms, 2.5 / rows));
    }
}

static void rates_are_bounded(void **state)
{
    (void)state;
    const struct schedule_solving way = way_of(ACCEL_FLOAT64, true, 0.4, 0.4, 1);
    assert_true(is_about(way.gbps, 1e4));
    assert_true(is_about(way.row_ms, 1e-6));
}

static void what_fails_has_no_rates(void **state)
{
    static const double wrong[][3] = {{INFINITY, 1, 1}, {1, INFINITY, 1}, {1, 1, INFINITY}};
    (void)state;
    for (int i = 0; i < 3; i++) {
        const struct schedule_solving way =
            way_of(ACCEL_FLOAT64, i % 2, wrong[i][0], wrong[i][1], wrong[i][2]);
        assert_true(way.gbps == 0 && way.row_ms == 0);
    }
}

static void rates_of_schedules(void **state)
{
    static const struct schedule_solving measured[2] = {{80, 3e-4}, {300, 1e-4}}, none[2];
    struct schedule_rates rates = schedule_nominal;
    (void)state;
    schedule_set_solving(&rates, measured, 1024);
    assert_true(rates.solve == 80 && rates.row_ms == 3e-4);
    assert_true(rates.own_solve == 300 && rates.own_row_ms == 1e-4 && rates.own_nrhs == 1024);
    rates = schedule_nominal;
    schedule_set_solving(&rates, none, 0);
    assert_true(rates.solve == schedule_nominal.solve && rates.row_ms == schedule_nominal.row_ms);
    assert_true(rates.own_nrhs == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(our_own_must_gain_a_twentieth),
        cmocka_unit_test(what_is_far_behind_anywhere_is_not_used),
        cmocka_unit_test(what_fails_or_is_wrong_is_not_used),
        cmocka_unit_test(rates_of_schedules),
        cmocka_unit_test(rates_are_apart_from_the_operations),
        cmocka_unit_test(rates_are_bounded),
        cmocka_unit_test(what_fails_has_no_rates),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
