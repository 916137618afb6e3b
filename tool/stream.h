/*
 * A command's output must have arrived, or the command says so.
 */
#ifndef ACCEL_TOOL_STREAM_H
#define ACCEL_TOOL_STREAM_H

#include <stdio.h>

/* Writes what the stream still holds. Returns 0 if all that was printed to it is written, else the errno; to be called soon after. */
int stream_flush(FILE *stream);

#endif
