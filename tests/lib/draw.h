/*
 * Numbers for comparisons with plain versions: drawn ones, the same each time, and what counts as
 * equal. For one unit test program each.
 */
#ifndef ACCEL_TEST_DRAW_H
#define ACCEL_TEST_DRAW_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

static unsigned random_state = 1;

/* Returns a number from 0 to n - 1. */
static inline int64_t below(int64_t n)
{
    random_state = random_state * 1664525 + 1013904223;
    return (random_state >> 8) % (unsigned)n;
}

static inline bool is_about(double x, double expected)
{
    return fabs(x - expected) <= 1e-9 * fabs(expected) + 1e-12;
}

static inline double larger(double a, double b)
{
    return a > b ? a : b;
}

#endif
