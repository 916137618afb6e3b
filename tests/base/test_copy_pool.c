/*
 * The copy pool: every task of every job is done once, whatever the number of threads; they come
 * and go as they must; and the program's signals are not theirs. Each test runs in the child of a
 * fork, which begins without threads.
 */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/thread/copy_pool.h"
#include "base/thread/forks.h"
#include "tests/lib/in_child.h"
#include "tests/lib/set_back.h"
#include "tests/lib/sanitized.h"

/* ---- Jobs ---- */

enum { TASKS = 300 };

struct work {
    atomic_int done[TASKS];
    pthread_t caller;
    atomic_int by_caller, by_others;
    int pause_us;
    /* No task ends before the caller and another thread have one, or 30 s have passed */
    bool shared;
};

static void do_task(void *context, int64_t number)
{
    struct work *work = context;
    const struct timespec pause = {0, work->pause_us * 1000L}, a_millisecond = {0, 1000000};
    const bool by_caller = pthread_equal(pthread_self(), work->caller);
    must(by_caller || bound_to == cpus);
    (*(by_caller ? &work->by_caller : &work->by_others))++;
    for (int i = 0; work->shared && !(work->by_caller && work->by_others) && i < 30000; i++)
        nanosleep(&a_millisecond, NULL);
    if (work->pause_us)
        nanosleep(&pause, NULL);
    work->done[number]++;
}

/* Opens tasks as long as there is room, as a copy does. Returns how many threads could help. */
static int run(struct work *work, bool helped)
{
    struct copy_pool_job job = {.task = do_task, .context = work};
    work->caller = pthread_self();
    int helpers = copy_pool_begin(&job, helped);
    for (int64_t done = 0; done < TASKS; done = copy_pool_done(&job)) {
        for (int64_t i = 0; i < done; i++)
            must(work->done[i] == 1);
        copy_pool_open(&job, done + COPY_POOL_TASKS < TASKS ? done + COPY_POOL_TASKS : TASKS);
        if (!copy_pool_help(&job))
            copy_pool_finish(&job, done + 1);
    }
    copy_pool_end(&job);
    return helpers;
}

static void check(const struct work *work)
{
    for (int i = 0; i < TASKS; i++)
        must(work->done[i] == 1);
}

static int threads_now(void)
{
    return threads_named("accel-copy");
}

/* ---- Tests ---- */

static int expected;

static void do_jobs(void)
{
    const time_t start = time(NULL) - 1;
    must(copy_pool_size() == (cpus > COPY_POOL_MOST ? COPY_POOL_MOST : cpus - 1) && attempts == 0);
    for (int i = 0; i < 300; i++) {
        struct work work = {.shared = expected > 0 && i % 100 == 0};
        must(run(&work, true) == expected);
        check(&work);
        must(expected > 0 ? i % 100 || work.by_others > 0 : work.by_others == 0);
    }
    must(attempts <= (expected + 1) * (1 + (time(NULL) - start))); /* not again for each job */
}

static void every_task_is_done_once(void **state)
{
    (void)state;
    for (int helpers = 0; helpers <= 9; helpers += helpers < 3 ? 1 : 2) {
        expected = helpers < COPY_POOL_MOST ? helpers : COPY_POOL_MOST;
        in_child(do_jobs, helpers + 1, 100);
        in_child(do_jobs, 64, expected); /* no more can be started */
    }
}

static void help_nobody(void)
{
    struct work work = {.pause_us = 50};
    must(run(&work, false) == 0);
    check(&work);
    must(work.by_others == 0 && attempts == 0);
}

static void small_jobs_start_no_thread(void **state)
{
    (void)state;
    in_child(help_nobody, 8, 100);
}

static void share(void)
{
    struct work work = {0};
    copy_pool_share(1 << 20);
    must(copy_pool_size() == 0);
    must(run(&work, true) == 0);
    check(&work);
}

static void ranks_share_the_machine(void **state)
{
    (void)state;
    in_child(share, 8, 100);
}

