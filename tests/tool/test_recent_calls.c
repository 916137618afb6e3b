/*
 * How long a call would wait for a place on a server's devices, and how much longer it would take
 * there, by what the calls before it have taken.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>

#include "tool/serve/recent_calls.h"

enum { PLACES = 8 };

static void assert_near(double got, double wanted)
{
    if (!(got > 0.99 * wanted && got < 1.01 * wanted))
        fail_msg("%g, and not %g", got, wanted);
}

static void note(struct recent_calls *recent, int count, bool large, double ms, double alone_ms)
{
    for (int i = 0; i < count; i++)
        recent_calls_note(recent, large, ms, alone_ms, PLACES);
}

static void nothing_is_known_at_first(void **state)
{
    const struct recent_calls recent = {.had_ms = 0};
    (void)state;
    assert_true(recent_calls_wait_ms(&recent, true, (int[]){2, 6}, 10) == 0);
    assert_true(recent_calls_slower(&recent) == 1);
}

/* Six that take 60 ms each leave a place each 10 ms. */
static void a_call_waits_for_the_ends_of_others(void **state)
{
    struct recent_calls recent = {.had_ms = 0};
    (void)state;
    note(&recent, 40, true, 60, 0);
    note(&recent, 40, false, 1, 0);
    assert_near(recent_calls_wait_ms(&recent, true, (int[]){0, 6}, 0), 10);
    assert_near(recent_calls_wait_ms(&recent, true, (int[]){0, 6}, 10), 110);
    assert_near(recent_calls_wait_ms(&recent, true, (int[]){0, 12}, 10), 55); /* two devices */
    /* Small ones that end leave no place for large ones; those that are large leave any. */
    assert_near(recent_calls_wait_ms(&recent, true, (int[]){2, 6}, 0), 10);
    assert_near(recent_calls_wait_ms(&recent, false, (int[]){2, 6}, 0), 1 / 2.1);
}

static void later_calls_count_more(void **state)
{
    struct recent_calls recent = {.had_ms = 0};
    (void)state;
    note(&recent, 100, true, 60, 60);
    note(&recent, 40, true, 6, 1);
    assert_in_range((int64_t)recent_calls_wait_ms(&recent, true, (int[]){0, 1}, 0), 6, 7);
    assert_true(recent_calls_slower(&recent) > 4);
}

static void calls_beside_others_take_longer(void **state)
{
    struct recent_calls recent = {.had_ms = 0};
    (void)state;
    note(&recent, 40, true, 30, 10);
    assert_near(recent_calls_slower(&recent), 3);
    note(&recent, 40, true, 30, 0); /* nothing is known of them */
    assert_near(recent_calls_slower(&recent), 3);
}

/* Whatever a client says, no call can have been slower than behind all others, nor faster than
 * alone. */
static void clients_that_lie_are_bounded(void **state)
{
    static const double said[] = {-1, 0, 1e-300, 1e300, INFINITY, -INFINITY, NAN, 1};
    (void)state;
    for (size_t i = 0; i < sizeof said / sizeof *said; i++) {
        struct recent_calls recent = {.had_ms = 0};
        note(&recent, 10, true, 5, said[i]);
        assert_true(recent_calls_slower(&recent) >= 1 &&
                    recent_calls_slower(&recent) <= 1.001 * PLACES);
        note(&recent, 10, true, 0, said[i]);
        assert_true(recent_calls_slower(&recent) >= 1 &&
                    recent_calls_slower(&recent) <= 1.001 * PLACES);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_known_at_first),
        cmocka_unit_test(a_call_waits_for_the_ends_of_others),
        cmocka_unit_test(later_calls_count_more),
        cmocka_unit_test(calls_beside_others_take_longer),
        cmocka_unit_test(clients_that_lie_are_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
