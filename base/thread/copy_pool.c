#define _GNU_SOURCE
#include "copy_pool.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"
#include "base/file/file.h"
#include "forks.h"
#include "helper_limit.h"
#include "signal_mask.h"
#include "thread_spawn.h"
#include "monotonic_wait.h"

/* A thread that has had nothing to do for so long ends. After a thread could not be started, the
 * next try is as much later. */
#define IDLE_MS 1000.0

/* To fall asleep and be woken up takes some 50 us, on a virtual machine above all: a thread first
 * looks for more tasks of its job for so long, and the calling thread for the end of a task. */
#define AWAKE_MS 0.05

/* With so many threads, the calling one has better things to do than tasks (copy_pool_attend()): it
 * looks for so long, and after a while in vain it does tasks nevertheless. */
enum { ENOUGH = 4 };
#define LOOK_MS    0.005
#define IN_VAIN_MS 0.2

/* A thread wakes so many others up, and these do the same. */
enum { WOKEN_BY_ONE = 2 };

/* Jobs that threads help at once; further ones are not helped. */
enum { JOBS_MAX = 16 };

enum { STACK_BYTES = 256 << 10 };

/* Held for some instructions at a time: worth looking again before falling asleep. */
static pthread_mutex_t lock = PTHREAD_ADAPTIVE_MUTEX_INITIALIZER_NP;
FORKS_LOCK(lock);
static pthread_cond_t calls_come;
static bool made; /* calls_come, before the first thread starts */
static pthread_cond_t workers_leave = PTHREAD_COND_INITIALIZER;
static struct copy_pool_job *jobs[JOBS_MAX]; /* NULL: no job */
static int turn, calls; /* calls: for threads that sleep, which these have not seen yet */
static atomic_int job_count, threads, allowed; /* allowed: to be at work, by the last look */
/* Threads without work, asleep or about to; those at a job, and of these the ones that look for
 * more tasks; calling threads that wait until workers have left their job. */
static atomic_int idle, busy, looking, enders;
static atomic_int cpus;   /* that the process may use, when the threads started; 0: not known yet */
static double not_before; /* in milliseconds of the clock: when to start threads again */
static atomic_int processes = 1;
static struct helper_limit helper_limit;

/* An affinity mask with room for more than the 1024 CPUs of one cpu_set_t. */
typedef cpu_set_t cpu_mask[8];

static cpu_mask mask; /* of the threads */
static int masks;     /* how often it has changed; with the lock */

void copy_pool_share(int with)
{
    atomic_store(&processes, with);
}

static void pause_a_moment(void)
{
#ifdef __x86_64__
    __builtin_ia32_pause();
#elif defined __aarch64__
    __asm__ volatile("isb"); /* yield is no pause on most processors */
#endif
}

/* ---- Tasks: without a lock ---- */

/* Returns the number of an open task that nobody has begun, or -1. */
static int64_t claim(struct copy_pool_job *job)
{
    int64_t number = atomic_load(&job->claimed);
    while (number < atomic_load(&job->open))
        if (atomic_compare_exchange_weak(&job->claimed, &number, number + 1))
            return number;
    return -1;
}

static bool has_tasks(const struct copy_pool_job *job)
{
    return atomic_load(&job->claimed) < atomic_load(&job->open);
}

static void do_task(struct copy_pool_job *job, int64_t number)
{
    job->task(job->context, number);
    atomic_store(&job->finished[number % COPY_POOL_TASKS], true);
    /* The calling thread says that it waits before it looks for the last time. */
    if (atomic_load(&job->waiting)) {
        pthread_mutex_lock(&lock);
        pthread_cond_signal(&job->news);
        pthread_mutex_unlock(&lock);
    }
}

int64_t copy_pool_done(struct copy_pool_job *job)
{
    atomic_bool *next;
    /* In one order with `waiting`: who says that it waits looks behind that. */
    while (atomic_load(next = &job->finished[job->done % COPY_POOL_TASKS])) {
        atomic_store_explicit(next, false, memory_order_relaxed);
        job->done++;
    }
    return job->done;
}

/* ---- Who may work; with the lock ---- */

/* Returns how many threads may be at work now. */
static int look_allowed(void)
{
    const int now = helper_limit_allowed(&helper_limit, accel_now_ms());
    allowed = now;
    return now;
}

/* Returns how many more. */
static int left_to_allow(void)
{
    const int most = look_allowed();
    return most > busy ? most - busy : 0;
}

/* Returns a job with a task for one more thread, and counts that thread among its workers; or
 * NULL. */
