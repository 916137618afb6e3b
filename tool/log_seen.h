/*
 * What the report shows of logs, collected line by line: sums, charts, processes. Bounded for logs of any length.
 */
#ifndef ACCEL_TOOL_LOG_SEEN_H
#define ACCEL_TOOL_LOG_SEEN_H

#include "log_inner.h"
#include "log_sums.h"
#include "scatter.h"
#include "timeline.h"

enum { SEEN_EVENTS = 32, SEEN_PROCESSES = 4096 };

/* What lines about a process say, except for what tells processes and times apart. */
struct seen_event {
    char *name;
    char **field; /* names and values in turn */
    int fields;
    int64_t lines;
};

struct log_seen {
    struct log_sums sums;
    struct log_inner inner;
    struct scatter sizes, rates;
    struct timeline timeline;
    bool has_rate[2];                     /* of calls in single, in double precision */
    uint64_t process[2 * SEEN_PROCESSES]; /* hashed; 0: free */
    int processes;                        /* at most SEEN_PROCESSES */
    struct seen_event event[SEEN_EVENTS];
    int events;
    int64_t pinned; /* call sites that were sent back to the CPU */
};

/* A new one, all zero; ends this process if there is no memory. */
struct log_seen *log_seen_open(void);
void log_seen_close(struct log_seen *seen);

/* Takes a line: a function for log_read_all(). */
void log_seen_take(void *seen, const struct log_line *line);

/* Returns what an event about a process says of `name`; NULL: none does. */
const char *log_seen_fact(const struct log_seen *seen, const char *name);

#endif
