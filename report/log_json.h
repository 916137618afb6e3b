/*
 * What lines of the log have in JSON alone (docs/log.schema.json).
 */
#ifndef ACCEL_LOG_JSON_H
#define ACCEL_LOG_JSON_H

#include "line.h"
#include "record.h"

/* Reads the host's name and the rank. Once, before the others. */
void log_json_start(void);

/* Puts what each line begins with. */
void log_json_begin(struct report_line *line);

/* Puts what a decision's line has besides: the operands, LAPACK's INFO, the depth, the GPU. */
void log_json_details(struct report_line *line, const struct accel_record *record);

#endif
