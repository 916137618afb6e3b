#include "together.h"

#include <float.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/choices.h"
#include "gpu/peers.h"
#include "gpu/schedule_plan.h"

enum { UP = SCHEDULE_UP, COMPUTE = SCHEDULE_COMPUTE };

struct member {
    const struct split_part *part;
    struct accel_call call; /* to whose operands `scheduled` points */
    struct scheduled scheduled;
    struct schedule schedule;
    struct schedule_step *original; /* its steps, in the order in which they were made */
    int at;                         /* the next one */
    double *end[SCHEDULE_ENGINES];
    int done[SCHEDULE_ENGINES];
    double ms;
};

struct parts {
    struct peers *peers;
    struct member member[SPLIT_MOST];
    int count;
    int cells;
    double *up_at; /* of each shared cell, when it has come up; negative: not yet */
};

/* Makes a part's schedule: if it lends nothing, one that it chooses for itself. */
static bool add_member(struct parts *p, int number, const struct accel_call *call,
                       const struct split_part *part, int64_t memory_bytes)
{
    struct member *m = &p->member[number];
    struct schedule *s = &m->schedule;
    const struct schedule_rates *rates = &part->rates;
    m->part = part;
    m->call = accel_cut_part(call, &part->region);
    if (!scheduled_describe(&m->call, &m->scheduled))
        return false;
    memory_bytes = scheduled_memory(&m->scheduled, memory_bytes);
    if (!split_lends(part))
        return choices_make(s, &m->scheduled.call, rates, memory_bytes);
    memcpy(m->scheduled.call.lent, part->lent, sizeof part->lent);
    return schedule_make_by(s, &part->by, &m->scheduled.call, rates, memory_bytes) &&
           peers_add(p->peers, number, &m->scheduled, s, rates->up);
}

static struct schedule_step *copy_of(const struct schedule_step *step, int count)
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
    p->peers = peers_new(split->count);
    for (int i = 0; p->peers && i < p->count; i++) {
        const struct split_part *part = &split->part[i];
        struct member *m = &p->member[i];
        const struct schedule *s = &m->schedule;
        if (!add_member(p, i, call, part, device[part->device].memory_bytes))
            return false;
        double *memory = malloc((size_t)(s->count + SCHEDULE_ENGINES) * sizeof *memory);
        for (int e = 0, at = 0; memory && e < SCHEDULE_ENGINES; at += s->steps[e++] + 1)
            m->end[e] = memory + at; /* [0]: before the first step */
        m->original = copy_of(s->step, s->count);
        if (!memory || !m->original)
            return false;
    }
    p->cells = p->peers ? peers_deal(p->peers) : 0;
    p->up_at = malloc((size_t)(p->cells + 1) * sizeof *p->up_at);
    return p->peers && p->up_at;
}

static void free_all(struct parts *p)
{
    for (int i = 0; i < p->count; i++) {
        schedule_free(&p->member[i].schedule);
        free(p->member[i].end[0]);
        free(p->member[i].original);
    }
    free(p->up_at);
    if (p->peers)
        peers_free(p->peers);
}

/* Puts all parts at their start, with steps in the order of so many cells ahead. Returns false without memory. */
static bool begin_all(struct parts *p, int ahead)
{
    for (int i = 0; i < p->cells; i++)
        p->up_at[i] = -1;
    for (int i = 0; i < p->count; i++) {
        struct member *m = &p->member[i];
        m->at = 0;
        m->ms = 0;
        for (int e = 0; e < SCHEDULE_ENGINES; e++)
            m->end[e][m->done[e] = 0] = 0;
        if (!split_lends(m->part))
            continue;
        schedule_free(&m->schedule);
        m->schedule.step = copy_of(m->original, m->schedule.count);
        if (!m->schedule.step || !peers_order(p->peers, i, &m->scheduled, &m->schedule, ahead))
            return false;
    }
    return true;
}

/* Sets the time of an upload, and when it may begin. Returns false if another part's has not been simulated yet. number: its cell's, or negative. */
static bool time_upload(struct parts *p, int number, const struct schedule_step *step, int *cell,
                        double *start, double *ms)
{
    const struct member *m = &p->member[number];
    const struct schedule *s = &m->schedule;
    const struct schedule_cell at = schedule_cell_of(s, step->operand, step->i, step->j);
    const double whole = (double)at.rows * (double)at.cols * (double)s->call.size[step->operand];
    const struct peers_cell key = peers_cell_of(&m->scheduled, s, step);
    int owner = number;
    *cell = m->part->lent[step->operand] > 0 ? peers_number(p->peers, &key, &owner) : -1;
    if (*cell >= 0 && owner != number) {
        const double there = p->up_at[*cell];
        *start = *start > there ? *start : there;
        *ms = m->part->rates.copy_ms + whole / m->part->rates.peer * 1e-6;
        *cell = -1;
        return there >= 0;
    }
    *ms = m->part->rates.copy_ms +
          schedule_cell_bytes(s, step->operand, step->i, step->j) / m->part->rates.up * 1e-6;
    return true;
}

/* Goes on with a part until it waits for another one. Returns whether it did anything. */
static bool go_on(struct parts *p, int number)
{
    struct member *m = &p->member[number];
    const struct schedule *s = &m->schedule;
    const struct schedule_rates *rates = &m->part->rates;
    const int before = m->at;
    for (; m->at < s->count; m->at++) {
        const struct schedule_step *step = &s->step[m->at];
        const int e = step->engine;
        double start = m->end[e][m->done[e]], ms;
        int cell = -1;
        for (int other = 0; other < SCHEDULE_ENGINES; other++) {
            const double end = m->end[other][step->after[other]] + rates->wait_ms;
            if (other != e && step->after[other] > 0 && start < end)
                start = end;
        }
        if (e == UP && !time_upload(p, number, step, &cell, &start, &ms))
            break;
        if (e == COMPUTE)
            ms = schedule_kernel_ms(s, rates, step->i, step->j, step->p);
        else if (e != UP)
            ms = schedule_copy_ms(s, rates, e, step->operand, step->i, step->j);
        m->end[e][++m->done[e]] = start + ms;
        if (cell >= 0)
            p->up_at[cell] = start + ms;
        m->ms = m->ms < start + ms ? start + ms : m->ms;
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
            any |= go_on(p, i);
    }
    for (int i = 0; i < p->count; i++) {
        const struct member *m = &p->member[i];
        ms = m->at < m->schedule.count ? DBL_MAX : ms < m->ms ? m->ms : ms;
    }
    return ms;
}

/* How far ahead parts may be, in halves of as many cells as there are parts. Behind two that take longer, none is looked at. */
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
            split->part[i].ms = p.member[i].ms;
    }
    free_all(&p);
    return made && best < DBL_MAX;
}
