/*
 * The page of `accel report --html`: the template tool/report/report.html, filled in from what logs
 * have said. It refers to nothing outside of itself.
 */
#ifndef ACCEL_TOOL_REPORT_PAGE_H
#define ACCEL_TOOL_REPORT_PAGE_H

#include "tool/measure/ceilings.h"
#include "log_seen.h"

struct report_page {
    const struct log_seen *seen; /* its sums sorted */
    const struct log_counts *counts;
    const struct ceilings *ceilings;
    const char *model;  /* the calibration's path; NULL: there is none */
    char *const *paths; /* of the logs */
    int path_count;
};

void report_page_write(FILE *to, const struct report_page *page);

#endif
