#include "together.h"

#include <float.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/plan/plan_cache.h"
#include "gpu/exec/blas/peer_tiles.h"
#include "gpu/plan/simulate.h"
#include "gpu/plan/schedule_plan.h"

enum { UP = SCHEDULE_UP, COMPUTE = SCHEDULE_COMPUTE };

struct simulated_part {
    const struct split_part *part;
    struct accel_call call; /* to whose operands `scheduled` points */
    struct scheduled scheduled;
    struct schedule schedule;
    struct schedule_step *original; /* its steps, in the order in which they were made */
    int at;                         /* the next one */
    double *ends;                   /* of the engines' steps */
    struct simulator sim;
};

struct parts {
    struct peer_tiles *peer_tiles;
    struct simulated_part member[SPLIT_MOST];
    int count;
    int tiles;
    double *up_at; /* of each shared tile, when it has come up; negative: not yet */
};

/* Makes a part's schedule: if it lends nothing, one that it chooses for itself. */
static bool add_member(struct parts *p, int number, const struct accel_call *call,
                       const struct split_part *part, int64_t memory_bytes)
{
    struct simulated_part *m = &p->member[number];
    struct schedule *s = &m->schedule;
    const struct schedule_rates *rates = &part->rates;
    m->part = part;
    m->call = accel_cut_part(call, &part->region);
    if (!scheduled_describe(&m->call, &m->scheduled))
        return false;
    memory_bytes = scheduled_memory(&m->scheduled, memory_bytes);
    if (!split_lends(part))
        return plan_cache_make(s, &m->scheduled.call, rates, memory_bytes);
    memcpy(m->scheduled.call.lent, part->lent, sizeof part->lent);
    return schedule_make_by(s, &part->by, &m->scheduled.call, rates, memory_bytes) &&
           peer_tiles_add(p->peer_tiles, number, &m->scheduled, s, rates->up);
}

static struct schedule_step *copy_steps(const struct schedule_step *step, int count)
{
    struct schedule_step *copy = malloc((size_t)count * sizeof *copy);
    if (copy)
        memcpy(copy, step, (size_t)count * sizeof *copy);
    return copy;
}

/* Returns false without memory. */
static bool add_all(struct parts *p, const struct split *split, const struct accel_call *call,
                    const struct split_device *device)
{
    p->count = split->count;
    p->peer_tiles = peer_tiles_new(split->count);
    for (int i = 0; p->peer_tiles && i < p->count; i++) {
        const struct split_part *part = &split->part[i];
        struct simulated_part *m = &p->member[i];
        const struct schedule *s = &m->schedule;
        if (!add_member(p, i, call, part, device[part->device].memory_bytes))
            return false;
        m->ends = malloc((size_t)(s->count + SCHEDULE_ENGINES) * sizeof *m->ends);
        m->original = copy_steps(s->step, s->count);
        if (!m->ends || !m->original)
            return false;
    }
    p->tiles = p->peer_tiles ? peer_tiles_deal(p->peer_tiles) : 0;
    p->up_at = malloc((size_t)(p->tiles + 1) * sizeof *p->up_at);
    return p->up_at && p->tiles > 0; /* without memory, no tile is dealt out */
}

static void free_all(struct parts *p)
{
    for (int i = 0; i < p->count; i++) {
        schedule_free(&p->member[i].schedule);
        free(p->member[i].ends);
        free(p->member[i].original);
    }
    free(p->up_at);
    if (p->peer_tiles)
        peer_tiles_free(p->peer_tiles);
}

/* Puts all parts at their start, with steps in the order of so many tiles ahead. Returns false
 * without memory. */
static bool begin_all(struct parts *p, int ahead)
{
    for (int i = 0; i < p->tiles; i++)
        p->up_at[i] = -1;
    for (int i = 0; i < p->count; i++) {
        struct simulated_part *m = &p->member[i];
        m->at = 0;
        simulate_start(&m->sim, &m->part->rates, m->ends, m->schedule.steps);
        if (!split_lends(m->part))
            continue;
        schedule_free(&m->schedule);
        m->schedule.step = copy_steps(m->original, m->schedule.count);
        if (!m->schedule.step ||
            !peer_tiles_order(p->peer_tiles, i, &m->scheduled, &m->schedule, ahead))
            return false;
    }
    return true;
}

