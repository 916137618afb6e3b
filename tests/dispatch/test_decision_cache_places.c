/* Decisions that stand for a while: how many calls go by unread, and what ends that. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/memory/hash.h"
#include "dispatch/decision_cache.h"

static uint64_t call_number(uint64_t i)
{
    return hash_bytes(&i, sizeof i);
}

/* Returns how many calls go by until one is to be decided. */
static int unread(uint64_t call, int busy)
{
    int count = 0;
    while (count < 1000 && decision_cache_holds(call, busy))
        count++;
    return count;
}

/* Decides it until calls go by; returns how often. */
static int decide_until_held(uint64_t call)
{
    int count = 0;
    do {
        decision_cache_note(call, true, 0);
        count++;
    } while (count < 1000 && !decision_cache_holds(call, 0));
    return count;
}

static void eight_in_a_row_then_twice_as_many(void **state)
{
    static const int held[] = {8, 16, 32, 64, 64, 64};
    const uint64_t call = call_number(1);
    (void)state;
    for (int i = 0; i < 7; i++) {
        decision_cache_note(call, true, 0);
        assert_int_equal(unread(call, 0), 0);
    }
    for (size_t i = 0; i < sizeof held / sizeof *held; i++) {
        decision_cache_note(call, true, 0);
        assert_int_equal(unread(call, 0), held[i]);
        assert_int_equal(unread(call_number(2), 0), 0);
    }
}

static void one_that_does_not_stand_begins_anew(void **state)
{
    const uint64_t call = call_number(3);
    (void)state;
    assert_int_equal(decide_until_held(call), 8);
    decision_cache_note(call, false, 0);
    assert_int_equal(unread(call, 0), 0);
    assert_int_equal(decide_until_held(call), 8);
    assert_int_equal(unread(call, 0), 7);
    for (int i = 0; i < 20; i++) {
        decision_cache_note(call, i % 4 != 3, 0);
        assert_int_equal(unread(call, 0), i < 3 ? 16 << i : 0);
    }
}

static void on_a_busier_machine_it_is_decided_anew(void **state)
{
    const uint64_t call = call_number(4);
    (void)state;
    assert_int_equal(decide_until_held(call), 8);
    assert_false(decision_cache_holds(call, 1));
    decision_cache_note(call, true, 1);
    assert_true(decision_cache_holds(call, 1));
    assert_true(decision_cache_holds(call, 0));
    assert_false(decision_cache_holds(call, 2));
    decision_cache_note(call, true, 100000); /* no process has so many threads that compute */
    assert_true(decision_cache_holds(call, 65535));
}

static void nothing_is_kept_over_a_change_of_a_device(void **state)
{
    const uint64_t call = call_number(5);
    (void)state;
    assert_int_equal(decide_until_held(call), 8);
    decision_cache_forget();
    assert_int_equal(unread(call, 0), 0);
    assert_int_equal(decide_until_held(call), 8);
}

/* Of more calls than fit, the last ones are known, and each holds its own alone. */
static void more_calls_than_fit(void **state)
{
    int held = 0;
    (void)state;
    decision_cache_forget();
    for (uint64_t i = 0; i < 2000; i++)
        for (int again = 0; again < 8; again++)
            decision_cache_note(call_number(1000 + i), true, 0);
    for (uint64_t i = 0; i < 2000; i++) {
        const int count = unread(call_number(1000 + i), 0);
        assert_true(count == 0 || count == 8);
        held += count > 0;
    }
    assert_in_range(held, 200, 256);
    assert_true(decision_cache_holds(call_number(2999), 0) == false); /* its eight are used up */
    decision_cache_note(call_number(2999), true, 0);
    assert_int_equal(unread(call_number(2999), 0), 16);
}

enum { THREADS = 4, CALLS = 20000 };

struct thread_counts {
    int decided, wrong;
};

/* Counts what a thread has decided of calls that all threads make. */
static void *decide_some(void *argument)
{
    struct thread_counts *counts = argument;
    for (int i = 0; i < CALLS; i++) {
        const uint64_t call = call_number((uint64_t)(i % 300));
        if (!decision_cache_holds(call, 0)) {
            decision_cache_note(call, call % 3 != 0, 0);
            counts->decided++;
        } else {
            counts->wrong += call % 3 == 0;
        }
    }
    return NULL;
}

/* Threads that count down at once may let more calls by, but none is held that did not stand. */
static void by_threads(void **state)
{
    pthread_t thread[THREADS];
    struct thread_counts counts[THREADS] = {{0}};
    (void)state;
    decision_cache_forget();
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, decide_some, &counts[i]), 0);
    for (int i = 0; i < THREADS; i++) {
        pthread_join(thread[i], NULL);
        assert_true(counts[i].decided >= CALLS / 3 - 300);
        assert_int_equal(counts[i].wrong, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(eight_in_a_row_then_twice_as_many),
        cmocka_unit_test(one_that_does_not_stand_begins_anew),
        cmocka_unit_test(on_a_busier_machine_it_is_decided_anew),
        cmocka_unit_test(nothing_is_kept_over_a_change_of_a_device),
        cmocka_unit_test(more_calls_than_fit),
        cmocka_unit_test(by_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
