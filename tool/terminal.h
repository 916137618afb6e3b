/*
 * What the tool may write to a terminal beside text.
 */
#ifndef ACCEL_TOOL_TERMINAL_H
#define ACCEL_TOOL_TERMINAL_H

#include <stdbool.h>

/* Whether this descriptor is a terminal that has colour, and the user has not said NO_COLOR (https://no-color.org). */
bool terminal_is_coloured(int fd);

#endif
