/*
 * The virtual time of steps: copies both ways at once share what there is of both.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>

#include "gpu/schedule_engines.h"
#include "tests/lib/rates.h"
#include "tests/lib/schedule_cases.h"

enum { UP = SCHEDULE_UP, COMPUTE = SCHEDULE_COMPUTE, DOWN = SCHEDULE_DOWN, MOST = 64 };

static struct schedule_rates rates_of(double up, double down, double both)
{
    struct schedule_rates rates = RATES(up, down, 1e3, 0, 0, 0, 0);
    rates.both = both;
    return rates;
}

static void ends_at(struct schedule_engines *engines, int engine, double ms, double begin,
                    double end)
{
    const struct schedule_step step = {.engine = (uint8_t)engine};
    const struct schedule_span span =
        schedule_engines_do(engines, &step, &(struct schedule_work){.ms = ms});
    assert_true(fabs(span.begin - begin) < 1e-9);
    assert_true(fabs(span.end - end) < 1e-9);
    assert_true(engines->ms >= end);
}

/* Half of its rate is left to a copy beside another one: 10 ms of the first download pass so, and 5 more alone. */
static void what_is_left_of_both(void **state)
{
    const struct schedule_rates rates = rates_of(10, 10, 15);
    struct schedule_span memory[3 * MOST];
    struct schedule_engines engines;
    (void)state;
    schedule_engines_start(&engines, &rates, memory, (const int[]){MOST, MOST, MOST});
    ends_at(&engines, UP, 10, 0, 10);
    ends_at(&engines, DOWN, 10, 0, 15);
    ends_at(&engines, UP, 10, 10, 22.5);
    ends_at(&engines, DOWN, 1, 15, 17);
    ends_at(&engines, COMPUTE, 40, 0, 40); /* kernels take nothing of it */
    ends_at(&engines, UP, 3, 22.5, 25.5);  /* alone */
    ends_at(&engines, DOWN, 5, 17, 26.25); /* 2.75 and 1.5 ms of it beside others, 0.75 alone */
}

/* Nothing is left beside a download, which has twice the rate of an upload. */
static void nothing_is_left(void **state)
{
    const struct schedule_rates rates = rates_of(10, 20, 20);
    struct schedule_span memory[3 * MOST];
    struct schedule_engines engines;
    (void)state;
    schedule_engines_start(&engines, &rates, memory, (const int[]){MOST, MOST, MOST});
    ends_at(&engines, DOWN, 4, 0, 4);
    ends_at(&engines, UP, 2, 0, 6);
    ends_at(&engines, UP, 1, 6, 7);
    ends_at(&engines, DOWN, 1, 4, 6); /* half of its rate, beside the first upload */
}

/* A copy from another device has nothing of both, and waits for that device. */
static void from_another_device(void **state)
{
    const struct schedule_rates rates = rates_of(10, 10, 10);
    const struct schedule_step up = {.engine = UP};
    struct schedule_span memory[3 * MOST];
    struct schedule_engines engines;
    (void)state;
    schedule_engines_start(&engines, &rates, memory, (const int[]){MOST, MOST, MOST});
    const struct schedule_span span = schedule_engines_do(
        &engines, &up, &(struct schedule_work){.ms = 5, .not_before = 2, .elsewhere = true});
    assert_true(span.begin == 2 && span.end == 7);
    ends_at(&engines, DOWN, 5, 0, 5);
    ends_at(&engines, UP, 3, 7, 10);
    ends_at(&engines, DOWN, 4, 5, 12); /* half of it before the upload, half behind */
    schedule_engines_do(&engines, &up, &(struct schedule_work){.ms = 1, .elsewhere = true});
    assert_true(engines.did[UP][3].end == 11);
}

static void each_has_its_rate(void **state)
{
    static const double both[] = {0, 30, 40};
    (void)state;
    for (int i = 0; i < 3; i++) {
        const struct schedule_rates rates = rates_of(10, 20, both[i]);
        struct schedule_span memory[3 * MOST];
        struct schedule_engines engines;
        schedule_engines_start(&engines, &rates, memory, (const int[]){MOST, MOST, MOST});
        ends_at(&engines, UP, 3, 0, 3);
        ends_at(&engines, DOWN, 4, 0, 4);
        ends_at(&engines, UP, 3, 3, 6);
    }
}

