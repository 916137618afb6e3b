/*
 * The log: one line and one write() for each decision, in text or JSON (ACCEL_LOG, ACCEL_LOG_FILE).
 * No malloc, no stdio.
 */
#ifndef ACCEL_LOG_H
#define ACCEL_LOG_H

#include "base/text/text.h"
#include "record.h"

enum accel_log_level { ACCEL_LOG_OFF, ACCEL_LOG_DECISIONS, ACCEL_LOG_MOVES, ACCEL_LOG_JSON };

/* Subscribes the sink of this level. It writes to the file of this pattern, a string that stays;
 * NULL: stderr. Calls that took less than min_ms have no line. */
void log_start(enum accel_log_level level, const char *file, double min_ms);

/* Appends the fields of a decision behind `sym`, as a JSON object. */
void log_put_fields(struct accel_text *text, const struct accel_record *record);

#endif
