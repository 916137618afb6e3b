#define _GNU_SOURCE
#include "monotonic_wait.h"

#include <errno.h>
#include <stdint.h>

#include "clock.h"

void monotonic_condition(pthread_cond_t *condition)
{
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(condition, &attributes);
    pthread_condattr_destroy(&attributes);
}

struct timespec monotonic_deadline(double ms)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    const int64_t ns = until.tv_nsec + (int64_t)(ms * 1e6);
    until.tv_sec += ns / 1000000000;
    until.tv_nsec = ns % 1000000000;
    return until;
}

/* pthread_mutex_timedlock(3) goes by the clock that can be set, and pthread_mutex_clocklock(3) is
 * newer than what OLD_GLIBC=1 may ask for. */
bool monotonic_timed_lock(pthread_mutex_t *lock, double most_ms)
{
    const double begun = accel_now_ms();
    const int saved = errno;
    int error;
    while ((error = pthread_mutex_trylock(lock)) == EBUSY) {
        const double waited = accel_now_ms() - begun;
        if (!(waited < most_ms))
            break;
        const double pause_ms = waited < 0.8 ? 0.05 : waited < 32 ? waited / 16 : 2;
        nanosleep(&(struct timespec){.tv_nsec = (long)(pause_ms * 1e6)}, NULL);
    }
    errno = saved;
    return error == 0;
}
