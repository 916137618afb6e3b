/* base/math/series.h: as libm's functions, over the whole range. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/math/series.h"

/* Returns the difference in units of the last place of the right value; of a value below the normal
 * ones, of the smallest number. */
static double units(double value, double right)
{
    return value == right ? 0
                          : fabs(value - right) / (nextafter(fabs(right), INFINITY) - fabs(right));
}

static void judge(const char *name, double x, double value, double right)
{
    if (!(units(value, right) <= 4))
        fail_msg("%s(%.17g) is %.17g, not %.17g: %g units", name, x, value, right,
                 units(value, right));
}

static double random_number(void)
{
    return (rand() + rand() / (RAND_MAX + 1.0)) / (RAND_MAX + 1.0);
}

static void exp_is_libms(void **state)
{
    (void)state;
    for (double x = -760; x < 720; x += 1.0 / 512)
        judge("exp", x, series_exp(x), exp(x));
    for (double x = 1; x > 1e-320; x /= 1.5) {
        judge("exp", x, series_exp(x), exp(x));
        judge("exp", -x, series_exp(-x), exp(-x));
    }
    srand(1);
    for (int i = 0; i < 1000000; i++) {
        const double x = random_number() * 1460 - 748;
        judge("exp", x, series_exp(x), exp(x));
    }
    const double ends[] = {0,
                           -0.0,
                           709.782712893384,
                           709.7827128933841,
                           -708.3964185322641,
                           -745.13321910194110,
                           -745.13321910194122,
                           710,
                           -746,
                           1e300,
                           -1e300,
                           INFINITY,
                           -INFINITY};
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        judge("exp", ends[i], series_exp(ends[i]), exp(ends[i]));
    assert_true(isnan(series_exp(NAN)));
}

static void log_is_libms(void **state)
{
    (void)state;
    srand(1);
    for (int i = 0; i < 1000000; i++) {
        const double near = 1 + (random_number() - 0.5) * ldexp(1, -(i % 53)),
                     far = ldexp(1 + random_number(), i % 2046 - 1022);
        judge("log", near, series_log(near), log(near));
        judge("log", far, series_log(far), log(far));
    }
    for (double x = 0.5; x < 4; x += 1.0 / 65536)
        judge("log", x, series_log(x), log(x));
    const double ends[] = {
        1, 2, 0x1p-1022, 0x1.fffffffffffffp1023, 0x1.fffffffffffffp-1, M_SQRT2, M_SQRT1_2};
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        judge("log", ends[i], series_log(ends[i]), log(ends[i]));
}

/* liblinear searches from the power of 2 that this finds. */
static void logs_of_powers_divide_as_libms(void **state)
{
    (void)state;
    for (int k = -1021; k < 1023; k++) {
        const double power = ldexp(1, k);
        const double some[] = {power, nextafter(power, 0), nextafter(power, INFINITY)};
        for (size_t i = 0; i < sizeof some / sizeof *some; i++) {
            const double ours = floor(series_log(some[i]) / series_log(2));
            const double theirs = floor(log(some[i]) / log(2));
            if (ours != theirs)
                fail_msg("%.17g: %g, not %g", some[i], ours, theirs);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(exp_is_libms),
                                       cmocka_unit_test(log_is_libms),
                                       cmocka_unit_test(logs_of_powers_divide_as_libms)};
    return cmocka_run_group_tests_name("ops/series", tests, NULL, NULL);
}