static void *call(void *unused)
{
    (void)unused;
    for (int i = 0; i < 100; i++) {
        struct work work = {.pause_us = i % 10 == 0};
        run(&work, i % 3 > 0);
        check(&work);
    }
    return NULL;
}

enum { CALLERS = 20 }; /* more than the copy pool has places for */

static void call_at_once(void)
{
    pthread_t thread[CALLERS];
    for (int i = 0; i < CALLERS; i++)
        must(pthread_create(&thread[i], NULL, call, NULL) == 0);
    for (int i = 0; i < CALLERS; i++)
        must(pthread_join(thread[i], NULL) == 0);
}

static void callers_share_the_threads(void **state)
{
    (void)state;
    in_child(call_at_once, 4, 100);
    in_child(call_at_once, 64, 100);
}

/* Of the copy pool's threads. */
static atomic_int at_work, most_at_work;

static void count_threads(void *context, int64_t number)
{
    int now = ++at_work, most = most_at_work;
    while (now > most && !atomic_compare_exchange_weak(&most_at_work, &most, now))
        continue;
    do_task(context, number);
    at_work--;
}

static void count_beside_callers(void)
{
    const struct timespec pause = {0, 1000000};
    struct work work[2] = {{.pause_us = 500}, {.pause_us = 500}};
    struct copy_pool_job job[2] = {{.task = count_threads, .context = &work[0]},
                                   {.task = count_threads, .context = &work[1]}};
    for (int i = 0; i < 2; i++) {
        work[i].caller = pthread_self();
        must(copy_pool_begin(&job[i], true) == 3);
    }
    for (int i = 0; i < 2; i++)
        copy_pool_open(&job[i], COPY_POOL_TASKS);
    while (copy_pool_done(&job[0]) < COPY_POOL_TASKS || copy_pool_done(&job[1]) < COPY_POOL_TASKS)
        nanosleep(&pause, NULL);
    copy_pool_end(&job[1]);
    copy_pool_end(&job[0]);
    must(most_at_work <= 2);
}

static void callers_have_cpus_of_their_own(void **state)
{
    (void)state;
    in_child(count_beside_callers, 4, 100);
}

/* ---- Threads of the program's that compute on the same CPUs ---- */

static atomic_bool crowded;
static int first_cpu; /* of those that the test may use */

static void bind_to_first_cpu(void)
{
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(first_cpu, &one);
    must(syscall(SYS_sched_setaffinity, 0, sizeof one, &one) == 0);
}

static void *compute(void *unused)
{
    (void)unused;
    bind_to_first_cpu();
    while (crowded)
        continue;
    return NULL;
}

/* Takes some 200 us of a CPU; of the helpers, of one that the program's threads use. */
static void work_on_first_cpu(void *context, int64_t number)
{
    static _Thread_local bool bound;
    struct work *work = context;
    if (!pthread_equal(pthread_self(), work->caller) && !bound) {
        bind_to_first_cpu();
        bound = true;
    }
    for (volatile int i = 0; i < 100000; i++)
        continue;
    do_task(context, number);
}

/* Runs jobs until so few threads may help that wanted() says so. Returns whether that has come
 * within some minutes. */
static bool run_until(bool (*wanted)(int allowed))
{
    for (const time_t start = time(NULL); time(NULL) < start + 200;) {
        struct work work = {.caller = pthread_self()};
        struct copy_pool_job job = {.task = work_on_first_cpu, .context = &work};
        copy_pool_begin(&job, true);
        for (int64_t done = 0; done < TASKS; done = copy_pool_done(&job)) {
            copy_pool_open(&job, done + COPY_POOL_TASKS < TASKS ? done + COPY_POOL_TASKS : TASKS);
            if (!copy_pool_help(&job))
                copy_pool_finish(&job, done + 1);
        }
        copy_pool_end(&job);
        check(&work);
        if (wanted(copy_pool_allowed()))
            return true;
    }
    return false;
}

