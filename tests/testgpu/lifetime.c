/* The library's start, its end, and forks. */
#include <stdlib.h>
#include <unistd.h>
#include "driver.h"

struct driver driver = {.lock = PTHREAD_MUTEX_INITIALIZER, .progress = PTHREAD_COND_INITIALIZER};

void testgpu_lock(void)
{
    pthread_mutex_lock(&driver.lock);
}

void testgpu_unlock(void)
{
    pthread_mutex_unlock(&driver.lock);
}

struct testgpu_life driver_life = {.name = "libcuda"};
static _Thread_local struct testgpu_life *current; /* what this thread is inside */

bool life_enter(struct testgpu_life *life)
{
    atomic_fetch_add(&life->inside, 1);
    current = life;
    return !atomic_load(&life->ended);
}

void life_leave(struct testgpu_life *life)
{
    atomic_fetch_sub(&life->inside, 1);
    current = NULL;
}

/* In the thread that calls exit(), which may be in a signal handler. */
static void life_end(void *argument)
{
    struct testgpu_life *life = argument;
    if (getpid() != life->process)
        return; /* the threads were the parent's */
    if (atomic_load(&life->inside) > (current == life))
        testgpu_fault("exit_while_called", "%s: a thread is inside at exit", life->name);
    if (atomic_load(&life->loading) && !pthread_equal(life->loader, pthread_self()))
        testgpu_fault("exit_while_loading", "%s: a thread loads it at exit", life->name);
    atomic_store(&life->ended, true);
}

/* As the real libraries' handlers: they belong to the library (Itanium C++ ABI, 3.3.6.3). */
int __cxa_atexit(void (*function)(void *), void *argument, void *object);
extern void *__dso_handle __attribute__((visibility("hidden")));

void testgpu_load(struct testgpu_life *life)
{
    life->process = getpid();
    life->loader = pthread_self();
    atomic_store(&life->loading, true);
    if (__cxa_atexit(life_end, life, &__dso_handle) != 0)
        abort();
    pause_ms(settings.load_ms);
    atomic_store(&life->loading, false);
}

static void before_fork(void)
{
    testgpu_lock();
    fault_locks(true);
}

static void after_fork_in_parent(void)
{
    fault_locks(false);
    testgpu_unlock();
}

/* The child has no stream threads and no device: what the parent counted is the parent's. */
static void after_fork_in_child(void)
{
    fault_locks(false);
    pthread_cond_init(&driver.progress, NULL);
    streams_forked();
    driver.kernels = 0;
    if (driver.initialised) {
        driver.forked = true;
        faults_forget();
        report_forget();
    }
    testgpu_unlock();
}

/* Stream threads may still be busy; they stop at their next look at `exiting`. */
static void end(void)
{
    life_end(&driver_life);
    testgpu_lock();
    if (!driver.exiting) {
        driver.exiting = true;
        progress_made();
        streams_wake();
        report_write();
    }
    testgpu_unlock();
}

void testgpu_end_kernels(void)
{
    testgpu_lock();
    driver.no_kernels = true;
    while (driver.kernels > 0)
        progress_await();
    testgpu_unlock();
}

/* A driver that is gone before the destructors of libraries loaded earlier begin. */
void end_at_exit(void)
{
    if (settings.early_end && atexit(end) != 0)
        abort();
}

__attribute__((constructor)) static void begin(void)
{
    settings_read();
    injections_read();
    pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
    testgpu_load(&driver_life);
}

__attribute__((destructor)) static void end_as_library(void)
{
    end();
}
