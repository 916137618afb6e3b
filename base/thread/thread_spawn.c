#define _GNU_SOURCE
#include "thread_spawn.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>

#include "forks.h"

/* The program's default may be less than CUDA needs (ulimit -s, pthread_setattr_default_np()).
 * glibc takes the thread-local variables of all libraries from a thread's stack, too, and refuses
 * one that they do not leave any of: then a larger one is tried. Untouched, it costs addresses
 * alone. */
enum { STACK_LEAST = 2 << 20, STACK_MOST = 64 << 20 };

bool thread_spawn(void *(*run)(void *context), void *context, size_t stack_bytes)
{
    pthread_attr_t attributes;
    pthread_t thread;
    sigset_t all, before;
    if (forks_memory_is_shared() || pthread_attr_init(&attributes) != 0)
        return false;
    if (!stack_bytes && pthread_attr_getstacksize(&attributes, &stack_bytes) == 0 &&
        stack_bytes < STACK_LEAST)
        stack_bytes = STACK_LEAST;
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error;
    do {
        pthread_attr_setstacksize(&attributes, stack_bytes);
        error = pthread_create(&thread, &attributes, run, context);
        stack_bytes *= 2;
    } while (error == EINVAL && stack_bytes <= STACK_MOST);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    return error == 0;
}

void thread_spawn_begin(const char *name)
{
    int before;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
    pthread_setname_np(pthread_self(), name);
}