static bool none(int allowed)
{
    return allowed == 0;
}

static bool some(int allowed)
{
    return allowed > 0;
}

/* Helpers that share a CPU with three threads get a quarter of it at most; later one is tried
 * again. */
static void crowd(void)
{
    pthread_t thread[3];
    undisturbed = false;
    crowded = true;
    for (int i = 0; i < 3; i++)
        must(pthread_create(&thread[i], NULL, compute, NULL) == 0);
    must(run_until(none));
    struct work work = {0};
    must(run(&work, true) == 3); /* the threads are there */
    check(&work);
    crowded = false;
    for (int i = 0; i < 3; i++)
        must(pthread_join(thread[i], NULL) == 0);
    must(run_until(some));
}

static void helpers_give_way(void **state)
{
    cpu_set_t usable;
    (void)state;
    CPU_ZERO(&usable);
    assert_true(syscall(SYS_sched_getaffinity, 0, sizeof usable, &usable) > 0);
    while (!CPU_ISSET(first_cpu, &usable))
        first_cpu++;
    in_child(crowd, 4, 1000);
}

/* Though the clock is put back while they wait. */
static void end_idle(void)
{
    const struct timespec pause = {0, 20000000};
    struct work work = {.shared = true}, again = work;
    atomic_store(&clock_is_set_back, true);
    run(&work, true);
    must(threads_now() > 0);
    for (int i = 0; i < 5000 && threads_now() > 0; i++)
        nanosleep(&pause, NULL);
    must(threads_now() == 0);
    must(run(&again, true) == 3);
    check(&again);
    must(again.by_others > 0);
}

static void idle_threads_end_and_come_again(void **state)
{
    (void)state;
    in_child(end_idle, 4, 100);
}

static atomic_int rebound; /* tasks of threads that run where the program may */

static void note_bound(void *context, int64_t number)
{
    const struct work *work = context;
    (void)number;
    rebound += !pthread_equal(pthread_self(), work->caller) && bound_to == cpus;
}

/* The program has fewer CPUs, while jobs come so often that no thread ever ends. */
static void change_cpus(void)
{
    const struct timespec pause = {0, 20000000};
    struct work first = {.shared = true}, later = {.caller = pthread_self()};
    must(run(&first, true) == 3);
    cpus = 2;
    for (int i = 0; rebound == 0 && i < 1000; i++) {
        struct copy_pool_job job = {.task = note_bound, .context = &later};
        copy_pool_begin(&job, true);
        copy_pool_open(&job, COPY_POOL_TASKS);
        nanosleep(&pause, NULL);
        copy_pool_end(&job);
    }
    must(rebound > 0 && threads_now() > 0);
}

static void threads_follow_the_program(void **state)
{
    (void)state;
    in_child(change_cpus, 4, 100);
}

static void fork_beside_jobs(void)
{
    pthread_t thread;
    int status;
    must(pthread_create(&thread, NULL, call, NULL) == 0);
    for (int i = 0; i < 20; i++) {
        pid_t child = fork();
        if (child == 0) {
            struct work work = {.shared = true};
            alarm(600);
            forks_child();
            must(threads_now() == 0);
            must(run(&work, true) == 3);
            check(&work);
            must(work.by_others > 0);
            _exit(0);
        }
        must(waitpid(child, &status, 0) == child && status == 0);
    }
    must(pthread_join(thread, NULL) == 0);
}

static void a_fork_beside_jobs(void **state)
{
    (void)state;
    SKIP_UNDER_TSAN("which locks a child that is forked beside threads holds");
    in_child(fork_beside_jobs, 4, 1000);
}

/* ---- Signals ---- */

static atomic_int signals_taken;
static pthread_t program;
static atomic_char *pages;
static long page_bytes;

static void take(int signal)
{
    (void)signal;
    must(pthread_equal(pthread_self(), program));
    signals_taken++;
}

