/*
 * Looks at floating-point numbers on their way to the device, for those that LAPACK treats in its
 * own way.
 */
#ifndef ACCEL_SCAN_H
#define ACCEL_SCAN_H

#include <stdbool.h>
#include <stdint.h>

struct gpu_scan {
    bool is_double;
    bool finite;    /* no NaN and no infinity so far; begins true */
    double largest; /* the largest magnitude of finite numbers so far; begins 0 */
};

/* Looks at `bytes` bytes of float or double numbers, a complex one being two; aligned as their
 * type. */
void gpu_scan_numbers(struct gpu_scan *scan, const void *numbers, int64_t bytes);

/* Returns a scan that has seen nothing, and adds to one what another has seen. */
static inline struct gpu_scan gpu_scan_begin(bool is_double)
{
    return (struct gpu_scan){is_double, true, 0};
}
static inline void gpu_scan_add(struct gpu_scan *scan, const struct gpu_scan *other)
{
    scan->finite = scan->finite && other->finite;
    scan->largest = other->largest > scan->largest ? other->largest : scan->largest;
}

#endif
