/*
 * The time of calls inside others. The log has a line for each call when it ends: those inside of it come before, from the same thread,
 * one `depth` deeper. A call's own time is its time without theirs; so sums have all time once. Not thread-safe.
 */
#ifndef ACCEL_TOOL_LOG_INNER_H
#define ACCEL_TOOL_LOG_INNER_H

#include "log_file.h"

enum { INNER_THREADS = 4096, INNER_DEPTHS = 16 };

struct log_inner {
    struct inner_thread {
        uint64_t key;                  /* 0: free */
        double below_ms[INNER_DEPTHS]; /* [d]: of lines at depth d since the last line above */
    } thread[INNER_THREADS];
    int threads;
};

/* All zero at first. Notes a decision's line, and returns its time (milliseconds; negative: not timed) without that of calls inside. */
double log_inner_own_ms(struct log_inner *inner, const struct log_line *line, double ms);

#endif
