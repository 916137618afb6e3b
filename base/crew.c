#define _GNU_SOURCE
#include "crew.h"

#include <errno.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"
#include "forks.h"
#include "give_way.h"
#include "held_signals.h"
#include "quiet_thread.h"

/* A thread that has had nothing to do for so long ends. After a thread could not be started, the next try is as much later. */
#define IDLE_S 1

/* Jobs that threads help at once; further ones are not helped. */
enum { JOBS_MAX = 16 };

enum { STACK_BYTES = 256 << 10 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
FORKS_LOCK(lock);
static pthread_cond_t calls_come = PTHREAD_COND_INITIALIZER;
static struct crew_job *jobs[JOBS_MAX]; /* NULL: no job */
static int job_count, turn;
/* Threads: all; those without work; calls for them that they have not seen yet; those at work. */
static int threads, idle, calls, busy;
static atomic_int cpus;   /* that the process may use, when the threads started; 0: not known yet */
static double not_before; /* in milliseconds of the clock: when to start threads again */
static atomic_int processes = 1;
static struct give_way give_way;

/* An affinity mask with room for more than the 1024 CPUs of one cpu_set_t. */
typedef cpu_set_t cpu_mask[8];

static cpu_mask mask; /* of the threads */

void crew_share(int with)
{
    atomic_store(&processes, with);
}

/* A job that nobody helps is its caller's alone and takes no lock: else small copies of many threads would wait for each other. */
static void lock_job(const struct crew_job *job)
{
    if (job->helped)
        pthread_mutex_lock(&lock);
}

static void unlock_job(const struct crew_job *job)
{
    if (job->helped)
        pthread_mutex_unlock(&lock);
}

/* ---- Items, with the job's lock ---- */

/* Releases the lock while it does the item. Adds the time that this takes to *ms, unless that is NULL. */
static void do_item(struct crew_job *job, double *ms)
{
    int64_t number = job->claimed++;
    unlock_job(job);
    const double begun = ms ? accel_now_ms() : 0;
    job->item(job->context, number);
    if (ms)
        *ms += accel_now_ms() - begun;
    lock_job(job);
    job->finished[number % CREW_ITEMS] = true;
    while (job->done < job->claimed && job->finished[job->done % CREW_ITEMS])
        job->finished[job->done++ % CREW_ITEMS] = false;
    if (job->done >= job->wanted)
        pthread_cond_signal(&job->news);
}

/* Returns how many more threads may be at work now. */
static int left_to_allow(void)
{
    const int allowed = give_way_allowed(&give_way, accel_now_ms());
    return allowed > busy ? allowed - busy : 0;
}

/* Returns a job with an item for one more thread, or NULL. */
static struct crew_job *next_job(void)
{
    if (job_count == 0 || busy + job_count >= cpus || left_to_allow() == 0)
        return NULL;
    for (int i = 0; i < JOBS_MAX; i++) {
        struct crew_job *job = jobs[(turn + i) % JOBS_MAX];
        if (job && job->claimed < job->open) {
            turn = (turn + i + 1) % JOBS_MAX;
            return job;
        }
    }
    return NULL;
}

/* ---- The threads ---- */

/* With the lock, which it releases meanwhile. Returns whether a call has come. */
static bool wait_for_call(void)
{
    struct timespec until;
    int result = 0;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += IDLE_S;
    idle++;
    while (calls == 0 && result == 0)
        result = pthread_cond_timedwait(&calls_come, &lock, &until);
    idle--;
    if (calls == 0)
        return false;
    calls--;
    return true;
}

/* What a thread has done since it gave its last sample, and what the kernel says of it until then. */
struct done {
    double wall_ms, cpu_ms;
    long preempted;
};

/* Returns false on a failure. Of the two, the clock alone counts up to now; the other is as old as the kernel's last tick. */
static bool read_kernel(struct done *done)
{
    struct timespec cpu;
    struct rusage usage;
    if (clock_gettime(CLOCK_THREAD_CPUTIME_ID, &cpu) != 0 || getrusage(RUSAGE_THREAD, &usage) != 0)
        return false;
    done->cpu_ms = (double)cpu.tv_sec * 1e3 + (double)cpu.tv_nsec * 1e-6;
    done->preempted = usage.ru_nivcsw;
    return true;
}

/* With the lock. Where the kernel says nothing, all threads help. */
static void give_sample(struct done *done)
{
    struct done now = {.wall_ms = 0};
    if (read_kernel(&now)) {
        const struct give_way_sample sample = {done->wall_ms, now.cpu_ms - done->cpu_ms,
                                               now.preempted - done->preempted};
        give_way_add(&give_way, &sample, accel_now_ms());
    }
    *done = now;
}

static void *run_thread(void *unused)
{
    struct done done = {.wall_ms = 0};
    sigset_t signals;
    int none;
    (void)unused;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &none);
    pthread_setname_np(pthread_self(), "accel-copy");
    signals_but_faults(&signals);
    pthread_sigmask(SIG_SETMASK, &signals, NULL);
    read_kernel(&done);
    pthread_mutex_lock(&lock);
    sched_setaffinity(0, sizeof mask, mask);
    do {
        for (struct crew_job *job; (job = next_job()) != NULL;) {
            busy++;
            do_item(job, &done.wall_ms);
            busy--;
            if (done.wall_ms >= GIVE_WAY_SAMPLE_MS)
                give_sample(&done);
        }
    } while (wait_for_call());
    threads--;
    pthread_mutex_unlock(&lock);
    return NULL;
}

/* Reads the CPUs that the process may use: those of the calling thread and those of the first thread. OpenMP may have bound each of
 * the two to one CPU. */
