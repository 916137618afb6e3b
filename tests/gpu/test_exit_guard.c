/*
 * The end of a process beside threads that are inside CUDA (gpu/device/exit_guard.h): who runs a
 * handler waits for them, and for nobody else; which handlers run; what happens once. By a clock of
 * the test's own, in a child for each case, as a process ends once.
 */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "gpu/device/exit_guard.h"

/* Ends the child if the condition is false. */
#define must(condition) ((condition) ? (void)0 : broken(#condition, __LINE__))

static void broken(const char *condition, int line)
{
    fprintf(stderr, "line %d: %s\n", line, condition);
    _exit(1);
}

/* ---- Time: the linker sends calls here ---- */

static int pauses;
static int64_t now_ms;
static void (*at_pause)(int number); /* called at each, from 1 on; NULL: nothing happens */

int __wrap_nanosleep(const struct timespec *pause, struct timespec *left);
int __wrap_nanosleep(const struct timespec *pause, struct timespec *left)
{
    (void)pause;
    (void)left;
    now_ms += 100;
    pauses++;
    must(pauses < 1000);
    if (at_pause)
        at_pause(pauses);
    errno = EINTR;
    return -1;
}

int __real_clock_gettime(clockid_t clock, struct timespec *now);
int __wrap_clock_gettime(clockid_t clock, struct timespec *now);
int __wrap_clock_gettime(clockid_t clock, struct timespec *now)
{
    if (clock != CLOCK_MONOTONIC)
        return __real_clock_gettime(clock, now);
    *now = (struct timespec){now_ms / 1000, now_ms % 1000 * 1000000};
    return 0;
}

/* ---- Handlers ---- */

/* What the C library has been told last. */
static struct {
    void (*function)(void *);
    void *argument;
    int count;
} told;

static int tell(void (*function)(void *), void *argument, void *object)
{
    must(object == &told);
    told.function = function;
    told.argument = argument;
    told.count++;
    return 0;
}

static int handled;

static void handle(void *argument)
{
    handled += argument ? *(int *)argument : 1;
}

/* A handler that exit() runs: with an argument, or without as one of atexit(3). */
static void run_handler(int *argument)
{
    must(exit_guard_register(tell, handle, argument, &told) == 0);
    told.function(told.argument);
}

/* ---- Threads ---- */

/* A thread that stays where it is until it may go. */
static struct {
    pthread_t thread;
    sem_t there, may_go;
    enum {
        INSIDE,    /* inside CUDA */
        IN_A_CALL, /* that may use CUDA, and has ended an inner one */
        CANCELLED, /* in a call that its end alone ends */
        JUMPED     /* in none: by longjmp(3), it has left a call before its last one */
    } where;
} other;

static void enter_as(void)
{
    if (other.where == INSIDE) {
        must(exit_guard_enter() && exit_guard_enter());
        exit_guard_leave();
        return;
    }
    exit_guard_hold(true);
    exit_guard_hold(false);
    if (other.where == JUMPED)
        exit_guard_hold(true);
    exit_guard_release();
    if (other.where == JUMPED)
        exit_guard_release(); /* of nothing */
}

static void *stay(void *unused)
{
    (void)unused;
    enter_as();
    sem_post(&other.there);
    while (sem_wait(&other.may_go) != 0)
        continue;
    if (other.where == INSIDE)
        exit_guard_leave();
    if (other.where == IN_A_CALL)
        exit_guard_release();
    return NULL;
}

static void begin_other(int where)
{
    sem_init(&other.there, 0, 0);
    sem_init(&other.may_go, 0, 0);
    other.where = where;
    must(pthread_create(&other.thread, NULL, stay, NULL) == 0);
    while (sem_wait(&other.there) != 0)
        continue;
}

static void end_other(int pause)
{
    must(handled == 0);
    if (pause != 3)
        return;
    sem_post(&other.may_go);
    must(pthread_join(other.thread, NULL) == 0);
}

/* ---- Cases ---- */

