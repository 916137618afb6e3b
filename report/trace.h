/*
 * The trace: calls, what they did on the device, and counters, as events in Chrome's trace format,
 * which Perfetto and chrome://tracing show (ACCEL_TRACE). The format: "Trace Event Format", Google,
 * 2016. docs/trace.md says what the events mean.
 */
#ifndef ACCEL_TRACE_H
#define ACCEL_TRACE_H

#include <stdint.h>

/* The most bytes of a process's file, unless a test wants less. */
#define TRACE_BYTES (INT64_C(100) << 20)

/* Subscribes the sink. Its file has this pattern, a string that stays. */
void trace_start(const char *pattern, int64_t most_bytes);

#endif
