/*
 * How fast a device multiplies blocks of some numbers of rows, beside others: one after the other without a pause, as a schedule's blocks are. A large kernel's
 * size alone does not tell: on an H100 (cuBLAS 13.1, double precision) blocks of 1536, 2304, 3072 and 5632 rows reach 50 to 56 Tflop/s, of 2752, 2816 and 4096 rows 45 to 52
 * (docs/measurements).
 */
#ifndef ACCEL_BLOCK_PACES_H
#define ACCEL_BLOCK_PACES_H

#include <stdbool.h>
#include <stdint.h>

/* Measured are the multiples of PACE_STEP from PACE_LEAST to PACE_MOST, with PACE_COLS columns and as much depth. */
enum {
    PACE_STEP = 128,
    PACE_LEAST = 640,
    PACE_MOST = 4096,
    PACES = (PACE_MOST - PACE_LEAST) / PACE_STEP + 1,
    PACE_COLS = 2048,
    PACE_USUAL = 3200
};

/* Paces are kept within these. */
#define PACE_SLOWEST 0.5
#define PACE_FASTEST 2.0

/* The pace of each size over that of PACE_USUAL rows, by which the rate of products is calibrated; all 0: not measured. */
struct block_paces {
    float of[PACES];
};

/* Returns the pace of blocks of so many rows: that of the next size that was measured, of more rows than all that of the largest; 1 if that was not measured. */
double block_pace(const struct block_paces *x, int64_t rows);

/* Returns the highest one, or 1 if that is higher. */
double block_pace_highest(const struct block_paces *x);

/* Sets the paces by the milliseconds that one product of each size took. What small products lack to the full rate, which schedules know (half: schedule_rates), does not
 * count. Returns false, and sets none, if a time is not greater than 0. */
bool block_paces_by(struct block_paces *x, const double ms[PACES], double half);

#endif
