/*
 * What the calls of late tell of the next one: how long it would wait for a place on a device, and
 * how much longer it would take beside others. Pure; the caller passes the times, in milliseconds.
 */
#ifndef ACCEL_SERVE_RECENT_CALLS_H
#define ACCEL_SERVE_RECENT_CALLS_H

#include <stdbool.h>

/* All zero: there were none. Numbers of two are of small calls, and of large ones. */
struct recent_calls {
    double run_ms[2];        /* a call's on a device, a mean in which later ones count more */
    double had_ms, needs_ms; /* that such calls have taken; that they would have taken alone */
};

/* Notes a call that has run. alone_ms: that it was estimated to take alone there, by its client,
 * who may say anything; 0: nothing is known. most: calls that run on a device at a time. */
void recent_calls_note(struct recent_calls *recent, bool large, double ms, double alone_ms,
                       int most);

/* Returns how long a call waits, if it has no place: until `ahead` calls before it have got theirs
 * from those that end, and it has got its own. running: all that may leave it one. */
double recent_calls_wait_ms(const struct recent_calls *recent, bool large, const int running[2],
                            int ahead);

/* Returns how many times as long calls have taken as they would have alone, at least 1. */
double recent_calls_slower(const struct recent_calls *recent);

#endif
