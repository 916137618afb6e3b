/*
 * A short measurement of a CPU library, while the program runs.
 */
#ifndef ACCEL_PROBE_H
#define ACCEL_PROBE_H

#include "cpu_library.h"

/* Times products in double precision, for some milliseconds. Returns 10^9 operations a second, 0 if
 * the library has no products or there is no memory. Thread-safe. */
double probe_gflops(const struct dispatch_library *library, int threads);

#endif
