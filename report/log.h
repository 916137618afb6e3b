/*
 * The log: one line and one write() for each decision, in text or JSON (ACCEL_LOG, ACCEL_LOG_FILE),
 * and the summary at exit. No malloc, no stdio. Thread-safe.
 */
#ifndef ACCEL_LOG_H
#define ACCEL_LOG_H

#include "dispatch/decide.h"
#include "gpu/gpu.h"

struct accel_record {
    const struct accel_call *call;
    const char *symbol;
    enum accel_why why;
    const char *ran; /* "cpu", "gpu0", "gpu0+cpu" */
    double est_cpu_ms, est_gpu_ms;
    double ms; /* what the call took; negative where it was not timed */
    int64_t up_bytes, down_bytes;
    double verify; /* VERIFY_NOT_ASKED, or what verify_judge() says */
};

void log_decision(const struct accel_settings *settings, const struct accel_record *record);

/* ACCEL_LOG=2: what moved, what was kept. */
void log_event(const struct accel_settings *settings, const char *symbol,
               const struct gpu_event *event);

/* Calls from one place have lost on the GPU, and stay on the CPU from here on. */
void log_pinned(const struct accel_settings *settings, const char *symbol, double gpu_ms,
                double cpu_ms);

/* Counts a decision for the summary. */
void summary_count(const struct accel_record *record);

/* The table of what was counted, to the log. */
void summary_print(const struct accel_settings *settings);

#endif