static void send_signal(void *context, int64_t number)
{
    if (number == 0)
        must(kill(getpid(), SIGUSR1) == 0);
    do_task(context, number);
    must(signals_taken == 0);
}

static void signal_beside_job(void)
{
    struct work work = {.pause_us = 100};
    struct copy_pool_job job = {.task = send_signal, .context = &work};
    program = work.caller = pthread_self();
    signal(SIGUSR1, take);
    must(copy_pool_begin(&job, true) == 3);
    copy_pool_open(&job, COPY_POOL_TASKS);
    copy_pool_finish(&job, COPY_POOL_TASKS);
    must(signals_taken == 0);
    copy_pool_end(&job);
    must(signals_taken == 1);
}

static void signals_come_to_the_program_behind_the_job(void **state)
{
    (void)state;
    in_child(signal_beside_job, 4, 100);
}

/* A program may keep its pages from access, and give it when one is touched. */
static void give_access(int signal, siginfo_t *info, void *context)
{
    char *page = (char *)((uintptr_t)info->si_addr & -(uintptr_t)page_bytes);
    (void)signal;
    (void)context;
    signals_taken++;
    must(mprotect(page, (size_t)page_bytes, PROT_READ | PROT_WRITE) == 0);
}

/* A page for the calling thread, and one that the others share. */
static void touch(void *context, int64_t number)
{
    struct work *work = context;
    pages[pthread_equal(pthread_self(), work->caller) ? 0 : page_bytes] = 1;
    do_task(context, number);
}

static void fault_in_task(void)
{
    const struct sigaction action = {.sa_sigaction = give_access, .sa_flags = SA_SIGINFO};
    struct work work = {.pause_us = 1000, .shared = true};
    struct copy_pool_job job = {.task = touch, .context = &work};
    page_bytes = sysconf(_SC_PAGESIZE);
    pages = mmap(NULL, 2 * (size_t)page_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    must(pages != MAP_FAILED);
    work.caller = pthread_self();
    must(sigaction(SIGSEGV, &action, NULL) == 0);
    must(copy_pool_begin(&job, true) == 3);
    copy_pool_open(&job, COPY_POOL_TASKS);
    copy_pool_finish(&job, COPY_POOL_TASKS);
    copy_pool_end(&job);
    must(pages[0] == 1 && pages[page_bytes] == 1);
}

static void faults_of_a_task_are_the_programs(void **state)
{
    (void)state;
    in_child(fault_in_task, 4, 100);
}

static void open_and_end(void)
{
    const struct timespec pause = {0, 1000000};
    struct work work = {.pause_us = 5000};
    struct copy_pool_job job = {.task = count_threads, .context = &work};
    int done = 0;
    work.caller = pthread_self();
    copy_pool_begin(&job, true);
    copy_pool_open(&job, COPY_POOL_TASKS);
    while (at_work == 0 && copy_pool_done(&job) == 0)
        nanosleep(&pause, NULL);
    copy_pool_end(&job);
    must(at_work == 0);
    for (int i = 0; i < TASKS; i++)
        done += work.done[i];
    must(done == work.by_others); /* the calling thread does none any more */
}

static void nothing_is_done_behind_the_end(void **state)
{
    (void)state;
    for (int i = 0; i < 10; i++)
        in_child(open_and_end, 8, 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_task_is_done_once),
        cmocka_unit_test(small_jobs_start_no_thread),
        cmocka_unit_test(ranks_share_the_machine),
        cmocka_unit_test(callers_share_the_threads),
        cmocka_unit_test(callers_have_cpus_of_their_own),
        cmocka_unit_test(helpers_give_way),
        cmocka_unit_test(idle_threads_end_and_come_again),
        cmocka_unit_test(threads_follow_the_program),
        cmocka_unit_test(a_fork_beside_jobs),
        cmocka_unit_test(signals_come_to_the_program_behind_the_job),
        cmocka_unit_test(faults_of_a_task_are_the_programs),
        cmocka_unit_test(nothing_is_done_behind_the_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
