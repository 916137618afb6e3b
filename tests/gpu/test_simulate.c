/*
 * The virtual time of steps.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>

#include "gpu/plan/simulate.h"
#include "gpu/plan/schedule_plan.h"
#include "tests/lib/rates.h"
#include "tests/lib/schedule_cases.h"

enum { UP = SCHEDULE_UP, COMPUTE = SCHEDULE_COMPUTE, DOWN = SCHEDULE_DOWN, MOST = 64 };

static void ends_at(struct simulator *sim, int engine, double ms, double begin, double end)
{
    const struct schedule_step step = {.engine = (uint8_t)engine};
    const struct simulate_span span = simulate_step(sim, &step, &(struct simulate_work){.ms = ms});
    assert_true(fabs(span.begin - begin) < 1e-9);
    assert_true(fabs(span.end - end) < 1e-9);
    assert_true(sim->ms >= end);
}

/* Each engine does its steps one after the other, and none waits for another one unless it must. */
static void each_has_its_rate(void **state)
{
    const struct schedule_rates rates = RATES(10, 20, 1e3, 0, 0, 0, 0.5);
    const struct schedule_step behind = {.engine = COMPUTE, .after = {[UP] = 2}};
    double memory[3 * MOST];
    struct simulator sim;
    (void)state;
    simulate_start(&sim, &rates, memory, (const int[]){MOST, MOST, MOST});
    ends_at(&sim, UP, 3, 0, 3);
    ends_at(&sim, DOWN, 4, 0, 4);
    ends_at(&sim, UP, 3, 3, 6);
    ends_at(&sim, UP, 3, 6, 9);
    const struct simulate_span span =
        simulate_step(&sim, &behind, &(struct simulate_work){.ms = 1});
    assert_true(span.begin == 6.5 && span.end == 7.5 && sim.ms == 9);
}

/* The calling thread puts one step after the other on its stream. */
static void the_calling_thread_does_one_thing(void **state)
{
    struct schedule_rates rates = RATES(10, 10, 1e3, 0, 0, 0, 0);
    double memory[3 * MOST];
    struct simulator sim;
    (void)state;
    rates.call_ms = 1;
    rates.chunk_share = 0.5;
    rates.launch_ms = 2;
    simulate_start(&sim, &rates, memory, (const int[]){MOST, MOST, MOST});
    ends_at(&sim, UP, 4, 3, 7);
    ends_at(&sim, COMPUTE, 1, 5, 6);
    ends_at(&sim, DOWN, 2, 7, 9);
    ends_at(&sim, UP, 2, 9, 11);
}

/* A copy from another device waits for that device, and takes nothing from the calling thread but
 * its start. */
static void from_another_device(void **state)
{
    struct schedule_rates rates = RATES(10, 10, 1e3, 0, 0, 0, 0);
    const struct schedule_step up = {.engine = UP};
    double memory[3 * MOST];
    struct simulator sim;
    (void)state;
    rates.chunk_share = 0.5;
    simulate_start(&sim, &rates, memory, (const int[]){MOST, MOST, MOST});
    const struct simulate_span span = simulate_step(
        &sim, &up, &(struct simulate_work){.ms = 5, .not_before = 2, .elsewhere = true});
    assert_true(span.begin == 2 && span.end == 7);
    ends_at(&sim, DOWN, 4, 2, 6);
    ends_at(&sim, UP, 3, 7, 10);
}

/* A triangle of order 100 solves 100 rows. Rows of 1000 doubles take 0.4 us each, because one waits
 * for another; rows of 10000 doubles take what 80 KB take at 72 GB/s, which is longer. A product by
 * the triangle takes neither. */
static void triangles_are_solved(void **state)
{
    struct schedule_rates rates = RATES(10, 10, 1e12, 0, 0, 0, 0);
    (void)state;
    rates.row_ms = 4e-4;
    rates.solve = 72;
    for (int i = 0; i < 3; i++) {
        const struct schedule s = {
            .call = {.kind = i < 2 ? SCHEDULE_SOLVE : SCHEDULE_MULTIPLY,
                     .m = 100,
                     .n = i == 0 ? 1000 : 10000,
                     .k = 100,
                     .per_term = 2,
                     .size = {8, 8, 8},
                     .reads = true},
            .by = {.rows = 100, .cols = i == 0 ? 1000 : 10000, .depth = 100}};
        const double ms = schedule_kernel_ms(&s, &rates, 0, 0, 0),
                     expected = i == 0   ? 100 * 4e-4
                                : i == 1 ? 100 * 80e3 / 72e6
                                         : 0;
        assert_true(fabs(ms - expected) < 1e-3 * expected + 1e-6);
    }
}