static void in_child(void (*test)(void))
{
    int status;
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        test();
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static void end_alone(void)
{
    int ten = 10;
    exit_guard_watch();
    must(!exit_guard_has_begun() && exit_guard_enter());
    exit_guard_leave();
    exit_guard_hold(true);
    exit_guard_release();
    errno = 7;
    run_handler(&ten);
    must(handled == 10 && pauses == 0 && errno == 7);
    must(exit_guard_has_begun() && !exit_guard_enter());
    run_handler(NULL);
    must(handled == 11 && pauses == 0);
}

static void nobody_waits_for_nobody(void **state)
{
    (void)state;
    in_child(end_alone);
}

static void end_beside(int where)
{
    int ten = 10;
    exit_guard_watch();
    begin_other(where);
    at_pause = end_other;
    errno = 7;
    run_handler(&ten);
    must(pauses == 3 && handled == 10 && errno == 7);
}

static void end_beside_one_inside(void)
{
    end_beside(INSIDE);
}

static void end_beside_a_call(void)
{
    end_beside(IN_A_CALL);
}

static void end_beside_a_call_that_is_cancelled(void)
{
    end_beside(CANCELLED);
}

static void a_handler_waits_for_a_thread(void **state)
{
    (void)state;
    in_child(end_beside_one_inside);
    in_child(end_beside_a_call);
    in_child(end_beside_a_call_that_is_cancelled);
}

/* Some seconds at most, and once; then CUDA's own handler does not run. */
static void end_in_vain(void)
{
    int ten = 10, hundred = 100;
    exit_guard_watch();
    must(exit_guard_enter());
    must(exit_guard_register(tell, handle, &hundred, &told) == 0);
    void (*const of_cuda)(void *) = told.function;
    void *const argument = told.argument;
    exit_guard_leave();
    begin_other(INSIDE);
    run_handler(&ten);
    must(handled == 10);
    must(now_ms > ENDING_MS && now_ms <= ENDING_MS + 200);
    of_cuda(argument);
    run_handler(NULL);
    must(handled == 11 && now_ms <= ENDING_MS + 200);
}

static void a_thread_that_hangs_keeps_nobody(void **state)
{
    (void)state;
    in_child(end_in_vain);
}

/* Its handlers run if nobody is inside, whoever has registered them. */
static void end_with_handlers_of_cuda(void)
{
    int hundred = 100;
    exit_guard_watch();
    must(exit_guard_enter());
    must(exit_guard_register(tell, handle, &hundred, &told) == 0);
    exit_guard_leave();
    told.function(told.argument);
    must(handled == 100 && pauses == 0);
}

/* In a signal handler, say: it does not wait for itself, and what it uses stays. */
static void end_inside(void)
{
    int ten = 10, hundred = 100;
    exit_guard_watch();
    exit_guard_hold(true);
    must(exit_guard_enter() && exit_guard_enter());
    must(exit_guard_register(tell, handle, &hundred, &told) == 0);
    told.function(told.argument);
    must(handled == 0 && pauses == 0);
    exit_guard_before_close(); /* so that it counts as the program's */
    must(exit_guard_register(tell, handle, &ten, &told) == 0);
    exit_guard_after_close();
    told.function(told.argument);
    must(handled == 10 && pauses == 0);
}

/* The handlers of a library that is only closed run at once, and nothing ends. */
static void close_a_library(void)
{
    int hundred = 100;
    exit_guard_watch();
    begin_other(INSIDE);
    must(exit_guard_enter());
    must(exit_guard_register(tell, handle, &hundred, &told) == 0);
    exit_guard_before_close();
    told.function(told.argument);
    exit_guard_after_close();
    must(handled == 100 && pauses == 0 && !exit_guard_has_begun());
    exit_guard_leave();
    must(exit_guard_enter());
    exit_guard_leave();
}

static void cudas_handlers_run_where_nobody_is_inside(void **state)
{
    (void)state;
    in_child(end_with_handlers_of_cuda);
    in_child(end_inside);
    in_child(close_a_library);
}

/* Before CUDA is used, handlers are passed on as they are. */
static void register_before(void)
{
    int ten = 10;
    must(exit_guard_register(tell, handle, &ten, &told) == 0);
    must(told.function == handle && told.argument == &ten && told.count == 1);
    must(exit_guard_register(tell, handle, NULL, &told) == 0);
    must(told.function == handle && !told.argument && told.count == 2);
    told.function(told.argument);
    must(handled == 1 && !exit_guard_has_begun());
}

static void leave_by_longjmp(void)
{
    int ten = 10;
    exit_guard_watch();
    begin_other(JUMPED);
    run_handler(&ten);
    must(pauses == 0 && handled == 10);
}

static void what_is_passed_on_and_what_is_left(void **state)
{
    (void)state;
    in_child(register_before);
    in_child(leave_by_longjmp);
}

/* A child has none of its parent's threads, whether it has been told of its fork or not. */
static void fork_beside(void)
{
    int ten = 10, status;
    exit_guard_watch();
    begin_other(IN_A_CALL);
    for (int is_told = 0; is_told < 2; is_told++) {
        const pid_t child = is_told ? fork() : _Fork();
        must(child >= 0);
        if (child == 0) {
            if (is_told)
                exit_guard_fork_child();
            run_handler(&ten);
            must(handled == 10 && pauses == 0 && exit_guard_has_begun() == is_told);
            _exit(0);
        }
        must(waitpid(child, &status, 0) == child && status == 0);
    }
}

static void a_child_waits_for_nobody(void **state)
{
    (void)state;
    in_child(fork_beside);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nobody_waits_for_nobody),
        cmocka_unit_test(a_handler_waits_for_a_thread),
        cmocka_unit_test(a_thread_that_hangs_keeps_nobody),
        cmocka_unit_test(cudas_handlers_run_where_nobody_is_inside),
        cmocka_unit_test(what_is_passed_on_and_what_is_left),
        cmocka_unit_test(a_child_waits_for_nobody),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
