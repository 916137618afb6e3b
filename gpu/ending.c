#define _GNU_SOURCE
#include "ending.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "clock.h"

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

static void handle_exit(void *unused)
{
    (void)unused;
    begin();
}

/* A library's own handler. */
struct wrapped {
    void (*function)(void *);
    void *argument;
};

/* Where a thread is inside still, and CUDA hangs, the library is left as it is: the process's end frees all. */
static void run_wrapped(void *argument)
{
    struct wrapped *wrapped = argument;
    if ((closing && !ending_has_begun()) || begin())
        wrapped->function(wrapped->argument);
    free(wrapped);
}

int ending_register(ending_register_function *real, void (*function)(void *), void *argument,
                    void *object)
{
    struct wrapped *wrapped = depth > 0 && !closing ? malloc(sizeof *wrapped) : NULL;
    if (wrapped) {
        *wrapped = (struct wrapped){function, argument};
        int result = real(run_wrapped, wrapped, object);
        if (result != 0)
            free(wrapped);
        return result;
    }
    int result = real(function, argument, object);
    if (atomic_load_explicit(&watching, memory_order_relaxed))
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
