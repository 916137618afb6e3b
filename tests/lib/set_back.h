/*
 * For programs that are linked with --wrap=clock_gettime.
 */
#ifndef ACCEL_TEST_SET_BACK_H
#define ACCEL_TEST_SET_BACK_H

#include <stdatomic.h>

/* From here on, whoever reads the clock that can be set (CLOCK_REALTIME) finds it an hour later
 * than whoever waits by it: as if it were put back by an hour in between, each time. */
extern atomic_bool clock_is_set_back;

#endif
