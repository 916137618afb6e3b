/*
 * Text that grows, for writing files. Not thread-safe.
 */
#ifndef ACCEL_GROWN_H
#define ACCEL_GROWN_H

#include <stdbool.h>
#include <stddef.h>

/* Starts as all zero. A NUL follows the text, unless it is NULL. The caller frees `text`. */
struct grown {
    char *text;
    size_t length, size;
    bool failed; /* memory ran out: the text is not complete */
};

/* Add bytes, or a string without its NUL. Without memory they set `failed`, and keep the text as it
 * was. */
void grown_add(struct grown *grown, const char *bytes, size_t length);
void grown_string(struct grown *grown, const char *string);

#endif
