/*
 * Text that grows, for writing files. Not thread-safe.
 */
#ifndef ACCEL_STRING_BUFFER_H
#define ACCEL_STRING_BUFFER_H

#include <stdbool.h>
#include <stddef.h>

/* Starts as all zero. A NUL follows the text, unless it is NULL. The caller frees `text`. */
struct string_buffer {
    char *text;
    size_t length, size;
    bool failed; /* memory ran out: the text is not complete */
};

/* Add bytes, or a string without its NUL. Without memory they set `failed`, and keep the text as it
 * was. */
void string_buffer_add(struct string_buffer *buffer, const char *bytes, size_t length);
void string_buffer_add_string(struct string_buffer *buffer, const char *string);

#endif
