/*
 * Whether a fork would wait for this thread's work with the dynamic linker (base/thread/linker.h).
 */
#ifndef FORK_WAITS_H
#define FORK_WAITS_H

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/thread/linker.h"

static bool is_asked_to_wait;

static inline bool note_wait(void)
{
    is_asked_to_wait = true;
    return false;
}

static inline void *begin_fork(void *unused)
{
    linker_before_fork(note_wait);
    linker_after_fork();
    return unused;
}

static inline bool fork_waits(void)
{
    pthread_t thread;
    is_asked_to_wait = false;
    if (pthread_create(&thread, NULL, begin_fork, NULL) != 0)
        abort();
    pthread_join(thread, NULL);
    return is_asked_to_wait;
}

#endif
