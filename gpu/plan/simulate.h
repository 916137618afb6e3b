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
    double free_at[SCHEDULE_ENGINES]; /* when an engine's last step ends */
    double caller; /* when the calling thread has put the steps on their streams */
    double ms;     /* when the last step of all ends */
    /* Of simulate_step(): when an engine's step number i ends; [0] is at 0 */
    double *end[SCHEDULE_ENGINES];
    int done[SCHEDULE_ENGINES];
};

/* Starts at 0. memory: for steps[e] + 1 times of each engine, which the caller frees afterwards.
 * Without it, set to 0 apart from the rates, a simulator can simulate_on(). */
void simulate_start(struct simulator *sim, const struct schedule_rates *rates, double *memory,
                    const int steps[SCHEDULE_ENGINES]);

/* What a step takes by itself. */
struct simulate_work {
    double ms;
    double chain_ms;   /* of a kernel: what of that are steps that wait for each other */
    double not_before; /* it begins then or later, whatever else it waits for */
    /* A copy from another device, which takes nothing from the calling thread but its start */
    bool elsewhere;
};

static inline double simulate_later(double a, double b)
{
    return a > b ? a : b;
}

/* Does what an engine has to do next. Returns when it begins and ends. */
static inline struct simulate_span simulate_on(struct simulator *sim, int engine,
                                               const struct simulate_work *work)
{
    const struct schedule_rates *rates = sim->rates;
    double *free_at = &sim->free_at[engine];
    sim->caller += engine == SCHEDULE_COMPUTE
                       ? rates->launch_ms + work->chain_ms
                       : rates->call_ms + rates->chunk_share * (work->elsewhere ? 0 : work->ms);
    const double begin = simulate_later(simulate_later(*free_at, sim->caller), work->not_before);
    *free_at = begin + work->ms;
    sim->ms = simulate_later(sim->ms, *free_at);
    return (struct simulate_span){begin, *free_at};
}

/* Does a step of a schedule, the next one of its engine. The steps that it waits for have been
 * done. */
struct simulate_span simulate_step(struct simulator *sim, const struct schedule_step *step,
                                   const struct simulate_work *work);

/* Does all steps of a schedule. of_step(): returns a step's milliseconds, and sets the bytes of a
 * copy, and of a kernel the milliseconds of steps that wait for each other; both are 0 before.
 * first < 0: no host memory. */
typedef double simulate_step_ms(const void *context, const struct schedule_rates *rates,
                                const struct schedule_step *step, double *bytes, double *chain_ms);
struct schedule_times simulate_steps(const struct schedule *s, const struct schedule_rates *rates,
                                     simulate_step_ms *of_step, const void *context);

#endif
