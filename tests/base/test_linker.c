#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/thread/linker.h"

/* ---- A thread that is inside until it is told to leave ---- */

static atomic_bool is_inside, shall_leave, has_left;
static atomic_int asked; /* how often it was asked whether the linker maps */

static void wait_inside(void)
{
    atomic_store(&is_inside, true);
    while (!atomic_load(&shall_leave))
        sched_yield();
    atomic_store(&has_left, true);
}

static void *stay_inside(void *unused)
{
    linker_enter();
    wait_inside();
    linker_leave();
    return unused;
}

static void *iterate_inside(void *unused)
{
    linker_enter_iteration();
    wait_inside();
    linker_leave_iteration();
    return unused;
}

static pthread_t start(void *(*inside)(void *))
{
    pthread_t thread;
    atomic_store(&is_inside, false);
    atomic_store(&shall_leave, false);
    atomic_store(&has_left, false);
    atomic_store(&asked, 0);
    assert_int_equal(pthread_create(&thread, NULL, inside, NULL), 0);
    while (!atomic_load(&is_inside))
        sched_yield();
    return thread;
}

static void end_inside(pthread_t thread)
{
    atomic_store(&shall_leave, true);
    assert_int_equal(pthread_join(thread, NULL), 0);
}

/* ---- What the linker is said to be doing ---- */

static bool maps_not(void)
{
    atomic_fetch_add(&asked, 1);
    return false;
}

static bool maps_always(void)
{
    atomic_fetch_add(&asked, 1);
    return true;
}

static bool maps_until_third(void)
{
    if (atomic_fetch_add(&asked, 1) == 2)
        atomic_store(&shall_leave, true);
    return true;
}

/* ---- Forks ---- */

static void test_fork_with_nobody_inside_does_not_wait(void **state)
{
    (void)state;
    atomic_store(&asked, 0);
    errno = EDOM;
    linker_before_fork(maps_always);
    linker_after_fork();
    assert_int_equal(atomic_load(&asked), 0);
    assert_int_equal(errno, EDOM);
}

static void test_fork_waits_while_the_linker_maps(void **state)
{
    (void)state;
    pthread_t thread = start(stay_inside);
    errno = EDOM;
    linker_before_fork(maps_until_third);
    assert_true(atomic_load(&has_left));
    assert_int_equal(errno, EDOM);
    linker_after_fork();
    end_inside(thread);
}

static void test_fork_goes_on_where_the_linker_does_not_map(void **state)
{
    (void)state;
    pthread_t thread = start(stay_inside);
    linker_before_fork(maps_not);
    assert_false(atomic_load(&has_left));
    assert_int_equal(atomic_load(&asked), 1);
    linker_after_fork();
    end_inside(thread);
}

static bool maps_not_but_leaves_at_third(void)
{
    maps_until_third();
    return false;
}

/* It may be off its processor for longer, and no child could ever iterate. */
static void test_fork_waits_while_a_thread_iterates(void **state)
{
    (void)state;
    pthread_t thread = start(iterate_inside);
    linker_before_fork(maps_not_but_leaves_at_third);
    assert_true(atomic_load(&has_left));
    linker_after_fork();
    end_inside(thread);
}

static void test_fork_within_an_iteration_does_not_wait_for_itself(void **state)
{
    (void)state;
    pthread_t thread = start(stay_inside);
    linker_enter_iteration();
    linker_before_fork(maps_not);
    assert_int_equal(atomic_load(&asked), 1);
    linker_after_fork();
    linker_leave_iteration();
    end_inside(thread);
}

static void test_fork_waits_for_a_bounded_time(void **state)
{
    (void)state;
    pthread_t thread = start(stay_inside);
    linker_before_fork(maps_always);
    assert_false(atomic_load(&has_left));
    assert_true(atomic_load(&asked) > 1);
    linker_after_fork();
    end_inside(thread);
}

static void test_fork_within_own_work_does_not_wait_for_itself(void **state)
{
    (void)state;
    atomic_store(&asked, 0);
    linker_enter();
    linker_before_fork(maps_always);
    linker_after_fork();
    linker_leave();
    assert_int_equal(atomic_load(&asked), 0);
}

