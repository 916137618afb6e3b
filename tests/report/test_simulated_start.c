/* CUDA's start in virtual time: when it begins, what runs on the CPU meanwhile, who waits for it,
 * and what loads kernels. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "report/simulated_start.h"

static const struct simulated_start_rules rules = {
    .cuda_ms = 500, .kernels_ms = 40, .solver_ms = 400, .begins_ms = 50, .waits_from_ms = 3000};

static struct simulated_start start;

static void expect(double saved_ms, struct simulated_kernels *kernels, double at_ms, double cpu_ms,
                   double gpu_ms)
{
    const double before_ms = start.saved_ms;
    assert_float_equal(simulated_start_call(&start, kernels, &rules, at_ms, cpu_ms, gpu_ms),
                       saved_ms, 1e-9);
    assert_float_equal(start.saved_ms - before_ms, saved_ms, 1e-9);
}

static int begin(void **state)
{
    (void)state;
    start = (struct simulated_start){.began = false};
    return 0;
}

/* A start that is over at 500 ms. */
static void start_at_zero(void)
{
    start = (struct simulated_start){.began = true, .ready_ms = 500};
}

static void test_little_gain_starts_nothing(void **state)
{
    (void)state;
    struct simulated_kernels product = {.with_start = true};
    expect(0, &product, 0, 50, 1);       /* 49 ms */
    expect(0, &product, 9000, 0.5, 0.1); /* 49.4 ms */
    assert_false(start.began);
    expect(0, &product, 9100, 2, 1); /* 50.4 ms: begins */
    expect(0, &product, 9599, 30, 1);
    expect(29, &product, 9600, 30, 1);
}

static void test_losses_do_not_count_against_gains(void **state)
{
    (void)state;
    struct simulated_kernels product = {.with_start = true};
    expect(0, &product, 0, 1, 30);
    expect(0, &product, 0, 51, 1);
    assert_true(start.began);
}

static void test_what_was_saved_puts_the_clock_back(void **state)
{
    (void)state;
    struct simulated_kernels product = {.with_start = true}, other = {.ready_ms = 0};
    start_at_zero();
    expect(900, &product, 500, 1000, 100);
    /* At 1500 by the CPU's clock, the program would be at 600. */
    expect(0, &other, 1500, 30, 1);
    expect(0, &other, 1510, 30, 1); /* which gains less than what is left of the load */
    expect(29, &other, 1540, 30, 1);
}

static void test_a_call_that_gains_seconds_waits(void **state)
{
    (void)state;
    struct simulated_kernels product = {.with_start = true};
    expect(0, &product, 0, 3099, 100);
    begin(NULL);
    expect(3000 - 500, &product, 0, 3100, 100); /* begins and waits */
    expect(9, &product, 3100, 10, 1);           /* which is at 600 */
}

static void test_a_call_that_gains_more_than_the_load_has_it_itself(void **state)
{
    (void)state;
    struct simulated_kernels factor = {.solver = true}, other = {.solver = true};
    start_at_zero();
    expect(1000 - 440, &factor, 600, 1100, 100);
    expect(1000, &factor, 1700, 1100, 100);
    expect(60, &other, 2800, 101, 1); /* the solver is open */
}

static void test_one_thread_loads_kernels_in_turn(void **state)
{
    (void)state;
    struct simulated_kernels factor = {.solver = true}, update = {.solver = false};
    start_at_zero();
    expect(0, &factor, 600, 30, 1); /* until 1040 */
    expect(0, &update, 630, 30, 1); /* until 1080 */
    expect(0, &factor, 1039, 30, 31);
    expect(29, &factor, 1040, 30, 1);
    /* Now at 1041: the call gains more than what is left of the load. */
    expect(88 - 29, &update, 1080, 89, 1);
}

static void test_a_forked_child_has_none(void **state)
{
    (void)state;
    struct simulated_kernels product = {.with_start = true};
    start.never = true;
    expect(0, &product, 0, 1e6, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_little_gain_starts_nothing, begin),
        cmocka_unit_test_setup(test_losses_do_not_count_against_gains, begin),
        cmocka_unit_test_setup(test_what_was_saved_puts_the_clock_back, begin),
        cmocka_unit_test_setup(test_a_call_that_gains_seconds_waits, begin),
        cmocka_unit_test_setup(test_a_call_that_gains_more_than_the_load_has_it_itself, begin),
        cmocka_unit_test_setup(test_one_thread_loads_kernels_in_turn, begin),
        cmocka_unit_test_setup(test_a_forked_child_has_none, begin)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
