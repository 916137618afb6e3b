#include "schedule_engines.h"

#include "schedule_plan.h"

enum { UP = SCHEDULE_UP, COMPUTE = SCHEDULE_COMPUTE, DOWN = SCHEDULE_DOWN };

void schedule_engines_start(struct schedule_engines *engines, const struct schedule_rates *rates,
                            struct schedule_span *memory, const int steps[SCHEDULE_ENGINES])
{
    *engines = (struct schedule_engines){.rates = rates};
    for (int e = 0; e < SCHEDULE_ENGINES; memory += steps[e++] + 1) {
        engines->did[e] = memory;
        memory[0] = (struct schedule_span){0, 0};
        engines->beside[e] = 1;
    }
}

static double later(double a, double b)
{
    return a > b ? a : b;
}

/* Returns the share of its rate that a copy has while one the other way keeps its own. */
static double share_beside(const struct schedule_rates *rates, int engine)
{
    const double own = engine == UP ? rates->up : rates->down,
                 other = engine == UP ? rates->down : rates->up;
    const double left = rates->both - other;
    return !(rates->both > 0) || left >= own ? 1 : left > 0 ? left / own : 0;
}

/* Returns when a copy ends that begins then and takes so long by itself. */
static double end_of_copy(struct schedule_engines *x, int engine, double begin, double ms)
{
    const int other = engine == UP ? DOWN : UP;
    const double share = share_beside(x->rates, engine);
    int *first = &x->beside[engine];
    double now = begin;
    if (share == 1)
        return begin + ms;
    while (*first <= x->done[other] && x->did[other][*first].end <= begin)
        ++*first;
    for (int i = *first; i <= x->done[other] && now + ms > x->did[other][i].begin; i++) {
        const struct schedule_span *beside = &x->did[other][i];
        if (now < beside->begin) {
            ms -= beside->begin - now;
            now = beside->begin;
        }
        const double meanwhile = (beside->end - now) * share;
        if (ms < meanwhile)
            return now + ms / share;
        ms -= meanwhile;
        now = beside->end;
    }
    return now + ms;
}

struct schedule_span schedule_engines_do(struct schedule_engines *x,
                                         const struct schedule_step *step,
                                         const struct schedule_work *work)
{
    const int e = step->engine;
    const bool alone = e == COMPUTE || work->elsewhere;
    double begin = x->did[e][x->done[e]].end;
    x->caller += schedule_caller_ms(x->rates, e, work->elsewhere ? 0 : work->ms, work->chain_ms);
    begin = later(later(begin, x->caller), work->not_before);
    for (int other = 0; other < SCHEDULE_ENGINES; other++)
        if (other != e && step->after[other] > 0)
            begin = later(begin, x->did[other][step->after[other]].end + x->rates->wait_ms);
    const double end = alone ? begin + work->ms : end_of_copy(x, e, begin, work->ms);
    const struct schedule_span span = {begin, end};
    x->ms = later(x->ms, end);
    x->did[e][++x->done[e]] = work->elsewhere ? (struct schedule_span){end, end} : span;
    return span;
}
