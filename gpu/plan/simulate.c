#include "simulate.h"

#include <stdlib.h>

void simulate_start(struct simulator *sim, const struct schedule_rates *rates, double *memory,
                    const int steps[SCHEDULE_ENGINES])
{
    *sim = (struct simulator){.rates = rates};
    for (int e = 0; e < SCHEDULE_ENGINES; memory += steps[e++] + 1) {
        sim->end[e] = memory;
        memory[0] = 0;
    }
}

struct simulate_span simulate_step(struct simulator *sim, const struct schedule_step *step,
                                   const struct simulate_work *work)
{
    const int e = step->engine;
    struct simulate_work behind = *work;
    for (int other = 0; other < SCHEDULE_ENGINES; other++)
        if (other != e && step->after[other] > 0)
            behind.not_before = simulate_later(
                behind.not_before, sim->end[other][step->after[other]] + sim->rates->wait_ms);
    const struct simulate_span span = simulate_on(sim, e, &behind);
    sim->end[e][++sim->done[e]] = span.end;
    return span;
}

struct schedule_times simulate_steps(const struct schedule *s, const struct schedule_rates *rates,
                                     simulate_step_ms *of_step, const void *context)
{
    struct schedule_times times = {.first = -1};
    struct simulator sim;
    double before = 0; /* when the last kernel but one ends */
    double *memory = malloc((size_t)(s->count + SCHEDULE_ENGINES) * sizeof *memory);
    if (!memory)
        return times;
    simulate_start(&sim, rates, memory, s->steps);
    for (int n = 0; n < s->count; n++) {
        const struct schedule_step *step = &s->step[n];
        const int e = step->engine;
        struct simulate_work work = {.ms = 0};
        double bytes = 0;
        work.ms = of_step(context, rates, step, &bytes, &work.chain_ms);
        if (e == SCHEDULE_COMPUTE && sim.done[e] == s->steps[e] - 1)
            before = sim.free_at[e];
        const struct simulate_span span = simulate_step(&sim, step, &work);
        if (e == SCHEDULE_COMPUTE && times.first < 0)
            times.first = span.begin;
        times.busy[e] += work.ms;
        times.bytes[e] += bytes;
    }
    times.ms = sim.ms;
    times.last = times.ms - before;
    free(memory);
    return times;
}
