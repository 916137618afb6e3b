/*
 * What the user is told without having asked: one line on stderr where something is wrong.
 */
#ifndef ACCEL_SAY_H
#define ACCEL_SAY_H

/* Writes "accel: ..." in one write(). The format knows %s and %d alone. Thread-safe. */
__attribute__((format(printf, 1, 2))) void accel_say(const char *format, ...);

#endif
