#include "linker.h"

#include <errno.h>
#include <stdatomic.h>

#include "forks.h"
#include "clock.h"

/* Counts of threads. Sequentially consistent: if one thread enters while another forks, at least
 * one sees the other. */
static atomic_int inside, iterating, forking;
static atomic_bool forked;
static _Thread_local int depth __attribute__((tls_model("initial-exec")));
static _Thread_local int iterations __attribute__((tls_model("initial-exec")));

static void pause_shortly(void)
{
    const struct timespec pause = {0, 50000};
    nanosleep(&pause, NULL);
}

static void await_forks(void)
{
    int saved = errno;
    double until = accel_now_ms() + 1000;
    while (atomic_load(&forking) > 0 && accel_now_ms() < until) {
        atomic_fetch_sub(&inside, 1);
        pause_shortly();
        atomic_fetch_add(&inside, 1);
    }
    errno = saved;
}

void linker_enter(void)
{
    if (depth++ > 0)
        return;
    atomic_fetch_add(&inside, 1);
    if (atomic_load(&forking) > 0)
        await_forks();
}

static bool enter_now(void)
{
    if (depth++ > 0)
        return true;
    atomic_fetch_add(&inside, 1);
    bool free = atomic_load(&forking) == 0;
    if (!free)
        linker_leave();
    return free;
}

void linker_leave(void)
{
    if (--depth == 0)
        atomic_fetch_sub(&inside, 1);
}

static void begin_iteration(void)
{
    iterations++;
    atomic_fetch_add(&iterating, 1);
}

void linker_enter_iteration(void)
{
    linker_enter();
    begin_iteration();
}

bool linker_enter_iteration_now(void)
{
    if (!enter_now())
        return false;
    begin_iteration();
    return true;
}

void linker_leave_iteration(void)
{
    atomic_fetch_sub(&iterating, 1);
    iterations--;
    linker_leave();
}

void linker_await_forks(void)
{
    linker_enter();
    linker_leave();
}

void linker_before_fork(bool (*maps)(void))
{
    int own = depth > 0; /* this thread loads a library whose constructor forks */
    atomic_fetch_add(&forking, 1);
    atomic_store(&forked, true);
    if (atomic_load(&inside) <= own)
        return;
    int saved = errno;
    double start = accel_now_ms(), waited = 0;
    while (atomic_load(&inside) > own &&
           (waited < 10 || (waited < 1000 && (maps() || atomic_load(&iterating) > iterations)))) {
        pause_shortly();
        waited = accel_now_ms() - start;
    }
    errno = saved;
}

bool linker_has_forked(void)
{
    return atomic_load(&forked);
}

void linker_after_fork(void)
{
    atomic_fetch_sub(&forking, 1);
}

void linker_fork_child(void)
{
    atomic_store(&forking, 0);
    atomic_store(&inside, depth > 0);
    atomic_store(&iterating, iterations);
}
FORKS_CHILD(linker_fork_child);
