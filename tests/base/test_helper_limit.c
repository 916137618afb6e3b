/*
 * How many threads may help, by samples that the test makes up: independent of what this machine
 * does.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/thread/helper_limit.h"

/* Adds so many rounds of samples: in each one of every helper that may work, which got this share
 * of its CPU. Moves the clock on. */
static void work(struct helper_limit *g, int rounds, double share, double *now_ms)
{
    for (int i = 0; i < rounds; i++) {
        const int helpers = helper_limit_allowed(g, *now_ms);
        *now_ms += HELPER_LIMIT_SAMPLE_MS;
        for (int h = 0; h < helpers; h++) {
            const struct helper_limit_sample sample = {
                HELPER_LIMIT_SAMPLE_MS, share * HELPER_LIMIT_SAMPLE_MS,
                (1 - share) * HELPER_LIMIT_SAMPLE_MS, share < 1};
            helper_limit_add(g, &sample, *now_ms);
        }
    }
}

static void free_cpus_have_all_helpers(void **state)
{
    struct helper_limit g;
    double now = 0;
    (void)state;
    helper_limit_start(&g, 7);
    for (double share = 1; share > 0.86; share -= 0.03) {
        work(&g, 1000, share, &now);
        assert_int_equal(helper_limit_allowed(&g, now), 7);
    }
}

/* On CPUs that others use, fewer and fewer, soon none; then one for a moment, and more seldom the
 * longer it lasts, up to a second. */
static void used_cpus_have_none(void **state)
{
    struct helper_limit g;
    double now = 0, before = 0;
    int tries = 0, last = 7;
    (void)state;
    helper_limit_start(&g, 7);
    for (int i = 0; i < 3; i++) {
        work(&g, 1, 0.5, &now);
        assert_true(helper_limit_allowed(&g, now) < last || last == 0);
        last = helper_limit_allowed(&g, now);
    }
    assert_int_equal(last, 0);
    for (double pause = 0; now < 10000; now += 1)
        if (helper_limit_allowed(&g, now) == 1) {
            assert_true(tries < 1 || now - before >= pause);
            pause = tries > 0 ? now - before : 0;
            before = now;
            assert_true(pause < 1.1 * HELPER_LIMIT_LONGEST_MS);
            tries++;
            work(&g, 1, 0.5, &now);
        }
    assert_in_range(tries, 10, 18);
}

/* All are back after one pause and some samples of each. */
static void all_come_back(void **state)
{
    (void)state;
    for (int most = 1; most <= 7; most++) {
        struct helper_limit g;
        double now = 0;
        helper_limit_start(&g, most);
        while (now < 60000) { /* for long */
            work(&g, 1, 0.3, &now);
            now += 1;
        }
        const double start = now;
        while (helper_limit_allowed(&g, now) < most) {
            work(&g, 1, 1, &now);
            now += 1;
        }
        assert_true(now - start < HELPER_LIMIT_LONGEST_MS + 10 * HELPER_LIMIT_SAMPLE_MS);
    }
}

/* Where the program uses some of the CPUs, as many help as there are others: then each gets its
 * own. */
static void as_many_as_there_is_room_for(void **state)
{
    (void)state;
    for (int room = 1; room <= 6; room++) {
        struct helper_limit g;
        double now = 0, helped = 0, share_of = 0;
        enum { ROUNDS = 2000 };
        helper_limit_start(&g, 7);
        for (int i = 0; i < ROUNDS; i++) {
            const int helpers = helper_limit_allowed(&g, now);
            const double share = helpers > room ? (double)room / helpers : 1;
            helped += helpers;
            share_of += share;
            work(&g, 1, share, &now);
        }
        assert_true(helped / ROUNDS > 0.7 * room);
        /* One too many of seven stays */
        assert_true(share_of / ROUNDS > (room == 6 ? 0.85 : 0.98));
    }
}

/* One that sleeps, or waits for a page, has not lost its CPU to anybody. */
static void sleep_does_not_count(void **state)
{
    struct helper_limit g;
    (void)state;
    helper_limit_start(&g, 7);
    for (int i = 0; i < 1000; i++)
        helper_limit_add(&g, &(struct helper_limit_sample){20, 1, 5, 0}, i);
    assert_int_equal(helper_limit_allowed(&g, 1000), 7);
    helper_limit_start(&g, 0);
    helper_limit_add(&g, &(struct helper_limit_sample){20, 1, 19, 3}, 0);
    assert_int_equal(helper_limit_allowed(&g, 1e9), 0);
}

static void queued_time_is_read(void **state)
{
    double ms;
    (void)state;
    assert_true(helper_limit_queued("690076 1500000 7\n", &ms) && ms == 1.5);
    assert_true(helper_limit_queued("690076 0 1\n", &ms) && ms == 0);
    assert_false(helper_limit_queued("0 0 0\n", &ms)); /* delays are not counted */
    assert_false(helper_limit_queued("690076", &ms));
    assert_false(helper_limit_queued("", &ms));
}

/* What a hypervisor takes from the machine no thread of this program has; where the kernel does not
 * say how long one was ready, that counts as taken by others. */
static void a_hypervisors_share_does_not_count(void **state)
{
    struct helper_limit g;
    (void)state;
    helper_limit_start(&g, 7);
    for (int i = 0; i < 1000; i++)
        helper_limit_add(&g, &(struct helper_limit_sample){4, 2, 0.1, 2}, i);
    assert_int_equal(helper_limit_allowed(&g, 1000), 7);
    helper_limit_start(&g, 7);
    for (int i = 0; i < 7; i++)
        helper_limit_add(&g, &(struct helper_limit_sample){4, 2, HELPER_LIMIT_UNKNOWN, 2}, 1000);
    assert_int_equal(helper_limit_allowed(&g, 1000), 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(free_cpus_have_all_helpers),
        cmocka_unit_test(used_cpus_have_none),
        cmocka_unit_test(all_come_back),
        cmocka_unit_test(as_many_as_there_is_room_for),
        cmocka_unit_test(sleep_does_not_count),
        cmocka_unit_test(a_hypervisors_share_does_not_count),
        cmocka_unit_test(queued_time_is_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
