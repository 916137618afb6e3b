/* Waits end when they should, though the clock that can be set is put back meanwhile. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <pthread.h>
#include <unistd.h>

#include "base/thread/clock.h"
#include "base/thread/monotonic_wait.h"
#include "tests/lib/pause.h"
#include "tests/lib/set_back.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void *hold_for_100_ms(void *held)
{
    pthread_mutex_lock(&lock);
    atomic_store((atomic_bool *)held, true);
    pause_ms(100);
    pthread_mutex_unlock(&lock);
    return NULL;
}

static void a_lock_is_had_when_it_is_free(void **state)
{
    atomic_bool held = false;
    pthread_t thread;
    (void)state;
    errno = 4711;
    assert_true(monotonic_timed_lock(&lock, 0));
    pthread_mutex_unlock(&lock);
    assert_int_equal(pthread_create(&thread, NULL, hold_for_100_ms, &held), 0);
    while (!atomic_load(&held))
        pause_ms(1);
    assert_true(monotonic_timed_lock(&lock, 60000));
    pthread_mutex_unlock(&lock);
    assert_int_equal(errno, 4711);
    assert_int_equal(pthread_join(thread, NULL), 0);
}

static void a_lock_is_given_up_in_time(void **state)
{
    (void)state;
    pthread_mutex_lock(&lock);
    const double begun = accel_now_ms();
    assert_false(monotonic_timed_lock(&lock, 0));
    assert_false(monotonic_timed_lock(&lock, 150));
    const double took = accel_now_ms() - begun;
    assert_true(took >= 150 && took < 60000);
    pthread_mutex_unlock(&lock);
}

static void a_condition_is_given_up_in_time(void **state)
{
    pthread_cond_t condition;
    (void)state;
    monotonic_condition(&condition);
    const double begun = accel_now_ms();
    const struct timespec until = monotonic_deadline(1150);
    pthread_mutex_lock(&lock);
    int result = 0;
    while (result == 0)
        result = pthread_cond_timedwait(&condition, &lock, &until);
    pthread_mutex_unlock(&lock);
    pthread_cond_destroy(&condition);
    const double took = accel_now_ms() - begun;
    assert_int_equal(result, ETIMEDOUT);
    assert_true(until.tv_nsec >= 0 && until.tv_nsec < 1000000000);
    assert_true(took >= 1150 && took < 60000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_lock_is_had_when_it_is_free),
        cmocka_unit_test(a_lock_is_given_up_in_time),
        cmocka_unit_test(a_condition_is_given_up_in_time),
    };
    atomic_store(&clock_is_set_back, true);
    alarm(300);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
