#define _GNU_SOURCE
#include "quiet_thread.h"

#include <pthread.h>
#include <signal.h>

bool quiet_thread(void *(*run)(void *context), void *context, size_t stack_bytes)
{
    pthread_attr_t attributes;
    pthread_t thread;
    sigset_t all, before;
    if (pthread_attr_init(&attributes) != 0)
        return false;
    if (stack_bytes)
        pthread_attr_setstacksize(&attributes, stack_bytes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    bool made = pthread_create(&thread, &attributes, run, context) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    return made;
}

void quiet_thread_begin(const char *name)
{
    int before;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
    pthread_setname_np(pthread_self(), name);
}
