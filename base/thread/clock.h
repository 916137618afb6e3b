/*
 * The time.
 */
#ifndef ACCEL_CLOCK_H
#define ACCEL_CLOCK_H

#include <time.h>

/* Milliseconds of a clock that only goes forward. Thread-safe, and allowed in signal handlers. */
static inline double accel_now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

#endif
