#ifndef ACCEL_BENCH_CALL_DGEMM_H
#define ACCEL_BENCH_CALL_DGEMM_H

#include <stdbool.h>
#include <stddef.h>

/* Nanoseconds per call of an m x n x k product with tight leading dimensions. */
double call_dgemm(long calls, bool cblas, int m, int n, int k, const double *a, const double *b,
                  double *c);

#endif
