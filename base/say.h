/*
 * Messages: one line on stderr when something is wrong.
 */
#ifndef ACCEL_SAY_H
#define ACCEL_SAY_H

/* Writes "accel: ..." in one write(). The format has %s and %d only. Thread-safe. */
__attribute__((format(printf, 1, 2))) void accel_say(const char *format, ...);

#endif
