/*
 * How fast a device multiplies blocks of some numbers of rows, beside others: one after the other
 * without a pause, as a schedule's blocks are. A large kernel's size alone does not tell: on an
 * H100 (cuBLAS 13.1, double precision) blocks of 1024 columns and more reach 50 to 56 Tflop/s with
 * 1536, 2304, 3072 and 5632 rows, 45 to 53 with 2752, 2816 and 4096 (docs/measurements). The
 * columns count, too, but not as much; a pace is that of several numbers of them together.
 */
#ifndef ACCEL_BLOCK_PACES_H
#define ACCEL_BLOCK_PACES_H

#include <stdbool.h>
#include <stdint.h>

/* Measured are the multiples of PACE_STEP from PACE_LEAST to PACE_MOST, with each of these numbers
 * of columns, and this depth. */
enum {
    PACE_STEP = 128,
    PACE_LEAST = 640,
    PACE_MOST = 4096,
    PACES = (PACE_MOST - PACE_LEAST) / PACE_STEP + 1,
    PACE_USUAL = 3200,
    PACE_DEPTH = 2048,
    PACE_WIDTHS = 3,
    PACE_WIDEST = 2816
};
extern const int64_t pace_widths[PACE_WIDTHS];

/* Returns the rows of a measured size, by its number from 0 to PACES - 1. */
static inline int64_t pace_rows(int number)
{
    return PACE_LEAST + number * PACE_STEP;
}

/* Paces are kept within these, and are multiples of 1 / PACE_PARTS: smaller differences come from
 * the measurement. */
#define PACE_SLOWEST 0.5
#define PACE_FASTEST 2.0
#define PACE_PARTS   50

/* The pace of each size over that of PACE_USUAL rows, by which the rate of products is calibrated;
 * all 0: not measured. Of more rows than all: the mean. */
struct block_paces {
    float of[PACES];
    float beyond, highest; /* follow from these */
};

/* Sets what follows from the paces that are set. */
void block_paces_settle(struct block_paces *x);

/* Returns the pace of blocks of so many rows: that of the next size that was measured; 1 if that
 * was not measured. */
double block_pace(const struct block_paces *x, int64_t rows);

/* Returns the highest one, or 1 if that is higher. */
double block_pace_highest(const struct block_paces *x);

/* Sets the paces by the milliseconds that the products of each size took, one with each number of
 * columns. The rate that small products lack, which schedules know (half: schedule_rates), does not
 * count. Returns false, and sets none, if a time is not greater than 0. */
bool block_paces_by(struct block_paces *x, const double ms[PACES], double half);

#endif