static void read_cpus(void)
{
    const int sharers = atomic_load(&processes);
    cpu_mask first;
    CPU_ZERO_S(sizeof mask, mask);
    CPU_ZERO_S(sizeof first, first);
    sched_getaffinity(0, sizeof mask, mask);
    sched_getaffinity(getpid(), sizeof first, first);
    CPU_OR_S(sizeof mask, mask, mask, first);
    int usable = CPU_COUNT_S(sizeof mask, mask);
    if (sharers > 1 && usable > sysconf(_SC_NPROCESSORS_ONLN) / sharers)
        usable = (int)sysconf(_SC_NPROCESSORS_ONLN) / sharers;
    cpus = usable;
}

/* Starts the threads that are missing. */
static void start_threads(void)
{
    const double now = accel_now_ms();
    if (threads == CREW_MOST || now < not_before)
        return;
    not_before = now + IDLE_S * 1e3;
    if (threads == 0) {
        read_cpus();
        const int most = cpus - 1 < CREW_MOST ? cpus - 1 : CREW_MOST;
        if (give_way.most != most)
            give_way_start(&give_way, most);
    }
    while (threads < CREW_MOST && threads < cpus - 1 && quiet_thread(run_thread, NULL, STACK_BYTES))
        threads++;
}

int crew_size(void)
{
    if (cpus == 0) {
        pthread_mutex_lock(&lock);
        if (cpus == 0)
            read_cpus();
        pthread_mutex_unlock(&lock);
    }
    const int most = cpus - 1;
    return most < 0 ? 0 : most < CREW_MOST ? most : CREW_MOST;
}

/* ---- Jobs ---- */

/* Returns whether there was a place. */
static bool add_job(struct crew_job *job)
{
    for (int i = 0; i < JOBS_MAX; i++)
        if (!jobs[i]) {
            jobs[i] = job;
            job_count++;
            return true;
        }
    return false;
}

static void remove_job(const struct crew_job *job)
{
    for (int i = 0; i < JOBS_MAX; i++)
        if (jobs[i] == job) {
            jobs[i] = NULL;
            job_count--;
        }
}

int crew_begin(struct crew_job *job, bool helped)
{
    sigset_t signals;
    int helpers = 0;
    pthread_cond_init(&job->news, NULL);
    if (helped) {
        signals_but_faults(&signals);
        pthread_sigmask(SIG_BLOCK, &signals, &job->before);
        pthread_mutex_lock(&lock);
        start_threads();
        if (threads > 0 && add_job(job)) {
            job->helped = true;
            helpers = threads;
        }
        pthread_mutex_unlock(&lock);
        if (!job->helped)
            pthread_sigmask(SIG_SETMASK, &job->before, NULL);
    }
    return helpers;
}

/* Returns how many threads that wait for work may begin some. */
static int ready(void)
{
    const int allowed = left_to_allow();
    return idle < allowed ? idle : allowed;
}

int crew_allowed(void)
{
    pthread_mutex_lock(&lock);
    const int allowed = give_way_allowed(&give_way, accel_now_ms());
    pthread_mutex_unlock(&lock);
    return allowed;
}

/* With the lock. Returns how many threads the caller is to wake. */
static int call_threads(const struct crew_job *job)
{
    const int most = ready();
    int called = 0;
    for (; calls < most && calls < job->open - job->claimed; called++)
        calls++;
    return called;
}

void crew_open(struct crew_job *job, int64_t open)
{
    lock_job(job);
    job->open = open;
    int called = job->helped ? call_threads(job) : 0;
    unlock_job(job);
    while (called-- > 0)
        pthread_cond_signal(&calls_come);
}

int64_t crew_done(struct crew_job *job)
{
    lock_job(job);
    int64_t done = job->done;
    unlock_job(job);
    return done;
}

bool crew_is_behind(struct crew_job *job)
{
    lock_job(job);
    bool behind = job->open - job->claimed > (job->helped ? ready() : 0);
    unlock_job(job);
    return behind;
}

bool crew_help(struct crew_job *job)
{
    lock_job(job);
    bool is_open = job->claimed < job->open;
    if (is_open)
        do_item(job, NULL);
    unlock_job(job);
    return is_open;
}

/* With the job's lock. */
static void finish(struct crew_job *job, int64_t done)
{
    while (job->done < done && job->claimed < job->open)
        do_item(job, NULL);
    job->wanted = done;
    while (job->done < done)
        pthread_cond_wait(&job->news, &lock);
}

void crew_finish(struct crew_job *job, int64_t done)
{
    lock_job(job);
    finish(job, done);
    unlock_job(job);
}

void crew_end(struct crew_job *job)
{
    if (job->helped) {
        pthread_mutex_lock(&lock);
        job->open = job->claimed;
        finish(job, job->open);
        remove_job(job);
        pthread_mutex_unlock(&lock);
        pthread_sigmask(SIG_SETMASK, &job->before, NULL);
    }
    pthread_cond_destroy(&job->news);
}

/* ---- Forks ---- */

/* The child of a fork has none of the threads, and none of the jobs' callers: a thread that forks has no job. */
static void forget_all(void)
{
    pthread_cond_init(&calls_come, NULL);
    for (int i = 0; i < JOBS_MAX; i++)
        jobs[i] = NULL;
    job_count = threads = idle = calls = busy = 0;
    not_before = 0;
    give_way = (struct give_way){.most = 0};
}
FORKS_CHILD(forget_all);

void crew_do(struct crew_job *job, int64_t items, bool helped)
{
    crew_begin(job, helped);
    for (int64_t done = 0; done < items; done = crew_done(job)) {
        crew_open(job, items - done < CREW_ITEMS ? items : done + CREW_ITEMS);
        crew_finish(job, done + 1);
    }
    crew_end(job);
}
