/*
 * What the tool may write to a terminal beside text.
 */
#ifndef ACCEL_TOOL_TERMINAL_H
#define ACCEL_TOOL_TERMINAL_H

#include <stdbool.h>
#include <stddef.h>

/* Whether this descriptor is a terminal that has colour, and the user has not said NO_COLOR
 * (https://no-color.org). */
bool terminal_is_coloured(int fd);

/* Copies a log's word, which may have any characters, with `?` for those that do not print; returns
 * text. */
const char *terminal_clean(char *text, size_t size, const char *word);

/* Replaces control characters by `?`, in place; returns text. */
char *terminal_plain(char *text);

#endif
