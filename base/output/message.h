/*
 * Messages: one line on stderr when something is wrong.
 */
#ifndef ACCEL_MESSAGE_H
#define ACCEL_MESSAGE_H

#include <stdbool.h>

/* Writes "accel: ..." in one write(). The format has %s and %d only. Thread-safe. */
__attribute__((format(printf, 1, 2))) void accel_message(const char *format, ...);

/* Gives each message, without "accel: ", to a function. It returns whether it has written it: then
 * stderr does not get it. */
void message_to(bool (*takes)(const char *message));

#endif