static double random_ms(void)
{
    return (double)(rand() % 1000) / 100;
}

/* Returns 10^6 bytes of the copies that have ended by then, or begun before. */
static double moved_by(const struct schedule_engines *x, const double *ms[], double then,
                       bool begun)
{
    double moved = 0;
    for (int e = UP; e <= DOWN; e += DOWN - UP)
        for (int i = 1; i <= x->done[e]; i++)
            if (begun ? x->did[e][i].begin < then : x->did[e][i].end <= then)
                moved += ms[e][i] * (e == UP ? x->rates->up : x->rates->down);
    return moved;
}

/* At no end of a copy has more been moved than there is of both, and as long as there are copies both ways, all of it is used. */
static void all_of_both_is_used(void **state)
{
    (void)state;
    for (int seed = 0; seed < 400; seed++) {
        srand((unsigned)seed);
        const double up = 10, down = 5 + rand() % 10, faster = fmax(up, down),
                     both = faster + rand() % 10;
        const struct schedule_rates rates = rates_of(up, down, both);
        struct schedule_span memory[3 * (MOST + 1)];
        struct schedule_engines engines;
        double up_ms[MOST + 1], down_ms[MOST + 1];
        const double *ms[SCHEDULE_ENGINES] = {[UP] = up_ms, [DOWN] = down_ms};
        schedule_engines_start(&engines, &rates, memory, (const int[]){MOST, MOST, MOST});
        for (int i = 0; i < MOST; i++) {
            const int engine = rand() % 2 ? UP : DOWN;
            const struct schedule_step step = {.engine = (uint8_t)engine};
            const struct schedule_work work = {.ms = random_ms()};
            (engine == UP ? up_ms : down_ms)[engines.done[engine] + 1] = work.ms;
            schedule_engines_do(&engines, &step, &work);
        }
        const double most = fmin(up + down, both),
                     first = fmin(engines.did[UP][engines.done[UP]].end,
                                  engines.did[DOWN][engines.done[DOWN]].end);
        for (int e = UP; e <= DOWN; e += DOWN - UP)
            for (int i = 1; i <= engines.done[e]; i++) {
                const double end = engines.did[e][i].end;
                assert_true(moved_by(&engines, ms, end, false) <= most * end * (1 + 1e-9) + 1e-9);
                if (end <= first)
                    assert_true(moved_by(&engines, ms, end, true) >=
                                most * end * (1 - 1e-9) - 1e-9);
            }
    }
}

/* Of whole schedules: less of both takes longer, but no longer than one way at a time; and the search finds the same time as the replay. */
static void schedules_take_longer(void **state)
{
    (void)state;
    for (int c = 0; c < schedule_case_count; c++)
        for (int l = 0; l < schedule_link_count; l++) {
            struct schedule_rates rates = schedule_links[l].rates;
            struct schedule s;
            const struct schedule_call *call = &schedule_cases[c].call;
            assert_true(schedule_make(&s, call, &rates, INT64_MAX / 4));
            const struct schedule_times times = schedule_simulate(&s, &rates);
            double before = times.ms;
            for (int i = 4; i >= 0; i--) {
                const double larger = fmax(rates.up, rates.down);
                rates.both = larger + (rates.up + rates.down - larger) * i / 4;
                const double ms = schedule_simulate(&s, &rates).ms;
                struct schedule own;
                assert_true(i < 4 || ms == times.ms);
                assert_true(ms >= before * (1 - 1e-3));
                assert_true(ms * 1e6 >= (times.bytes[UP] + times.bytes[DOWN]) / rates.both);
                assert_true(ms <= times.ms + times.busy[UP] + times.busy[DOWN]);
                before = ms;
                assert_true(schedule_make(&own, call, &rates, INT64_MAX / 4));
                assert_true(fabs(own.ms - schedule_simulate(&own, &rates).ms) <= 1e-9 * own.ms);
                assert_true(own.ms <= ms * 1.05);
                schedule_free(&own);
            }
            schedule_free(&s);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_left_of_both), cmocka_unit_test(nothing_is_left),
        cmocka_unit_test(from_another_device),  cmocka_unit_test(each_has_its_rate),
        cmocka_unit_test(all_of_both_is_used),  cmocka_unit_test(schedules_take_longer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