/* ---- Work while a fork is under way ---- */

static void test_enter_now_is_refused_while_forking(void **state)
{
    (void)state;
    linker_before_fork(maps_not);
    errno = EDOM;
    assert_false(linker_enter_iteration_now());
    assert_int_equal(errno, EDOM);
    linker_after_fork();
    assert_true(linker_enter_iteration_now());
    linker_leave_iteration();
}

static void test_work_within_work_goes_on_while_forking(void **state)
{
    (void)state;
    linker_enter();
    linker_before_fork(maps_not);
    assert_true(linker_enter_iteration_now());
    linker_leave_iteration();
    linker_enter();
    linker_leave();
    linker_after_fork();
    linker_leave();

    atomic_store(&asked, 0);
    linker_before_fork(maps_not); /* nobody is counted twice */
    linker_after_fork();
    assert_int_equal(atomic_load(&asked), 0);
}

static atomic_bool forked;

static void *enter_while_forking(void *early)
{
    atomic_store(&is_inside, true);
    errno = EDOM;
    linker_enter();
    *(bool *)early = !atomic_load(&forked) || errno != EDOM;
    linker_leave();
    return NULL;
}

static void *await_forks(void *early)
{
    atomic_store(&is_inside, true);
    errno = EDOM;
    linker_await_forks();
    *(bool *)early = !atomic_load(&forked) || errno != EDOM;
    return NULL;
}

static void check_waits_for_a_fork(void *(*waits)(void *early))
{
    pthread_t thread;
    bool early = false;
    atomic_store(&is_inside, false);
    atomic_store(&forked, false);
    linker_before_fork(maps_not);
    assert_int_equal(pthread_create(&thread, NULL, waits, &early), 0);
    while (!atomic_load(&is_inside))
        sched_yield();
    usleep(20000);
    atomic_store(&forked, true);
    linker_after_fork();
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_false(early);
}

static void test_enter_waits_for_a_fork(void **state)
{
    (void)state;
    check_waits_for_a_fork(enter_while_forking);
}

/* A fork that waited for a library to be loaded goes first. */
static void test_a_loaded_library_waits_for_forks(void **state)
{
    (void)state;
    check_waits_for_a_fork(await_forks);
    atomic_store(&asked, 0);
    linker_before_fork(maps_not); /* and leaves nobody inside */
    linker_after_fork();
    assert_int_equal(atomic_load(&asked), 0);
}

/* The threads that were inside are not there; the fork is over. */
static int in_child(void)
{
    linker_fork_child();
    if (!linker_enter_iteration_now())
        return 1;
    linker_leave_iteration();
    atomic_store(&asked, 0);
    linker_before_fork(maps_not);
    return atomic_load(&asked) == 0 ? 0 : 2;
}

static void test_child_starts_anew(void **state)
{
    (void)state;
    pthread_t thread = start(stay_inside);
    linker_before_fork(maps_not);
    pid_t child = fork();
    if (child == 0)
        _exit(in_child());
    linker_after_fork();
    end_inside(thread);
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fork_with_nobody_inside_does_not_wait),
        cmocka_unit_test(test_fork_waits_while_the_linker_maps),
        cmocka_unit_test(test_fork_goes_on_where_the_linker_does_not_map),
        cmocka_unit_test(test_fork_waits_while_a_thread_iterates),
        cmocka_unit_test(test_fork_within_an_iteration_does_not_wait_for_itself),
        cmocka_unit_test(test_fork_waits_for_a_bounded_time),
        cmocka_unit_test(test_fork_within_own_work_does_not_wait_for_itself),
        cmocka_unit_test(test_enter_now_is_refused_while_forking),
        cmocka_unit_test(test_work_within_work_goes_on_while_forking),
        cmocka_unit_test(test_enter_waits_for_a_fork),
        cmocka_unit_test(test_a_loaded_library_waits_for_forks),
        cmocka_unit_test(test_child_starts_anew),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