static struct copy_pool_job *join_job(void)
{
    if (job_count == 0 || busy + job_count >= cpus || left_to_allow() == 0)
        return NULL;
    for (int i = 0; i < JOBS_MAX; i++) {
        struct copy_pool_job *job = jobs[(turn + i) % JOBS_MAX];
        if (job && has_tasks(job)) {
            turn = (turn + i + 1) % JOBS_MAX;
            busy++;
            job->workers++;
            return job;
        }
    }
    return NULL;
}

/* Takes no lock while nobody waits for it. The job may be gone behind this. */
static void leave_job(struct copy_pool_job *job)
{
    busy--;
    if (--job->workers == 0 && enders > 0) {
        pthread_mutex_lock(&lock);
        pthread_cond_broadcast(&workers_leave);
        pthread_mutex_unlock(&lock);
    }
}

/* ---- The threads ---- */

/* With the lock, which it releases meanwhile. Returns whether a call has come. */
static bool wait_for_call(void)
{
    const struct timespec until = monotonic_deadline(IDLE_MS);
    int result = 0;
    while (calls == 0 && result == 0)
        result = pthread_cond_timedwait(&calls_come, &lock, &until);
    if (calls == 0)
        return false;
    calls--;
    return true;
}

/* What a thread has done since it gave its last sample, and what the kernel says of it until
 * then. */
struct done {
    double wall_ms, cpu_ms, queued_ms;
    long preempted;
};

/* Reads how long the thread has been ready to run, and did not: as a rule because another had its
 * CPU. Not so what a hypervisor takes from the machine: that is nobody's of this program. Returns
 * false where the kernel does not say. */
static bool read_queued(double *ms)
{
    char text[96];
    const int fd = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
    const ssize_t got = fd >= 0 ? file_read(fd, text, sizeof text - 1) : -1;
    if (fd >= 0)
        close(fd);
    text[got > 0 ? got : 0] = 0;
    return helper_limit_queued(text, ms);
}

/* Returns false on a failure. Some of it is as old as the kernel's last tick. */
static bool read_kernel(struct done *done)
{
    struct timespec cpu;
    struct rusage usage;
    if (clock_gettime(CLOCK_THREAD_CPUTIME_ID, &cpu) != 0 || getrusage(RUSAGE_THREAD, &usage) != 0)
        return false;
    done->cpu_ms = (double)cpu.tv_sec * 1e3 + (double)cpu.tv_nsec * 1e-6;
    done->preempted = usage.ru_nivcsw;
    if (!read_queued(&done->queued_ms))
        done->queued_ms = HELPER_LIMIT_UNKNOWN;
    return true;
}

/* Gives a sample of a thread that has been at a job for a while, and returns whether it may go on.
 * Where the kernel says nothing, all threads help. */
static bool may_go_on(struct done *done)
{
    struct done now = {.wall_ms = 0};
    const bool known = read_kernel(&now);
    const bool queue_known = now.queued_ms >= 0 && done->queued_ms >= 0;
    const struct helper_limit_sample sample = {done->wall_ms, now.cpu_ms - done->cpu_ms,
                                               queue_known ? now.queued_ms - done->queued_ms
                                                           : HELPER_LIMIT_UNKNOWN,
                                               now.preempted - done->preempted};
    *done = now;
    pthread_mutex_lock(&lock);
    if (known)
        helper_limit_add(&helper_limit, &sample, accel_now_ms());
    const bool may = look_allowed() >= busy;
    pthread_mutex_unlock(&lock);
    return may;
}

/* Looks for more tasks of a job for a moment. Others may have jobs, too, then all share the threads
 * in turn. */
static bool more_come(const struct copy_pool_job *job)
{
    const double until = accel_now_ms() + AWAKE_MS;
    bool found = has_tasks(job);
    looking++;
    while (!found && job->open >= 0 && job_count == 1 && accel_now_ms() < until) {
        for (int i = 0; i < 16 && !found; i++) {
            pause_a_moment();
            found = has_tasks(job);
        }
    }
    looking--;
    return found;
}

/* Does tasks until there are none, or others want a thread, too. */
static void work(struct copy_pool_job *job, struct done *done)
{
    double begun = accel_now_ms();
    int64_t number;
    do {
        while ((number = claim(job)) >= 0) {
            do_task(job, number);
            const double now = accel_now_ms();
            if (done->wall_ms + now - begun >= HELPER_LIMIT_SAMPLE_MS) {
                done->wall_ms += now - begun;
                begun = now;
                if (!may_go_on(done))
                    return;
            }
            if (job_count > 1)
                break;
        }
    } while (job_count == 1 && more_come(job));
    done->wall_ms += accel_now_ms() - begun;
}

