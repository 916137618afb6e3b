/*
 * Waits that have an end, by the clock of accel_now_ms(). The other clock, which waits of POSIX go
 * by unless they are told otherwise, can be set: when it is put back by an hour (NTP, a virtual
 * machine that is restored), whoever waits by it waits an hour longer.
 */
#ifndef ACCEL_MONOTONIC_WAIT_H
#define ACCEL_MONOTONIC_WAIT_H

#include <pthread.h>
#include <stdbool.h>
#include <time.h>

/* Makes a condition whose timed waits go by that clock: of one that nobody waits for.
 * PTHREAD_COND_INITIALIZER goes by the other one. */
void monotonic_condition(pthread_cond_t *condition);

/* Returns the time in so many milliseconds from now, for pthread_cond_timedwait(3) with such a
 * condition. */
struct timespec monotonic_deadline(double ms);

/* Locks, or returns false after so many milliseconds. Looks again and again, more rarely the longer
 * it waits: the lock is had some 2 ms after it is free at the latest, but by no order among those
 * who wait. Keeps errno. */
bool monotonic_timed_lock(pthread_mutex_t *lock, double most_ms);

#endif
