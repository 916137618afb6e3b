/* What is made of the times of solutions by a triangle: when our own kernel is used, and the rates. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>

#include "tool/solve_survey.h"

/* Where cuBLAS takes 1 ms each. */
static int64_t own_sides(double own_few, double own_many)
{
    const struct solve_times times[SOLVE_SHAPES] = {
        [SOLVE_SMALL] = {1, 1, 1}, [SOLVE_FEW] = {1, 1, own_few}, [SOLVE_MANY] = {1, 1, own_many}};
    return solve_own_sides(times);
}

static void our_own_must_gain_a_twentieth(void **state)
{
    const int64_t few = solve_shapes[SOLVE_FEW][1], many = solve_shapes[SOLVE_MANY][1];
    (void)state;
    assert_int_equal(own_sides(0.94, 0.94), few);
    assert_in_range(own_sides(0.96, 0.94), few + 1, many);
    assert_in_range(own_sides(20, 0.94), few + 1, many);
    assert_int_equal(own_sides(0.94, 0.96), 0);
}

static void what_fails_or_is_wrong_is_not_used(void **state)
{
    (void)state;
    assert_int_equal(own_sides(0.5, INFINITY), 0);
    assert_int_equal(own_sides(INFINITY, 0.5), 0);
    assert_int_equal(own_sides(INFINITY, INFINITY), 0);
}

static bool is_about(double x, double expected)
{
    return fabs(x - expected) <= 1e-9 * expected;
}

/* Times of both shapes by both ways, and of their products. */
static struct solve_way way_of(enum accel_dtype dtype, bool own, double few, double many,
                               double product)
{
    const struct solve_times times[SOLVE_SHAPES] = {
        [SOLVE_SMALL] = {INFINITY, INFINITY, INFINITY},
        [SOLVE_FEW] = {product, own ? 9 : few, own ? few : 9},
        [SOLVE_MANY] = {product, own ? 9 : many, own ? many : 9}};
    return solve_way_of(dtype, times, own);
}

static void rates_are_apart_from_the_operations(void **state)
{
    const double megabytes =
        (double)(solve_shapes[SOLVE_MANY][0] * solve_shapes[SOLVE_MANY][1]) * 8e-6;
    const double rows = (double)solve_shapes[SOLVE_FEW][0];
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
    const struct solve_way way = way_of(ACCEL_FLOAT64, true, 0.4, 0.4, 1);
    assert_true(is_about(way.gbps, 1e4));
    assert_true(is_about(way.row_ms, 1e-6));
}

static void what_fails_has_no_rates(void **state)
{
    static const double wrong[][3] = {{INFINITY, 1, 1}, {1, INFINITY, 1}, {1, 1, INFINITY}};
    (void)state;
    for (int i = 0; i < 3; i++) {
        const struct solve_way way =
            way_of(ACCEL_FLOAT64, i % 2, wrong[i][0], wrong[i][1], wrong[i][2]);
        assert_true(way.gbps == 0 && way.row_ms == 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(our_own_must_gain_a_twentieth),
        cmocka_unit_test(what_fails_or_is_wrong_is_not_used),
        cmocka_unit_test(rates_are_apart_from_the_operations),
        cmocka_unit_test(rates_are_bounded),
        cmocka_unit_test(what_fails_has_no_rates),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
