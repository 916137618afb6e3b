/*
 * The summary at exit: a table of calls by name, where they ran and why (ACCEL_SUMMARY). No malloc, no stdio.
 */
#ifndef ACCEL_SUMMARY_H
#define ACCEL_SUMMARY_H

/* Subscribes the sink. It writes to the log's file, of this pattern, a string that stays; NULL: stderr. */
void summary_start(const char *file);

#endif
