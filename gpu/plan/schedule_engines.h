/*
 * The virtual time in which engines do the steps of schedules. Pure functions.
 */
#ifndef ACCEL_SCHEDULE_ENGINES_H
#define ACCEL_SCHEDULE_ENGINES_H

#include "schedule.h"

/* When a step begins and ends, in milliseconds. */
struct schedule_span {
    double begin, end;
};

struct schedule_engines {
    const struct schedule_rates *rates;
    /* [i]: an engine's step number i; [0] is at 0. */
    struct schedule_span *did[SCHEDULE_ENGINES];
    int done[SCHEDULE_ENGINES];
    double caller; /* when the calling thread has put the steps on their streams */
    double ms;     /* when the last step ends */
};

/* Starts at 0. memory: steps[e] + 1 spans for each engine, which the caller frees afterwards. */
void schedule_engines_start(struct schedule_engines *engines, const struct schedule_rates *rates,
                            struct schedule_span *memory, const int steps[SCHEDULE_ENGINES]);

/* What a step takes by itself. */
struct schedule_work {
    double ms;
    double chain_ms;   /* of a kernel: what of that are steps that wait for each other */
    double not_before; /* it begins then or later, whatever else it waits for */
    /* A copy from another device, which takes nothing from the calling thread but its start */
    bool elsewhere;
};

/* Does an engine's next step. The steps that it waits for have been done. Returns when it begins
 * and ends. */
struct schedule_span schedule_engines_do(struct schedule_engines *engines,
                                         const struct schedule_step *step,
                                         const struct schedule_work *work);

#endif
