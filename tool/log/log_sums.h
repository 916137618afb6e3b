/*
 * Sums over the decisions of logs, with the rows of the summary (report/totals.h). Bounded: what
 * finds no row any more is summed in one of its own. Calls inside others have rows, but are in no
 * sum of several rows: the outer calls have their time. Not thread-safe.
 */
#ifndef ACCEL_TOOL_LOG_SUMS_H
#define ACCEL_TOOL_LOG_SUMS_H

#include "log_decision.h"
#include "report/totals.h"

struct log_row {
    struct totals_row is; /* why: ACCEL_WHYS if this version does not know the reason */
    char why[24];
    enum log_side side;
    int class;                       /* of the largest size: see size_class() */
    double operations, operations_s; /* of the calls whose operations and times are known */
};

struct log_sums {
    /* After log_sums_sort(): the longest time first, calls inside others last */
    struct log_row row[TOTALS_ROWS];
    int rows;
    struct log_row all, side[LOG_SIDES], left_out; /* sums; left_out: of calls that have no row */
    int64_t inner;                                 /* calls inside others */
    int place[2 * TOTALS_ROWS];                    /* hashed: 1 + a row's index; 0: free */
};

/* All zero at first. */
void log_sums_add(struct log_sums *sums, const struct log_decision *decision);

/* Sorts the rows; then nothing can be added any more. */
void log_sums_sort(struct log_sums *sums);

/* Adds a row's numbers to a sum. */
void log_row_add(struct log_row *sum, const struct log_row *row);

/* Prints a row's sizes: "512-1000", "512"; empty without one. */
enum { LOG_SIZES_BYTES = 48 };
const char *log_sizes(char text[LOG_SIZES_BYTES], const struct log_row *row);

#endif
