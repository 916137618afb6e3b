#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include <float.h>
#include <math.h>

#include "tool/compare/tally.h"

static struct number real(long double value)
{
    struct number number = {.part = {{value, 0, 0}, {0, 0, 0}}};
    return number;
}

static struct number integer(int64_t value)
{
    struct number number = real((long double)value);
    number.integer = true;
    return number;
}

static struct number complex_number(long double re, long double im)
{
    struct number number = {.complex = true, .part = {{re, 0, 0}, {im, 0, 0}}};
    return number;
}

static struct number text(const char *printed)
{
    struct number number;
    assert_true(number_is(printed, strlen(printed), &number));
    return number;
}

static struct distance between(struct number a, struct number b, struct float_format precision)
{
    return distance_between(&a, &b, &precision);
}

static void distances(void **state)
{
    (void)state;
    struct distance d = between(real(4), real(3), precision_double);
    assert_true(d.absolute == 1 && d.relative == 0.25L && d.ulp == 0x1p50L);
    d = between(real(1 + (long double)DBL_EPSILON), real(1), precision_double);
    assert_true(d.ulp == 1);
    d = between(real(1.5L + 3 * (long double)FLT_EPSILON), real(1.5L), precision_single);
    assert_true(d.ulp == 3);
    d = between(real(1 + 0x1p-10L), real(1), precision_half);
    assert_true(d.ulp == 1);
    d = between(real(0), real(0x1p-1074L), precision_double);
    assert_true(d.ulp == 1 && d.relative == 1);
    d = between(real(0.0L), real(-0.0L), precision_double);
    assert_true(d.absolute == 0 && d.relative == 0 && d.ulp == 0);
    d = between(integer(INT64_MAX), integer(INT64_MAX - 1), precision_double);
    assert_true(d.absolute == 1 && d.ulp == 1);
    d = between(complex_number(3, 4), complex_number(3, 4 - 0x1p-40L), precision_double);
    assert_true(d.absolute == 0x1p-40L && d.relative == 0x1p-40L / 5);
}

static void special_values(void **state)
{
    (void)state;
    assert_true(between(real(NAN), real(-NAN), precision_double).absolute == 0);
    assert_true(between(real(INFINITY), real(INFINITY), precision_double).absolute == 0);
    assert_true(isinf(between(real(INFINITY), real(-INFINITY), precision_double).absolute));
    assert_true(isinf(between(real(NAN), real(1), precision_double).relative));
    assert_true(isinf(between(real(1), real(INFINITY), precision_double).ulp));
    assert_true(
        isinf(between(complex_number(1, NAN), complex_number(1, 2), precision_double).absolute));
}

/* Whether b passes for a if the second run without libaccel has `noise`. */
static bool passes(struct tolerances allowed, long double scale, struct number a,
                   struct number noise, struct number b)
{
    struct tally tally;
    tally_start(&tally, &allowed, 0);
    tally.scale = scale;
    tally_number(&tally, &a, &noise, NULL);
    tally.measures_noise = false;
    tally_number(&tally, &a, &b, &noise);
    bool passed = !tally_failed(&tally);
    tally_free(&tally);
    return passed;
}

static const struct tolerances standard = {-1, -1, -1, 10};

static void default_tolerance(void **state)
{
    struct number one = real(1);
    (void)state;
    assert_true(passes(standard, 0, one, one, real(1 + 1e-8L)));
    assert_false(passes(standard, 0, one, one, real(1 + 2e-8L)));
    /* Ten times the noise is allowed. */
    assert_true(passes(standard, 0, one, real(1 + 1e-6L), real(1 - 9e-6L)));
    assert_false(passes(standard, 0, one, real(1 + 1e-6L), real(1 - 2e-5L)));
    assert_true(passes(standard, 0, real(1e-17L), real(3e-17L), real(-2e-17L)));
    assert_false(passes(standard, 0, real(1e-17L), real(1e-17L), real(-2e-17L)));
    /* In an array, numbers may cancel. */
    assert_true(passes(standard, 1, real(1e-17L), real(1e-17L), real(-2e-17L)));
    assert_false(passes(standard, 1, real(1e-9L), real(1e-9L), real(2e-9L)));
    assert_true(passes(standard, 1, real(1e-9L), real(1.2e-9L), real(2e-9L)));
    /* Integers and NaNs are never nearly the same. */
    assert_false(
        passes(standard, 0, integer(1000000000), integer(1000000000), integer(1000000001)));
    assert_false(passes(standard, 0, integer(12), integer(13), integer(14)));
    assert_false(passes(standard, 0, one, real(NAN), real(INFINITY)));
    assert_false(passes(standard, 0, one, one, real(NAN)));
}