/* The milliseconds of a kernel that solves by a triangle of order 100. */
static double solving_ms(const struct schedule_rates *rates, int64_t cols, bool in_place)
{
    const struct schedule s = {.call = {.kind = SCHEDULE_SOLVE,
                                        .m = 100,
                                        .n = cols,
                                        .k = 100,
                                        .per_term = 2,
                                        .size = {8, 8, 8},
                                        .in_place = {[SCHEDULE_C] = in_place},
                                        .reads = true},
                               .by = {.rows = 100, .cols = cols, .depth = 100}};
    const double ms = schedule_kernel_ms(&s, rates, 0, 0, 0);
    assert_true(schedule_least_solve_ms(&s.call, rates) <= ms);
    return ms;
}

static bool is_about(double ms, double expected)
{
    return fabs(ms - expected) < 1e-3 * expected + 1e-6;
}

/* Our own kernel has rates of its own where it solves: with 2000 right-hand sides and more, and not
 * where the result is on the device. */
static void our_own_kernel_solves_wide_tiles(void **state)
{
    struct schedule_rates rates = RATES(10, 10, 1e12, 0, 0, 0, 0);
    (void)state;
    rates.row_ms = 4e-4;
    rates.solve = 72;
    rates.own_row_ms = 1e-4;
    rates.own_solve = 360;
    rates.own_nrhs = 2000;
    assert_true(is_about(solving_ms(&rates, 1999, false), 100 * 4e-4));
    assert_true(is_about(solving_ms(&rates, 2000, false), 100 * 1e-4));
    assert_true(is_about(solving_ms(&rates, 10000, false), 100 * 80e3 / 360e6));
    assert_true(is_about(solving_ms(&rates, 10000, true), 100 * 80e3 / 72e6));
    rates.own_nrhs = 0;
    assert_true(is_about(solving_ms(&rates, 10000, false), 100 * 80e3 / 72e6));
}

/* No division into tiles solves in less time than the bound by which the search leaves divisions
 * out. */
static void solving_has_a_least_time(void **state)
{
    static const double own_row_ms[] = {1e-4, 4e-3}, own_solve[] = {20, 360};
    (void)state;
    for (int i = 0; i < 4; i++) {
        struct schedule_rates rates = RATES(10, 10, 1e12, 0, 0, 0, 0);
        rates.row_ms = 4e-4;
        rates.solve = 72;
        rates.own_row_ms = own_row_ms[i % 2];
        rates.own_solve = own_solve[i / 2];
        rates.own_nrhs = 2000;
        const double least = schedule_least_solve_ms(
            &(struct schedule_call){
                .kind = SCHEDULE_SOLVE, .m = 100, .n = 10000, .k = 100, .size = {8, 8, 8}},
            &rates);
        assert_true(least > 0);
        for (int parts = 1; parts <= 20; parts++) /* panels of equal width */
            assert_true(parts * solving_ms(&rates, 10000 / parts, false) >= 0.99 * least);
    }
}

/* Of whole schedules, the search finds the same time as the replay. */
static void searched_as_replayed(void **state)
{
    (void)state;
    for (int c = 0; c < schedule_case_count; c++)
        for (int l = 0; l < schedule_link_count; l++) {
            struct schedule_rates rates = schedule_links[l].rates;
            struct schedule s;
            rates.row_ms = 4e-4;
            rates.solve = 72;
            rates.own_row_ms = 2e-4;
            rates.own_solve = 300;
            rates.own_nrhs = l % 2 ? 1000 : 0;
            assert_true(schedule_make(&s, &schedule_cases[c].call, &rates, INT64_MAX / 4));
            assert_true(fabs(s.ms - schedule_simulate(&s, &rates).ms) <= 1e-9 * s.ms);
            schedule_free(&s);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_has_its_rate),
        cmocka_unit_test(the_calling_thread_does_one_thing),
        cmocka_unit_test(from_another_device),
        cmocka_unit_test(triangles_are_solved),
        cmocka_unit_test(our_own_kernel_solves_wide_tiles),
        cmocka_unit_test(solving_has_a_least_time),
        cmocka_unit_test(searched_as_replayed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
