#include "schedule_engines.h"

#include "schedule_plan.h"

void schedule_engines_start(struct schedule_engines *engines, const struct schedule_rates *rates,
                            struct schedule_span *memory, const int steps[SCHEDULE_ENGINES])
{
    *engines = (struct schedule_engines){.rates = rates};
    for (int e = 0; e < SCHEDULE_ENGINES; memory += steps[e++] + 1) {
        engines->did[e] = memory;
        memory[0] = (struct schedule_span){0, 0};
    }
}

static double later(double a, double b)
{
    return a > b ? a : b;
}

struct schedule_span schedule_engines_do(struct schedule_engines *x,
                                         const struct schedule_step *step,
                                         const struct schedule_work *work)
{
    const int e = step->engine;
    double begin = x->did[e][x->done[e]].end;
    x->caller += schedule_caller_ms(x->rates, e, work->elsewhere ? 0 : work->ms, work->chain_ms);
    begin = later(later(begin, x->caller), work->not_before);
    for (int other = 0; other < SCHEDULE_ENGINES; other++)
        if (other != e && step->after[other] > 0)
            begin = later(begin, x->did[other][step->after[other]].end + x->rates->wait_ms);
    const struct schedule_span span = {begin, begin + work->ms};
    x->ms = later(x->ms, span.end);
    x->did[e][++x->done[e]] = span;
    return span;
}
