/*
 * Hints: what a setting would bring to a run, and what none can bring, in sentences with the run's
 * own numbers. From sums alone, so that the summary and readers of logs say the same.
 */
#ifndef ACCEL_HINTS_H
#define ACCEL_HINTS_H

#include "totals.h"

/* The sums of a run. */
struct hints_of {
    const struct totals_row *row; /* inner ones do not count */
    int count;
    double seconds;        /* of the run; negative: not known */
    double outside;        /* of these, outside all calls; negative: not known */
    double starting;       /* that GPUs took to start, which waiting costs; negative: not known */
    unsigned facts, known; /* enum totals_fact: those that hold, of those that are known */
    const struct totals_precision *precision; /* of GPU_PRECISIONS; NULL: not known */
};

enum { HINT_BYTES = 300 };

/* Calls say() with each sentence, without a line's end, the most important first; none twice. The
 * sentence is valid during the call. No malloc, no stdio; thread-safe. */
void hints_make(const struct hints_of *of, void (*say)(void *context, const char *sentence),
                void *context);

/* Returns the facts that a library's file shows by its path: what computes on the CPU and is no
 * BLAS. 0: none. */
unsigned hints_library(const char *path);

#endif
