/*
 * The summary of a run as text or JSON, from its sums (totals.h). For the library and the tool.
 */
#ifndef ACCEL_PAGE_H
#define ACCEL_PAGE_H

#include <stdbool.h>

#include "totals.h"

struct page {
    const char *program;
    int pid;        /* 0: not told */
    double seconds; /* the run took; negative: not known, those of its processes count */
    bool json;
    bool always;      /* also if there were no calls */
    const char *file; /* of this pattern; NULL: stderr */
};

/* Takes the sums out of the table, and writes them to the log's file. Writes nothing if there are
 * none, or no memory. One thread at a time. */
void page_write(const struct page *page, struct totals *totals);

#endif