static void *run_copy_thread(void *unused)
{
    struct done done = {.wall_ms = 0};
    sigset_t signals;
    bool called = true;
    (void)unused;
    thread_spawn_begin("accel-copy");
    signals_but_faults(&signals);
    pthread_sigmask(SIG_SETMASK, &signals, NULL);
    read_kernel(&done);
    pthread_mutex_lock(&lock);
    for (int bound = -1; called;) {
        if (bound != masks)
            sched_setaffinity(0, sizeof mask, mask);
        bound = masks;
        /* Counted before it looks for the last time, as copy_pool_open() looks for it behind the
         * opening. */
        idle++;
        struct copy_pool_job *job = join_job();
        if (!job)
            called = wait_for_call();
        idle--;
        const int to_wake = !job && called && calls > 0 ? WOKEN_BY_ONE : 0;
        if (!job && !to_wake)
            continue;
        pthread_mutex_unlock(&lock);
        for (int i = 0; i < to_wake; i++)
            pthread_cond_signal(&calls_come);
        if (job) {
            work(job, &done);
            leave_job(job);
        }
        pthread_mutex_lock(&lock);
    }
    threads--;
    pthread_mutex_unlock(&lock);
    return NULL;
}

/* Reads the CPUs that the process may use: those of the calling thread and those of the first
 * thread. OpenMP may have bound each of the two to one CPU. */
static void read_cpus(void)
{
    const int sharers = atomic_load(&processes);
    cpu_mask first, own;
    CPU_ZERO_S(sizeof own, own);
    CPU_ZERO_S(sizeof first, first);
    sched_getaffinity(0, sizeof own, own);
    sched_getaffinity(getpid(), sizeof first, first);
    CPU_OR_S(sizeof own, own, own, first);
    int usable = CPU_COUNT_S(sizeof own, own);
    if (usable == 0 && cpus > 0)
        return; /* the kernel does not say any more */
    masks += !CPU_EQUAL_S(sizeof mask, mask, own);
    memcpy(mask, own, sizeof mask);
    if (sharers > 1 && usable > sysconf(_SC_NPROCESSORS_ONLN) / sharers)
        usable = (int)sysconf(_SC_NPROCESSORS_ONLN) / sharers;
    cpus = usable > 0 ? usable : 1; /* 0: not known yet */
}

/* Looks where the process may run, which it may have changed, and starts the threads that are
 * missing; once a second. */
static void start_threads(void)
{
    const double now = accel_now_ms();
    if (now < not_before)
        return;
    not_before = now + IDLE_MS;
    if (!made)
        monotonic_condition(&calls_come);
    made = true;
    read_cpus();
    const int most = cpus - 1 < COPY_POOL_MOST ? cpus - 1 : COPY_POOL_MOST;
    if (helper_limit.most != most)
        helper_limit_start(&helper_limit, most);
    while (threads < COPY_POOL_MOST && threads < cpus - 1 &&
           thread_spawn(run_copy_thread, NULL, STACK_BYTES))
        threads++;
}

int copy_pool_size(void)
{
    if (cpus == 0) {
        pthread_mutex_lock(&lock);
        if (cpus == 0)
            read_cpus();
        pthread_mutex_unlock(&lock);
    }
    const int most = cpus - 1;
    return most < 0 ? 0 : most < COPY_POOL_MOST ? most : COPY_POOL_MOST;
}

/* ---- Jobs ---- */

/* Returns whether there was a place. */
static bool add_job(struct copy_pool_job *job)
{
    for (int i = 0; i < JOBS_MAX; i++)
        if (!jobs[i]) {
            jobs[i] = job;
            job_count++;
            return true;
        }
    return false;
}

static void remove_job(const struct copy_pool_job *job)
{
    for (int i = 0; i < JOBS_MAX; i++)
        if (jobs[i] == job) {
            jobs[i] = NULL;
            job_count--;
        }
}

int copy_pool_begin(struct copy_pool_job *job, bool helped)
{
    sigset_t signals;
    pthread_cond_init(&job->news, NULL);
    job->helpers = 0;
    if (helped) {
        signals_but_faults(&signals);
        pthread_sigmask(SIG_BLOCK, &signals, &job->before);
        pthread_mutex_lock(&lock);
        start_threads();
        if (threads > 0 && add_job(job))
            job->helpers = threads;
        pthread_mutex_unlock(&lock);
        if (job->helpers == 0)
            pthread_sigmask(SIG_SETMASK, &job->before, NULL);
    }
    return job->helpers;
}

int copy_pool_allowed(void)
{
    pthread_mutex_lock(&lock);
    const int most = look_allowed();
    pthread_mutex_unlock(&lock);
    return most;
}

