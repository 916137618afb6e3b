/* The timing loop: which runs count, when it ends, and what it says of one that fails. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "tool/measure/workload.h"

/* Adds runs of these times until no further one is due; returns how many it took. */
static int take(struct timing *timing, const double *ms)
{
    int taken = 0;
    while (timing_add(timing, ms[taken++]))
        ;
    return taken;
}

static void the_least_of_the_runs_that_count(void **state)
{
    (void)state;
    struct timing timing = {.warm = 1, .most = 3};
    assert_int_equal(take(&timing, (const double[]){1, 5, 3, 4}), 4);
    assert_true(timing.best_ms == 3 && timing.runs == 3);
}

static void enough_time_ends_it_after_the_least_runs(void **state)
{
    (void)state;
    struct timing timing = {.least = 2, .most = 9, .enough_ms = 10};
    assert_int_equal(take(&timing, (const double[]){11, 12}), 2);
    assert_true(timing.best_ms == 11);
    timing = (struct timing){.warm = 1, .most = 9, .enough_ms = 10};
    assert_int_equal(take(&timing, (const double[]){100, 4, 5, 6}), 4);
    assert_true(timing.best_ms == 4);
}

static void a_failed_run_fails_all(void **state)
{
    (void)state;
    struct timing timing = {.warm = 1, .most = 3};
    assert_int_equal(take(&timing, (const double[]){-1}), 1);
    assert_true(timing.best_ms < 0);
    timing = (struct timing){.most = 3};
    assert_int_equal(take(&timing, (const double[]){2, -1}), 2);
    assert_true(timing.best_ms < 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_least_of_the_runs_that_count),
        cmocka_unit_test(enough_time_ends_it_after_the_least_runs),
        cmocka_unit_test(a_failed_run_fails_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
