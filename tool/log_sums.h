/*
 * Sums over the decisions of logs: a row for each routine, class of sizes, place and reason. Bounded: what finds no row any more is
 * summed in one row of its own. All time is in them once: a call's is its own, without that of the calls inside it. What a call would have
 * taken elsewhere is that of the outer ones, and of those inside that ran on the GPU. Not thread-safe.
 */
#ifndef ACCEL_TOOL_LOG_SUMS_H
#define ACCEL_TOOL_LOG_SUMS_H

#include "log_decision.h"

enum { LOG_ROWS = 4096 };

struct log_sum {
    int64_t calls, timed, estimated; /* all; with a time; with a time and both estimates */
    double ms;
    /* Of `estimated`: their time, and what either side was expected to take. */
    double estimated_ms, est_cpu_ms, est_gpu_ms;
    double up_mb, down_mb, kept_mb;
    double operations,
        operations_ms; /* of the timed calls whose operations are known, and the time of these */
};

struct log_row {
    char name[48], ran[24], why[24];
    int class;         /* of the largest size: a power of four up to the next; 0: no size */
    int64_t low, high; /* the largest sizes of its calls */
    enum log_side side;
    struct log_sum sum;
};

struct log_sums {
    struct log_row row[LOG_ROWS]; /* by log_sums_sort(): the longest time first */
    int rows;
    struct log_sum all, side[LOG_SIDES], left_out; /* left_out: of no row */
    int64_t inner;           /* calls inside others, which are in the sums, too */
    int place[2 * LOG_ROWS]; /* hashed: 1 + a row's index; 0: free */
};

/* All zero at first. */
void log_sums_add(struct log_sums *sums, const struct log_decision *decision);

/* Sorts the rows; then nothing can be added any more. */
void log_sums_sort(struct log_sums *sums);

/* Returns the milliseconds that a sum's calls would take longer on the other side, as estimated; negative: less. */
double log_sum_saved_ms(const struct log_sum *sum, enum log_side side);

/* Prints a row's sizes: "512-1000", "512"; empty without one. */
enum { LOG_SIZES_BYTES = 48 };
const char *log_sizes(char text[LOG_SIZES_BYTES], const struct log_row *row);

#endif
