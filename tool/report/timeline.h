/*
 * When calls ran: a lane for each thread, and one for each device. The time of all lanes has the
 * same bins, which become wider as the time becomes longer: bounded for any number of calls. The
 * longest calls are kept one by one. Not thread-safe.
 */
#ifndef ACCEL_TOOL_TIMELINE_H
#define ACCEL_TOOL_TIMELINE_H

#include <stdio.h>

#include "tool/log/log_decision.h"

enum { TIMELINE_LANES = 48, TIMELINE_BINS = 1024, TIMELINE_LONGEST = 400 };

struct timeline_lane {
    char name[160];
    bool device;
    double calls, ms;
    float busy_ms[LOG_SIDES][TIMELINE_BINS];
};

struct timeline_call {
    char name[48];
    int lane;
    enum log_side side;
    double start_s, ms;
};

struct timeline {
    struct timeline_lane lane[TIMELINE_LANES];
    struct timeline_call longest[TIMELINE_LONGEST];
    int lanes, kept, shortest; /* shortest: of `longest`, if it is full */
    double start_s, bin_s;     /* of the first bin; bin_s is 0 without calls */
    double first_s, last_s;
    double left_out, untimed; /* calls for which there is no lane; whose line has no time of day */
};

/* All zero at first. Adds a call that ended at this time of day, in seconds; NAN: not known. It is
 * on the lane of its thread, unless it is inside of another call, and on that of each device that
 * decision->ran names. thread: the name of the thread's lane; host: what the devices' names begin
 * with. */
void timeline_add(struct timeline *timeline, const struct log_decision *decision, double end_s,
                  const char *thread, const char *host);

/* Writes it as JSON, in seconds since its first call. The bins of each side: how many follow each
 * other that are as busy, and by how many hundredths, in turn. */
void timeline_write(FILE *to, const struct timeline *timeline);

/* Returns the seconds from the first call's beginning to the last one's end; never 0. */
double timeline_span_s(const struct timeline *timeline);

#endif
