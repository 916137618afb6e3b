/*
 * The config files: lines NAME=value, with or without double quotes around the value; blank lines;
 * lines that start with #. One file at a time, in one static buffer: nothing is allocated. Not
 * thread-safe.
 */
#ifndef ACCEL_CONFIG_H
#define ACCEL_CONFIG_H

#include <stdbool.h>

#define CONFIG_BYTES_MAX 65536

struct config_line {
    int number;        /* from 1 */
    const char *name;  /* NULL: the line has another form, and `value` is all of it */
    const char *value; /* without the spaces around it, without quotes */
};

/* Reads a whole file, without blocking on a pipe or device. Returns NULL, or why its lines do not
 * count; `*error` is then an errno value or 0. */
const char *config_load(const char *path, int *error);

/* Whether all of the file has been read. This is true, too, of a file that is refused for its owner
 * or its mode: its lines can be looked at, but do not count. */
bool config_is_known(void);

/* Returns the next line that is neither blank nor a comment; false behind the last. Its strings are
 * valid until the next config_load(). */
bool config_next(struct config_line *line);

#endif
