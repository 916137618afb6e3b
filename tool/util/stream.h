/*
 * A command's output must have arrived, or the command says so.
 */
#ifndef ACCEL_TOOL_STREAM_H
#define ACCEL_TOOL_STREAM_H

#include <stdio.h>

/* Writes what the stream still holds. Returns 0 if all that was printed to it is written, else the
 * errno, once, and what is left is dropped; to be called soon after. */
int stream_flush(FILE *stream);

/* Has the process say so and end with 2 if it exits when stdout cannot be written, and no
 * stream_flush() has returned that: after --help or --version, which argp prints. To be called
 * once. */
void stream_check_at_exit(void);

#endif