/* Calls threads that sleep, as far as those that are awake are too few, or have other jobs. */
static void call_threads(const struct copy_pool_job *job)
{
    const int awake = job_count == 1 ? looking : 0;
    int called = 0;
    pthread_mutex_lock(&lock);
    const int left = left_to_allow(), most = idle < left ? idle : left;
    for (; calls < most && calls + awake < job->open - job->claimed; called++)
        calls++;
    pthread_mutex_unlock(&lock);
    for (int i = 0; i < called && i < WOKEN_BY_ONE; i++)
        pthread_cond_signal(&calls_come);
}

void copy_pool_open(struct copy_pool_job *job, int64_t open)
{
    atomic_store(&job->open, open);
    if (job->helpers > 0 && idle > 0)
        call_threads(job);
}

bool copy_pool_help(struct copy_pool_job *job)
{
    const int64_t number = claim(job);
    if (number >= 0)
        do_task(job, number);
    return number >= 0;
}

/* Looks for a moment whether the first `done` tasks are done. */
static bool look_for(struct copy_pool_job *job, int64_t done, double ms)
{
    const double until = accel_now_ms() + ms;
    while (copy_pool_done(job) < done) {
        if (accel_now_ms() >= until)
            return false;
        for (int i = 0; i < 16; i++)
            pause_a_moment();
    }
    return true;
}

void copy_pool_finish(struct copy_pool_job *job, int64_t done)
{
    while (copy_pool_done(job) < done && copy_pool_help(job))
        continue;
    if (look_for(job, done, AWAKE_MS))
        return;
    pthread_mutex_lock(&lock);
    atomic_store(&job->waiting, true);
    while (copy_pool_done(job) < done)
        pthread_cond_wait(&job->news, &lock);
    atomic_store(&job->waiting, false);
    pthread_mutex_unlock(&lock);
}

/* Returns whether many threads help each job now. They may have ended since the job began. */
static bool many_help(void)
{
    const int by_cpus = cpus - job_count, may = threads < allowed ? threads : allowed;
    return (may < by_cpus ? may : by_cpus) >= ENOUGH * job_count;
}

void copy_pool_attend(struct copy_pool_job *job, int64_t done)
{
    if (job->helpers > 0 && many_help()) {
        const double begun = accel_now_ms();
        if (look_for(job, done, LOOK_MS)) {
            job->looked_ms = 0;
            return;
        }
        if (job->looked_ms == 0)
            job->looked_ms = begun;
        /* While all of them sleep, there is nothing better to do. */
        if (begun - job->looked_ms < IN_VAIN_MS && atomic_load(&job->claimed) > job->done)
            return;
    }
    if (!copy_pool_help(job))
        copy_pool_finish(job, done);
    job->looked_ms = 0;
}

static void await_workers(struct copy_pool_job *job)
{
    enders++;
    pthread_mutex_lock(&lock);
    while (job->workers > 0)
        pthread_cond_wait(&workers_leave, &lock);
    pthread_mutex_unlock(&lock);
    enders--;
}

void copy_pool_end(struct copy_pool_job *job)
{
    if (job->helpers > 0) {
        atomic_store(&job->open, -1);
        pthread_mutex_lock(&lock);
        remove_job(job);
        pthread_mutex_unlock(&lock);
        for (const double until = accel_now_ms() + AWAKE_MS;
             job->workers > 0 && accel_now_ms() < until;)
            pause_a_moment();
        if (job->workers > 0)
            await_workers(job);
        pthread_sigmask(SIG_SETMASK, &job->before, NULL);
    }
    pthread_cond_destroy(&job->news);
}

/* ---- Forks ---- */

/* The child of a fork has none of the threads, and none of the jobs' callers: a thread that forks
 * has no job. */
static void forget_all(void)
{
    made = false;
    workers_leave = (pthread_cond_t)PTHREAD_COND_INITIALIZER;
    for (int i = 0; i < JOBS_MAX; i++)
        jobs[i] = NULL;
    calls = 0;
    job_count = 0;
    threads = 0;
    allowed = 0;
    idle = 0;
    busy = 0;
    looking = 0;
    enders = 0;
    not_before = 0;
    helper_limit = (struct helper_limit){.most = 0};
}
FORKS_CHILD(forget_all);

void copy_pool_do(struct copy_pool_job *job, int64_t tasks, bool helped)
{
    copy_pool_begin(job, helped);
    for (int64_t done = 0; done < tasks; done = copy_pool_done(job)) {
        copy_pool_open(job, tasks - done < COPY_POOL_TASKS ? tasks : done + COPY_POOL_TASKS);
        copy_pool_finish(job, done + 1);
    }
    copy_pool_end(job);
}
