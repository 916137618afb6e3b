/*
 * Reports: the dispatcher says once what has happened, and each sink that has subscribed makes of it what it is for: the
 * log, in text or JSON (log.h), the summary (summary.h), an estimate (estimate.h). Subscribe before the first call; all
 * else is thread-safe.
 *
 * Of report/, what is said of decisions: it includes base/ and the headers of gpu/ and ops/, and nothing of dispatch/.
 */
#ifndef ACCEL_REPORT_H
#define ACCEL_REPORT_H

#include "gpu/gpu.h"
#include "record.h"

/* What a sink does with each report; NULL: it takes none. */
struct report_sink {
    void (*decision)(const struct accel_record *record);
    /* On the way of a call on the GPU: what moves, what is kept. */
    void (*event)(const struct accel_record *record, const struct gpu_event *event);
    /* Calls from one place have lost on the GPU, and stay on the CPU from here on. */
    void (*pinned)(const struct accel_record *record);
    /* At exit. */
    void (*end)(void);
    bool whole_calls; /* takes no record that is `inner` */
};

/* The sink stays. */
void report_subscribe(const struct report_sink *sink);

/* Whether any sink wants to see all decisions. */
bool report_is_on(void);

/* Whether any sink would take this record's decision; whether any takes events. */
bool report_takes(const struct accel_record *record);
bool report_takes_events(void);

void report_decision(const struct accel_record *record);
void report_event(const struct accel_record *record, const struct gpu_event *event);
void report_pinned(const struct accel_record *record);
void report_end(void);

#endif
