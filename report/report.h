/*
 * Reports: the dispatcher reports each decision once, to every sink that has subscribed: the log,
 * in text or JSON (log.h), the summary (summary.h), a trace (trace.h), an estimate (estimate.h).
 * Subscribe before the first call; all else is thread-safe.
 *
 * report/ holds the record of a decision and its sinks. It includes base/ and the headers of gpu/
 * and ops/.
 */
#ifndef ACCEL_REPORT_H
#define ACCEL_REPORT_H

#include "gpu/device/gpu.h"
#include "record.h"

/* A sink's functions for each kind of report. NULL, except for decision(): it takes none. */
struct report_sink {
    void (*decision)(const struct accel_record *record);
    /* While a call runs on the GPU: what moves, what is kept. */
    void (*event)(const struct accel_record *record, const struct gpu_event *event);
    /* When a call on the device of this name has ended: what it did there. */
    void (*steps)(const struct accel_record *record, const char *device,
                  const struct gpu_steps *steps);
    /* Calls from one place have lost on the GPU, and stay on the CPU from here on. */
    void (*pinned)(const struct accel_record *record);
    /* The process that owns the GPU (gpu/remote/) has ended, or does not answer. */
    void (*server_lost)(const char *reason);
    /* At exit. */
    void (*end)(void);
    bool whole_calls; /* takes no `inner` record */
};

/* The sink stays. */
void report_subscribe(const struct report_sink *sink);

/* Whether there is any sink. */
bool report_is_on(void);

/* Whether any sink takes this record's decision; whether any takes events; steps. */
bool report_takes(const struct accel_record *record);
bool report_takes_events(void);
bool report_takes_steps(void);

/* Reports a decision, after its call. Its time and its calls on the GPU count in the sums of the
 * call that encloses it. */
void report_decision(const struct accel_record *record);

/* Enclose the run of an original: report_end_inner() returns the sums of the decisions that this
 * thread has reported in between, one deeper. It gets what the other has returned. */
struct accel_inner report_begin_inner(void);
struct accel_inner report_end_inner(struct accel_inner before);

/* Report to the functions of struct report_sink that have the same names. */
void report_event(const struct accel_record *record, const struct gpu_event *event);
void report_steps(const struct accel_record *record, const char *device,
                  const struct gpu_steps *steps);
void report_pinned(const struct accel_record *record);
void report_server_lost(const char *reason);
void report_end(void);

#endif
