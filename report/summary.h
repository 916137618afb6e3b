/*
 * The summary at the end of a run: the sums of its decisions (ACCEL_SUMMARY). No malloc, no stdio.
 *
 * A process and the children that it forks have one table, which the process prints when it exits
 * normally. Under `accel run --summary` all processes count in the tool's table, which the tool
 * prints after the program's end, whatever that was.
 */
#ifndef ACCEL_SUMMARY_H
#define ACCEL_SUMMARY_H

#include <stdbool.h>

enum accel_summary { ACCEL_SUMMARY_OFF, ACCEL_SUMMARY_TEXT, ACCEL_SUMMARY_JSON };

/* Subscribes the sink. It writes to the log's file, of this pattern; NULL: stderr. table: the
 * tool's; NULL: none. Both stay. with_banner: no log tells what is known of the machine (banner.h),
 * so the summary does. */
void summary_start(enum accel_summary form, const char *file, const char *table, bool with_banner);

/* Notes facts (enum totals_fact) for the hints. Thread-safe; nothing without a summary. */
void summary_know(unsigned facts);

/* A thread begins to start a GPU, or has ended that, as totals_starting(). Thread-safe. */
void summary_starting(bool begins);

#endif
