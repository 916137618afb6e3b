/*
 * Text that grows, for what is written to files. For one thread.
 */
#ifndef ACCEL_GROWN_H
#define ACCEL_GROWN_H

#include <stdbool.h>
#include <stddef.h>

/* Starts as all zero. The text ends with a NUL beyond its length, once there is any; free() it. */
struct grown {
    char *text;
    size_t length, size;
    bool failed; /* there was no memory for all of it */
};

void grown_add(struct grown *grown, const char *bytes, size_t length);
void grown_string(struct grown *grown, const char *string);

#endif
