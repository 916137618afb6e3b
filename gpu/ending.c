#define _GNU_SOURCE
#include "ending.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/forks.h"
#include "base/clock.h"

/* Sequentially consistent: of a thread that enters and one that ends the process, one sees the other. */
static atomic_int inside;
static atomic_bool begun, late; /* late: somebody has waited in vain */
static atomic_bool watching;
static _Atomic pid_t process; /* that watches */
static _Thread_local int depth __attribute__((tls_model("initial-exec")));
static _Thread_local int closing __attribute__((tls_model("initial-exec")));

bool ending_enter(void)
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

void ending_leave(void)
{
    if (--depth == 0)
        atomic_fetch_sub(&inside, 1);
}

bool ending_has_begun(void)
{
    return atomic_load(&begun);
}

/* Returns whether nobody is inside, this thread included: it may be in a signal handler that calls exit(). A child of _Fork() or
 * clone() has none of the other threads, and has not been told. */
static bool begin(void)
{
    const struct timespec pause = {0, 50000};
    int saved = errno, own = depth > 0;
    if (getpid() != atomic_load(&process))
        return false;
    atomic_store(&begun, true);
    double until = accel_now_ms() + ENDING_MS;
    while (atomic_load(&inside) > own && !atomic_load(&late)) {
        nanosleep(&pause, NULL);
        if (accel_now_ms() > until)
            atomic_store(&late, true);
    }
    errno = saved;
    return atomic_load(&inside) == 0;
}

/* A handler that waits first. `of_cuda`: it is of a library that a thread may be inside. */
struct wrapped {
    void (*function)(void *);
    void *argument;
    bool of_cuda;
};

/* At the process's end, waits; whether nobody is inside. A dlclose() is no end. */
static bool await_others(void)
{
    return (closing && !ending_has_begun()) || begin();
}

/* Where a thread is inside still, and CUDA hangs, its library is left as it is: the process's end frees all. */
static void run_wrapped(void *argument)
{
    struct wrapped *wrapped = argument;
    if (await_others() || !wrapped->of_cuda)
        wrapped->function(wrapped->argument);
    free(wrapped);
}

/* One of the program's, without an argument: atexit(3) gives none. */
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
    begin();
}

int ending_register(ending_register_function *real, void (*function)(void *), void *argument,
                    void *object)
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

static void end(void)
{
    begin();
}

void ending_watch(void)
{
    atomic_store(&process, getpid());
    if (!atomic_exchange(&watching, true))
        atexit(end);
}

void ending_before_close(void)
{
    closing++;
}

void ending_after_close(void)
{
    closing--;
}

void ending_fork_child(void)
{
    atomic_store(&inside, depth > 0);
    atomic_store(&process, getpid());
}
FORKS_CHILD(ending_fork_child);
