/*
 * Threads for whole tasks: every task is run once, by a thread or by its caller; threads come and
 * go as they must, and the program's signals are not theirs. Each test runs in the child of a fork,
 * which begins without threads.
 */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/thread/forks.h"
#include "base/thread/task_pool.h"
#include "tests/lib/in_child.h"
#include "tests/lib/pause.h"
#include "tests/lib/set_back.h"

enum { TASKS = 5 };

struct task {
    struct pooled_task task;
    atomic_int runs;
    atomic_bool *together; /* it goes on when all have begun */
    pthread_t by;
};

static atomic_int begun;

static void do_task(struct pooled_task *task)
{
    struct task *own = (struct task *)task;
    own->by = pthread_self();
    begun++;
    while (own->together && !*own->together)
        pause_ms(1);
    own->runs++;
}

static void await(atomic_int *value, int wanted)
{
    for (int i = 0; i < 60000 && *value < wanted; i++)
        pause_ms(1);
    must(*value == wanted);
}

static void give(struct task tasks[TASKS], atomic_bool *together)
{
    for (int i = 0; i < TASKS; i++) {
        tasks[i] = (struct task){.task = {.run = do_task}, .together = together};
        task_pool_give(&tasks[i].task);
    }
}

/* ---- Threads ---- */

static void run_together(void)
{
    struct task tasks[TASKS];
    atomic_bool go = false;
    begun = 0;
    give(tasks, &go);
    await(&begun, TASKS); /* each waits for the others: so each has a thread */
    for (int i = 0; i < TASKS; i++)
        must(!task_pool_take_back(&tasks[i].task));
    go = true;
    for (int i = 0; i < TASKS; i++) {
        await(&tasks[i].runs, 1);
        must(!pthread_equal(tasks[i].by, pthread_self()));
        for (int k = 0; k < i; k++)
            must(!pthread_equal(tasks[i].by, tasks[k].by));
    }
    must(attempts == TASKS);
}

static void each_task_has_a_thread(void **state)
{
    (void)state;
    in_child(run_together, 2, 100);
}

static void run_again(void)
{
    struct task tasks[TASKS];
    run_together();
    pause_ms(50); /* until they wait */
    begun = 0;
    give(tasks, NULL);
    for (int i = 0; i < TASKS; i++)
        await(&tasks[i].runs, 1);
    must(attempts <= TASKS + 1); /* one may have been on its way still */
}

static void threads_stay_for_a_while(void **state)
{
    (void)state;
    in_child(run_again, 2, 100);
}

static int threads_now(void)
{
    return threads_named("accel-part");
}

/* Though the clock is put back while they wait. */
static void end_idle(void)
{
    atomic_store(&clock_is_set_back, true);
    run_together();
    must(threads_now() > 0);
    for (int i = 0; i < 6000 && threads_now() > 0; i++)
        pause_ms(10);
    must(threads_now() == 0);
    attempts = 0;
    run_together();
}

static void idle_threads_end(void **state)
{
    (void)state;
    in_child(end_idle, 2, 100);
}

static void run_without_threads(void)
{
    struct task tasks[TASKS];
    give(tasks, NULL);
    for (int i = TASKS - 1; i >= 0; i -= 2)
        must(task_pool_take_back(&tasks[i].task));
    for (int i = 1; i < TASKS; i += 2)
        must(task_pool_take_back(&tasks[i].task));
    for (int i = 0; i < TASKS; i++)
        must(!task_pool_take_back(&tasks[i].task) && tasks[i].runs == 0);
    give(tasks, NULL);
    for (int i = 0; i < TASKS; i++)
        must(task_pool_take_back(&tasks[i].task));
}

static void tasks_can_be_taken_back(void **state)
{
    (void)state;
    in_child(run_without_threads, 2, 0);
}

static void run_by_one(void)
{
    struct task tasks[TASKS];
    give(tasks, NULL);
    for (int i = 0; i < TASKS; i++) {
        await(&tasks[i].runs, 1);
        must(pthread_equal(tasks[i].by, tasks[0].by));
    }
}

static void one_thread_does_all(void **state)
{
    (void)state;
    in_child(run_by_one, 2, 1);
}

/* ---- Forks ---- */

static void fork_beside_tasks(void)
{
    struct task tasks[TASKS];
    atomic_bool go = false;
    int status;
    begun = 0;
    give(tasks, &go);
    await(&begun, TASKS);
    const pid_t child = fork();
    if (child == 0) {
        alarm(600);
        forks_child();
        attempts = 0;
        run_together();
        _exit(0);
    }
    must(waitpid(child, &status, 0) == child && status == 0);
    go = true;
    for (int i = 0; i < TASKS; i++)
        await(&tasks[i].runs, 1);
}

static void a_child_has_threads_of_its_own(void **state)
{
    (void)state;
    in_child(fork_beside_tasks, 2, 100);
}

/* ---- Signals ---- */

static atomic_int signals_taken;

static void take(int number)
{
    (void)number;
    signals_taken++;
}

static void signal_beside_tasks(void)
{
    struct task tasks[TASKS];
    atomic_bool go = false;
    sigset_t all, before;
    signal(SIGUSR1, take);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    begun = 0;
    give(tasks, &go);
    await(&begun, TASKS);
    must(kill(getpid(), SIGUSR1) == 0);
    pause_ms(20);
    must(signals_taken == 0);
    go = true;
    for (int i = 0; i < TASKS; i++)
        await(&tasks[i].runs, 1);
    must(signals_taken == 0);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    must(signals_taken == 1);
}

static void signals_are_the_programs(void **state)
{
    (void)state;
    in_child(signal_beside_tasks, 2, 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_task_has_a_thread),  cmocka_unit_test(threads_stay_for_a_while),
        cmocka_unit_test(idle_threads_end),        cmocka_unit_test(tasks_can_be_taken_back),
        cmocka_unit_test(one_thread_does_all),     cmocka_unit_test(a_child_has_threads_of_its_own),
        cmocka_unit_test(signals_are_the_programs)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
