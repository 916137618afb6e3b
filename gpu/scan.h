/*
 * A look at floating-point numbers on their way to the device: whether LAPACK would see something that it treats in its
 * own way.
 */
#ifndef ACCEL_SCAN_H
#define ACCEL_SCAN_H

#include <stdbool.h>
#include <stdint.h>

struct gpu_scan {
    bool is_double;
    bool finite;    /* no NaN and no infinity so far; to be set before */
    double largest; /* magnitude so far, of those that are finite */
};

/* Looks at `bytes` bytes of float or double numbers, complex ones as two; aligned as numbers of their type. */
void gpu_scan_numbers(struct gpu_scan *scan, const void *numbers, int64_t bytes);

#endif
