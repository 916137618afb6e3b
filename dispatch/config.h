/*
 * The config files: lines NAME=value, a value in double quotes or not; blank lines; lines that start with #.
 * One file at a time, in one static buffer: nothing is allocated. Not thread-safe.
 */
#ifndef ACCEL_CONFIG_H
#define ACCEL_CONFIG_H

#include <stdbool.h>

#define CONFIG_BYTES_MAX 65536

struct config_line {
    int number;        /* from 1 */
    const char *name;  /* NULL: the line is not of that form, `value` is all of it */
    const char *value; /* without the spaces around it, without quotes */
};

/* Reads a whole file. Does not block on what is no file. NULL, or why its lines do not count; `*error` is then the errno
 * value, or 0 where there is none. */
const char *config_load(const char *path, int *error);

/* Whether all of it has been read. That is so, too, where its lines do not count for whose it is, or who may write it: config_next() then tells
 * no more than what somebody wanted. */
bool config_is_known(void);

/* The next line of the file that says something; false behind the last. Its strings stay valid until the next
 * config_load(). */
bool config_next(struct config_line *line);

#endif
