/*
 * What the report shows of logs, collected line by line: sums, charts, processes. Bounded for logs
 * of any length.
 */
#ifndef ACCEL_TOOL_LOG_SEEN_H
#define ACCEL_TOOL_LOG_SEEN_H

#include "tool/log/log_sums.h"
#include "scatter.h"
#include "timeline.h"

enum { SEEN_EVENTS = 64, SEEN_PROCESSES = 4096, SEEN_LIST_BYTES = 4000 };

struct seen_process {
    uint64_t key, thread; /* thread: hash of that of its first call */
    bool threads;         /* more than one has made calls */
    bool warming;         /* calls ran on the CPU while a GPU was starting */
    double start_ms;      /* that the start took; negative: not known */
    /* Times of day, from the beginning of its first call to the end of its last; NAN: not known */
    double first_s, last_s;
};

/* An event that processes log about themselves, such as their start. Processes whose lines differ
 * only in process, time, machine or GPU share one. It has no process and no time; a field that
 * names machines or GPUs has a list, "node1, node2", and ends with ", ..." if SEEN_LIST_BYTES are
 * too few for all. */
struct seen_event {
    char *name;
    char **field; /* names and values in turn */
    int fields;
    int64_t lines;
};

struct log_seen {
    struct log_sums sums;
    struct scatter sizes, rates;
    struct timeline timeline;
    bool has_rate[2];                                /* of calls in single, in double precision */
    struct seen_process process[2 * SEEN_PROCESSES]; /* hashed by their keys; key 0: free */
    int processes; /* that have made calls; at most SEEN_PROCESSES */
    char gpu[64];  /* the first that the log names; empty: none */
    struct seen_event event[SEEN_EVENTS];
    int events;
    int64_t events_left_out; /* lines of further ones */
    double loading_ms;       /* that calls lost while their kernels were loaded on a ready GPU */
};

/* A new one, all zero; ends this process if there is no memory. */
struct log_seen *log_seen_open(void);
void log_seen_close(struct log_seen *seen);

/* Takes a line: a function for log_read_all(). */
void log_seen_take(void *seen, const struct log_line *line);

/* Returns the seconds that GPUs took to start in processes whose calls ran on the CPU meanwhile;
 * negative: not known of all. */
double log_seen_starting(const struct log_seen *seen);

/* Returns how long the processes ran together from their first calls to their last ones; negative:
 * not known. outside: gets the part of that outside all calls; negative: not known, also where
 * several threads of a process made calls. */
double log_seen_seconds(const struct log_seen *seen, double *outside);

#endif
