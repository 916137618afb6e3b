/*
 * The event simulator: the virtual time in which a device's engines do the steps of plans, one
 * after the other on each engine, and behind what each waits for. Pure functions.
 */
#ifndef ACCEL_SIMULATE_H
#define ACCEL_SIMULATE_H

#include "schedule.h"

/* When a step begins and ends, in milliseconds. */
struct simulate_span {
    double begin, end;
};

struct simulator {
    const struct schedule_rates *rates;
    /* [i]: an engine's step number i; [0] is at 0. */
    struct simulate_span *did[SCHEDULE_ENGINES];
    int done[SCHEDULE_ENGINES];
    double caller; /* when the calling thread has put the steps on their streams */
    double ms;     /* when the last step ends */
};

/* Starts at 0. memory: steps[e] + 1 spans for each engine, which the caller frees afterwards. */
void simulate_start(struct simulator *sim, const struct schedule_rates *rates,
                    struct simulate_span *memory, const int steps[SCHEDULE_ENGINES]);

/* What a step takes by itself. */
struct simulate_work {
    double ms;
    double chain_ms;   /* of a kernel: what of that are steps that wait for each other */
    double not_before; /* it begins then or later, whatever else it waits for */
    /* A copy from another device, which takes nothing from the calling thread but its start */
    bool elsewhere;
};

/* Does an engine's next step. The steps that it waits for have been done. Returns when it begins
 * and ends. */
struct simulate_span simulate_step(struct simulator *sim, const struct schedule_step *step,
                                   const struct simulate_work *work);

/* Does all steps of a schedule. of_step(): returns a step's milliseconds, and sets the bytes of a
 * copy, and of a kernel the milliseconds of steps that wait for each other; both are 0 before.
 * first < 0: no host memory. */
typedef double simulate_step_ms(const void *context, const struct schedule_step *step,
                                double *bytes, double *chain_ms);
struct schedule_times simulate_steps(const struct schedule *s, simulate_step_ms *of_step,
                                     const void *context, const struct schedule_rates *rates);

#endif
