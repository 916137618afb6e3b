#include "schedule_clock.h"

#include "schedule_plan.h"

void clock_set(struct schedule_clock *clock, const struct schedule *s,
               const struct schedule_rates *rates)
{
    *clock = (struct schedule_clock){.s = s, .rates = rates, .head = schedule_head(s)};
}

static int edge_of(const struct schedule_clock *clock, int i, int count)
{
    return i == count - 1 ? 2 : i == clock->head - 1 ? 1 : 0;
}

double clock_copy_ms(struct schedule_clock *clock, int engine, int operand, int i, int j)
{
    const struct schedule_cells *cells = &clock->s->cells[operand];
    double *ms = &clock->copy[engine == SCHEDULE_UP][operand][edge_of(clock, i, cells->rows)]
                             [edge_of(clock, j, cells->cols)][i == j];
    if (*ms == 0)
        *ms = schedule_copy_ms(clock->s, clock->rates, engine, operand, i, j);
    return *ms;
}

double clock_kernel_ms(struct schedule_clock *clock, int i, int j, int p)
{
    const struct schedule *s = clock->s;
    const bool diagonal = s->call.kind == SCHEDULE_RANK_K ? i == j : i == p;
    double *ms = &clock->kernel[edge_of(clock, i, s->cells[SCHEDULE_C].rows)]
                               [edge_of(clock, j, s->cells[SCHEDULE_C].cols)]
                               [edge_of(clock, p, s->cells[SCHEDULE_A].cols)][diagonal];
    if (*ms == 0)
        *ms = schedule_kernel_ms(s, clock->rates, i, j, p);
    return *ms;
}

void clock_do(struct schedule_clock *clock, const struct schedule_step *step, double ms)
{
    struct simulate_work work = {.ms = ms};
    if (step->engine == SCHEDULE_COMPUTE)
        work.chain_ms = schedule_chain_ms(clock->s, clock->rates, step->i, step->j, step->p);
    simulate_step(&clock->sim, step, &work);
}

double clock_least(const struct schedule_clock *clock)
{
    const struct simulator *sim = &clock->sim;
    double least = sim->ms;
    for (int e = 0; e < SCHEDULE_ENGINES; e++) {
        const double end = sim->did[e][sim->done[e]].end + clock->left[e];
        least = least < end ? end : least;
    }
    return least;
}
