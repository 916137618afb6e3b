/*
 * The log: one line and one write() for each decision, in text or JSON (ACCEL_LOG, ACCEL_LOG_FILE). No malloc, no
 * stdio.
 */
#ifndef ACCEL_LOG_H
#define ACCEL_LOG_H

enum accel_log_level { ACCEL_LOG_OFF, ACCEL_LOG_DECISIONS, ACCEL_LOG_MOVES, ACCEL_LOG_JSON };

/* Subscribes the sink of this level. It writes to the file of this pattern, a string that stays; NULL: stderr. */
void log_start(enum accel_log_level level, const char *file);

#endif