/* Sets what an upload takes, and when it may begin. Returns false if another part's has not been
 * simulated yet. *tile: the number of a shared tile that the part brings up, or negative. */
static bool time_upload(struct parts *p, int number, const struct schedule_step *step, int *tile,
                        struct simulate_work *work)
{
    const struct simulated_part *m = &p->member[number];
    const struct schedule *s = &m->schedule;
    const struct schedule_tile at = schedule_tile_of(s, step->operand, step->i, step->j);
    const double whole = (double)at.rows * (double)at.cols * (double)s->call.size[step->operand];
    const struct matrix key = peer_tiles_key(&m->scheduled, s, step);
    int owner = number;
    *tile = m->part->lent[step->operand] > 0 ? peer_tiles_number(p->peer_tiles, &key, &owner) : -1;
    if (*tile >= 0 && owner != number) {
        work->not_before = p->up_at[*tile];
        work->ms = m->part->rates.copy_ms + whole / m->part->rates.peer * 1e-6;
        work->elsewhere = true;
        *tile = -1;
        return work->not_before >= 0;
    }
    work->ms = schedule_upload_ms(s, &m->part->rates, step->operand, step->i, step->j);
    return true;
}

/* Goes on with a part until it waits for another one. Returns whether it did anything. */
static bool advance_part(struct parts *p, int number)
{
    struct simulated_part *m = &p->member[number];
    const struct schedule *s = &m->schedule;
    const struct schedule_rates *rates = &m->part->rates;
    const int before = m->at;
    for (; m->at < s->count; m->at++) {
        const struct schedule_step *step = &s->step[m->at];
        struct simulate_work work = {.ms = 0};
        int tile = -1;
        if (step->engine == UP) {
            if (!time_upload(p, number, step, &tile, &work))
                break;
        } else if (step->engine == COMPUTE) {
            work.ms = schedule_kernel_ms(s, rates, step->i, step->j, step->p);
            work.chain_ms = schedule_chain_ms(s, rates, step->i, step->j, step->p);
        } else {
            work.ms = schedule_copy_ms(s, rates, step->engine, step->operand, step->i, step->j);
        }
        const struct simulate_span span = simulate_step(&m->sim, step, &work);
        if (tile >= 0)
            p->up_at[tile] = span.end;
    }
    return m->at > before;
}

/* Returns when the last part is done; DBL_MAX: they wait for each other. */
static double run_all(struct parts *p)
{
    double ms = 0;
    for (bool any = true; any;) {
        any = false;
        for (int i = 0; i < p->count; i++)
            any |= advance_part(p, i);
    }
    for (int i = 0; i < p->count; i++) {
        const struct simulated_part *m = &p->member[i];
        ms = m->at < m->schedule.count ? DBL_MAX : ms < m->sim.ms ? m->sim.ms : ms;
    }
    return ms;
}

/* How far ahead parts may be, in halves of as many tiles as there are parts. Behind two that take
 * longer, none is looked at. */
static const int ways[] = {2, 3, 4, 6, 10, 20, 40};

bool together_ms(struct split *split, const struct accel_call *call,
                 const struct split_device *device)
{
    struct parts p = {.count = 0};
    double best = DBL_MAX;
    int worse = 0; /* the last ways */
    bool made = add_all(&p, split, call, device);
    for (int way = 0; made && worse < 2 && way < (int)(sizeof ways / sizeof *ways); way++) {
        const int ahead = (split->count * ways[way] + 1) / 2;
        made = begin_all(&p, ahead);
        const double ms = made ? run_all(&p) : DBL_MAX;
        if (ms >= best) {
            worse++;
            continue;
        }
        worse = 0;
        best = ms;
        split->ahead = ahead;
        split->ms = ms;
        for (int i = 0; i < p.count; i++)
            split->part[i].ms = p.member[i].sim.ms;
    }
    free_all(&p);
    return made && best < DBL_MAX;
}
