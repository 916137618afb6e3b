/* Places whose calls lose time on the GPU: which runs count. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>

#include "dispatch/cost/regret.h"

enum { KEY = 77 };

/* A place that has gained for long is sent back soon after the machine has changed for good. */
static void what_lasts_is_seen(void **state)
{
    struct regret *const regret = calloc(1, sizeof *regret);
    int runs = 0;
    (void)state;
    assert_non_null(regret);
    for (int i = 0; i < 1000; i++)
        regret_note(regret, KEY, 5, 10);
    while (!regret_lost(regret, KEY) && runs < 100) {
        regret_note(regret, KEY, 1000, 10);
        runs++;
    }
    assert_in_range(runs, 2, 12);
    free(regret);
}

/* Notes runs at one place, of the CPU's time 100 ms. Returns the number of the run that sends it back; 0: none. */
static int runs(const double *gpu_ms, int count)
{
    struct regret *const regret = calloc(1, sizeof *regret);
    int sent_back = 0;
    assert_non_null(regret);
    for (int i = 0; i < count; i++) {
        if (regret_note(regret, KEY, gpu_ms[i], 100) == REGRET_SENT_BACK)
            sent_back = i + 1;
        assert_int_equal(regret_lost(regret, KEY), sent_back > 0);
    }
    free(regret);
    return sent_back;
}
#define RUNS(...)                                                                                  \
    runs((const double[]){__VA_ARGS__}, sizeof(double[]){__VA_ARGS__} / sizeof(double))

static void one_that_loses_is_sent_back(void **state)
{
    (void)state;
    assert_int_equal(RUNS(500, 150, 150), 3);
    assert_int_equal(RUNS(50, 250), 2); /* the first does not count */
    assert_int_equal(RUNS(3000), 1);    /* but a very long one does */
    assert_int_equal(RUNS(90, 110, 110, 110), 0);
    assert_int_equal(RUNS(500, 90, 110, 90), 0);
}

static void one_run_that_is_stopped_tells_nothing(void **state)
{
    (void)state;
    assert_int_equal(RUNS(50, 50, 50, 50, 4000, 50, 50), 0);
    assert_int_equal(RUNS(50, 50, 4000, 50, 50), 0);
    assert_int_equal(RUNS(50, 50, 4000, 4000), 4);
    assert_int_equal(RUNS(50, 50, 50, 50, 50, 300, 300, 300), 7); /* the machine has changed */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_that_loses_is_sent_back),
        cmocka_unit_test(one_run_that_is_stopped_tells_nothing),
        cmocka_unit_test(what_lasts_is_seen),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