/* Whether two runs without libaccel differ by rounding alone. */
static bool repeats(struct tolerances allowed, long double scale, struct number a, struct number b)
{
    struct tally tally;
    tally_start(&tally, &allowed, 0);
    tally.scale = scale;
    tally_number(&tally, &a, &b, NULL);
    bool repeatable = tally_repeatable(&tally);
    tally_free(&tally);
    return repeatable;
}

static void repeatable(void **state)
{
    struct tolerances tenth = {0.1, -1, -1, 10}, none = {0, -1, -1, 10};
    (void)state;
    assert_true(repeats(standard, 0, real(1), real(1 + 9e-5L)));
    assert_false(repeats(standard, 0, real(1), real(1 + 2e-4L)));
    assert_false(repeats(standard, 0, real(0.8L), real(5)));
    /* Rests of numbers that cancel: taken to be 1 in text, the largest number in an array. */
    assert_true(repeats(standard, 0, real(1e-16L), real(-3e-16L)));
    assert_false(repeats(standard, 0, real(1e-11L), real(-3e-11L)));
    assert_true(repeats(standard, 100, real(1e-9L), real(1e-6L)));
    assert_false(repeats(standard, 100, real(1e-9L), real(2e-6L)));
    assert_false(repeats(standard, 1e-11L, real(1e-13L), real(3e-13L)));
    assert_false(repeats(standard, 0, integer(100000), integer(100001)));
    assert_false(repeats(standard, 0, real(NAN), real(1)));
    assert_true(repeats(standard, 0, real(NAN), real(NAN)));
    assert_true(repeats(standard, 0, text("0.3333"), text("0.3334")));
    assert_false(repeats(standard, 0, text("0.333"), text("0.334")));
    /* Tolerances that are given allow more, never less. */
    assert_true(repeats(tenth, 0, real(1), real(1.05L)));
    assert_false(repeats(tenth, 0, real(1), real(1.2L)));
    assert_true(repeats(none, 0, real(1), real(1 + 1e-12L)));
}

static void last_digit(void **state)
{
    (void)state;
    assert_true(passes(standard, 0, text("0.3333"), text("0.3333"), text("0.3334")));
    assert_false(passes(standard, 0, text("0.3333"), text("0.3333"), text("0.3335")));
    assert_false(passes(standard, 0, text("0.333"), text("0.333"), text("0.334")));
    assert_true(passes(standard, 0, text("1"), text("1"), text("0.999999")));
    assert_false(passes(standard, 0, text("0.33333"), text("0.33333"), text("0.333336")));
    assert_false(passes(standard, 0, text("1000"), text("1000"), text("1001")));
}

static void given_tolerances(void **state)
{
    struct number one = real(1);
    struct tolerances relative = {1e-3, -1, -1, 10}, absolute = {-1, 0.5, -1, 10},
                      ulp = {-1, -1, 4, 10}, none = {0, -1, -1, 10}, two = {1e-3, 0.5, -1, 10};
    (void)state;
    assert_true(passes(relative, 0, one, one, real(1.0009L)));
    assert_false(passes(relative, 0, one, one, real(1.002L)));
    assert_true(passes(absolute, 0, integer(5), integer(5), real(5.5L)));
    assert_false(passes(absolute, 0, integer(5), integer(5), integer(6)));
    assert_true(passes(ulp, 0, one, one, real(1 + 4 * (long double)DBL_EPSILON)));
    assert_false(passes(ulp, 0, one, one, real(1 + 5 * (long double)DBL_EPSILON)));
    /* Tolerances that are given count alone: neither the noise nor the digits. */
    assert_false(passes(none, 1, one, real(1.5L), real(1 + (long double)DBL_EPSILON)));
    assert_true(passes(two, 0, one, one, real(1.4L)));
    assert_true(passes(two, 0, real(1e6L), real(1e6L), real(1e6L + 100)));
    assert_false(passes(two, 0, one, one, real(1.6L)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(distances),         cmocka_unit_test(special_values),
        cmocka_unit_test(default_tolerance), cmocka_unit_test(repeatable),
        cmocka_unit_test(last_digit),        cmocka_unit_test(given_tolerances),
    };
    return cmocka_run_group_tests_name("tally", tests, NULL, NULL);
}
