/*
 * The file of a trace: a JSON array of events that is whole after every write, however the process
 * ends. Each process writes one of its own. No malloc, no stdio. Thread-safe.
 */
#ifndef ACCEL_TRACE_FILE_H
#define ACCEL_TRACE_FILE_H

#include <stddef.h>
#include <stdint.h>

/* The file of this pattern (ACCEL_LOG_FILE's), a string that stays, of at most so many bytes.
 * Opened at the first write. */
void trace_file_start(const char *pattern, int64_t most_bytes);

/* Adds `count` events, `length` bytes of JSON with commas between them. Those that do not fit are
 * counted in the file. Keeps errno. */
void trace_file_put(const char *events, size_t length, int count);

#endif
