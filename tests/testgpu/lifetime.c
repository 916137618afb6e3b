/* The library's start, its end, and forks. */
#include <stdlib.h>
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
    testgpu_lock();
    if (!driver.exiting) {
        driver.exiting = true;
        progress_made();
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
}

__attribute__((destructor)) static void end_as_library(void)
{
    end();
}
