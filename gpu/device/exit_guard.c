#define _GNU_SOURCE
#include "exit_guard.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/thread/clock.h"
#include "base/thread/forks.h"

/* Sequentially consistent: if one thread enters while another ends the process, one of the two sees
 * the other. */
static atomic_int inside, held;
static atomic_bool begun, late; /* late: a thread has waited in vain */
static atomic_bool watching;
static _Atomic pid_t process; /* the one that watches */
static _Thread_local int depth __attribute__((tls_model("initial-exec")));
static _Thread_local int holds __attribute__((tls_model("initial-exec")));
static _Thread_local int closing __attribute__((tls_model("initial-exec")));

bool exit_guard_enter(void)
{
    if (depth == 0) {
        atomic_fetch_add(&inside, 1);
        if (atomic_load(&begun)) {
            atomic_fetch_sub(&inside, 1);
            return false;
        }
    }
    depth++;
    return true;
}

void exit_guard_leave(void)
{
    if (--depth == 0)
        atomic_fetch_sub(&inside, 1);
}

/* Also the end of a thread that ends within a call (pthread_cancel(3)). */
static void let_go(void *unused)
{
    (void)unused;
    if (holds > 0)
        atomic_fetch_sub(&held, 1);
    holds = 0;
}

static pthread_key_t thread_end;
static bool thread_end_there;

static void make_thread_end(void)
{
    thread_end_there = pthread_key_create(&thread_end, let_go) == 0;
}

static void watch_thread(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    static _Thread_local bool watched __attribute__((tls_model("initial-exec")));
    if (watched)
        return;
    watched = true;
    pthread_once(&once, make_thread_end);
    if (thread_end_there)
        pthread_setspecific(thread_end, &held);
}

void exit_guard_hold(bool outermost)
{
    if (!atomic_load_explicit(&watching, memory_order_relaxed)) /* each call comes here */
        exit_guard_watch();
    watch_thread();
    if (outermost) /* the program has left the call that held, by longjmp(3), if any does */
        let_go(NULL);
    if (holds++ == 0)
        atomic_fetch_add(&held, 1);
}

void exit_guard_release(void)
{
    if (holds > 0 && --holds == 0)
        atomic_fetch_sub(&held, 1);
}

bool exit_guard_has_begun(void)
{
    return atomic_load(&begun);
}

/* Waits until the other threads have left, and hold no call. Returns whether nobody is inside, this
 * thread included: it may be in a signal handler that calls exit(). A child of _Fork() or clone()
 * does not wait: it has no other threads, and exit_guard_fork_child() has not run in it. */
static bool begin_exit(void)
{
    const struct timespec pause = {0, 50000};
    int saved = errno, own = depth > 0, own_held = holds > 0;
    if (getpid() != atomic_load(&process))
        return false;
    atomic_store(&begun, true);
    double until = accel_now_ms() + ENDING_MS;
    while ((atomic_load(&inside) > own || atomic_load(&held) > own_held) && !atomic_load(&late)) {
        nanosleep(&pause, NULL);
        if (accel_now_ms() > until)
            atomic_store(&late, true);
    }
    errno = saved;
    return atomic_load(&inside) == 0;
}

/* A handler that waits first. of_cuda: it belongs to a library that a thread may be inside. */
struct wrapped {
    void (*function)(void *);
    void *argument;
    bool of_cuda;
};

/* Waits if the process ends, and not if a library is only closed. Returns whether nobody is
 * inside. */
static bool await_others(void)
{
    return (closing && !exit_guard_has_begun()) || begin_exit();
}

/* If a thread is still inside, because CUDA hangs, leaves CUDA's library as it is: the process's
 * end frees all. */
static void run_wrapped(void *argument)
{
    struct wrapped *wrapped = argument;
    if (await_others() || !wrapped->of_cuda)
        wrapped->function(wrapped->argument);
    free(wrapped);
}

/* Runs a handler of the program's that has no argument: atexit(3) gives none. */
static void run_plain(void *function)
{
    void (*plain)(void *);
    memcpy(&plain, &function, sizeof plain);
    await_others();
    plain(NULL);
}

static void handle_exit(void *unused)
{
    (void)unused;
    begin_exit();
}

int exit_guard_register(exit_guard_register_function *real, void (*function)(void *),
                        void *argument, void *object)
{
    const bool of_cuda = depth > 0 && !closing;
    if (!of_cuda && !atomic_load_explicit(&watching, memory_order_relaxed))
        return real(function, argument, object);
    if (!of_cuda && !argument) {
        void *plain;
        memcpy(&plain, &function, sizeof plain);
        return real(run_plain, plain, object);
    }
    struct wrapped *wrapped = malloc(sizeof *wrapped);
    if (wrapped) {
        *wrapped = (struct wrapped){function, argument, of_cuda};
        int result = real(run_wrapped, wrapped, object);
        if (result != 0)
            free(wrapped);
        return result;
    }
    int result = real(function, argument, object);
    real(handle_exit, NULL, NULL);
    return result;
}

static void wait_at_exit(void)
{
    begin_exit();
}

void exit_guard_watch(void)
{
    atomic_store(&process, getpid());
    if (!atomic_exchange(&watching, true))
        atexit(wait_at_exit);
}

void exit_guard_before_close(void)
{
    closing++;
}

void exit_guard_after_close(void)
{
    closing--;
}

void exit_guard_fork_child(void)
{
    if (!atomic_load(&watching) && !atomic_load(&inside) && !atomic_load(&held))
        return; /* its page stays untouched */
    atomic_store(&inside, depth > 0);
    atomic_store(&held, holds > 0);
    atomic_store(&process, getpid());
}
FORKS_CHILD(exit_guard_fork_child);
