/*
 * A clock that the test sets, for programs that are linked with --wrap=clock_gettime: it stands
 * still until the test moves it.
 */
#ifndef ACCEL_TEST_OWN_CLOCK_H
#define ACCEL_TEST_OWN_CLOCK_H

#include <time.h>

static double now_ms = 1000; /* of every clock */

int __wrap_clock_gettime(clockid_t id, struct timespec *t);
int __wrap_clock_gettime(clockid_t id, struct timespec *t)
{
    (void)id;
    t->tv_sec = (time_t)(now_ms / 1000);
    t->tv_nsec = (long)((now_ms - 1e3 * (double)t->tv_sec) * 1e6);
    return 0;
}

#endif
