#include "lent_parts.h"

#include <stdlib.h>
#include <string.h>

#include "gpu/exec/blas/peer_tiles.h"
#include "gpu/plan/schedule_plan.h"
#include "ops/cut.h"

enum { UP = SCHEDULE_UP };

struct member {
    struct accel_call call; /* to whose operands `scheduled` points */
    struct scheduled scheduled;
    struct schedule schedule;
    int *tile, *owner; /* of each upload, in their order; negative: no other part has it */
};

/* A part of all. */
struct running {
    const struct split_part *part;
    const struct member *m;
    int number, upload;
    const double *there; /* of each shared tile: when it has come up, as far as is known */
};

static bool add(struct peer_tiles *table, struct member *m, int number,
                const struct accel_call *call, const struct split_part *part, int64_t memory_bytes)
{
    m->call = accel_cut_part(call, &part->region);
    if (!scheduled_describe(&m->call, &m->scheduled))
        return false;
    memory_bytes = scheduled_memory(&m->scheduled, memory_bytes);
    if (!split_lends(part))
        return schedule_make(&m->schedule, &m->scheduled.call, &part->rates, memory_bytes);
    struct schedule_call shape = m->scheduled.call;
    memcpy(shape.lent, part->lent, sizeof shape.lent);
    return schedule_make_by(&m->schedule, &part->by, &shape, &part->rates, memory_bytes) &&
           peer_tiles_add(table, number, &m->scheduled, &m->schedule, part->rates.up);
}

/* Makes the schedule anew, as the part's device does when it is known who brings what up. */
static bool order(const struct peer_tiles *table, struct member *m, int number,
                  const struct split_part *part, int64_t memory_bytes)
{
    struct schedule *s = &m->schedule;
    if (split_lends(part)) {
        schedule_free(s);
        if (!peer_tiles_schedule(table, number, &m->scheduled, &part->rates,
                                 scheduled_memory(&m->scheduled, memory_bytes), s))
            return false;
    }
    m->tile = malloc((size_t)(s->steps[UP] + 1) * sizeof *m->tile);
    m->owner = malloc((size_t)(s->steps[UP] + 1) * sizeof *m->owner);
    for (int n = 0, upload = 0; m->tile && m->owner && n < s->count; n++) {
        const struct schedule_step *step = &s->step[n];
        if (step->engine != UP)
            continue;
        m->tile[upload] = m->owner[upload] = -1;
        if (part->lent[step->operand] > 0) {
            const struct matrix key = peer_tiles_key(&m->scheduled, s, step);
            m->tile[upload] = peer_tiles_number(table, &key, &m->owner[upload]);
        }
        upload++;
    }
    return m->tile && m->owner;
}

/* Of a tile that comes from another device, all; else what crosses the link. */
static double bytes_of(const struct schedule *s, const struct schedule_step *step, bool lent)
{
    const struct schedule_tile tile = schedule_tile_of(s, step->operand, step->i, step->j);
    return lent ? (double)tile.rows * (double)tile.cols * (double)s->call.size[step->operand]
                : schedule_tile_bytes(s, step->operand, step->i, step->j);
}

/* Returns a step's end, if it may start so early. */
static double end_of(struct running *r, const struct schedule_step *step, double start)
{
    const struct schedule *s = &r->m->schedule;
    const struct schedule_rates *rates = &r->part->rates;
    if (step->engine == SCHEDULE_COMPUTE)
        return start + schedule_kernel_ms(s, rates, step->i, step->j, step->p);
    const double bytes = bytes_of(s, step, false) * 1e-6;
    if (step->engine == SCHEDULE_DOWN)
        return start + rates->copy_ms + bytes / rates->down;
    const int upload = r->upload++, tile = r->m->tile[upload];
    if (tile < 0 || r->m->owner[upload] == r->number)
        return start + rates->copy_ms + bytes / rates->up;
    start = start > r->there[tile] ? start : r->there[tile];
    return start + rates->copy_ms + bytes_of(s, step, true) * 1e-6 / rates->peer;
}

/* Simulates a part, if the tiles of the others are there when the last round says so. Sets when its
 * own are. Returns its end; negative: no memory. */
static double run_alone(struct running *r, double *up_at)
{
    const struct schedule *s = &r->m->schedule;
    double ms = 0, *end[SCHEDULE_ENGINES];
    int done[SCHEDULE_ENGINES] = {0};
    double *memory = calloc((size_t)(s->count + SCHEDULE_ENGINES), sizeof *memory);
    for (int e = 0, at = 0; e < SCHEDULE_ENGINES; at += s->steps[e++] + 1)
        end[e] = memory + at;
    r->upload = 0;
    for (int n = 0; memory && n < s->count; n++) {
        const struct schedule_step *step = &s->step[n];
        const int e = step->engine, upload = r->upload;
        double start = end[e][done[e]];
        for (int other = 0; other < SCHEDULE_ENGINES; other++)
            if (other != e && step->after[other] > 0 &&
                start < end[other][step->after[other]] + r->part->rates.wait_ms)
                start = end[other][step->after[other]] + r->part->rates.wait_ms;
        const double until = end_of(r, step, start);
        end[e][++done[e]] = until;
        if (e == UP && r->m->owner[upload] == r->number)
            up_at[r->m->tile[upload]] = until;
        ms = ms < until ? until : ms;
    }
    free(memory);
    return memory ? ms : -1;
}

/* Repeats all parts until no tile comes up later than in the round before: then each was copied
 * when it was there. A round settles at least the first tile that is not, so parts that wait for
 * each other never settle. */
static double settle(struct running *r, int count, int tiles, double *there, double *up_at)
{
    for (int round = 0; round < tiles + 2; round++) {
        double ms = 0;
        for (int i = 0; i < count; i++) {
            const double own = run_alone(&r[i], up_at);
            ms = own < 0 || ms < 0 ? -1 : ms < own ? own : ms;
        }
        if (ms < 0 || memcmp(there, up_at, (size_t)tiles * sizeof *there) == 0)
            return ms;
        memcpy(there, up_at, (size_t)tiles * sizeof *there);
    }
    return -1;
}

static void add_bytes(struct lent_times *times, const struct running *r)
{
    const struct schedule *s = &r->m->schedule;
    for (int n = 0, upload = 0; n < s->count; n++) {
        if (s->step[n].engine != UP)
            continue;
        const bool own = r->m->tile[upload] < 0 || r->m->owner[upload] == r->number;
        *(own ? &times->host_bytes : &times->lent_bytes) += bytes_of(s, &s->step[n], !own);
        upload++;
    }
}

bool lent_parts_run(const struct split *split, const struct accel_call *call,
                    const struct split_device *device, struct lent_times *times)
{
    struct member member[SPLIT_MOST] = {0};
    struct running running[SPLIT_MOST];
    struct peer_tiles *table = peer_tiles_new(split->count);
    bool made = table != NULL;
    *times = (struct lent_times){.ms = -1};
    for (int i = 0; made && i < split->count; i++)
        made = add(table, &member[i], i, call, &split->part[i],
                   device[split->part[i].device].memory_bytes);
    times->tiles = made ? peer_tiles_deal(table) : 0;
    double *there = calloc((size_t)times->tiles + 1, 2 * sizeof *there);
    made = made && there;
    if (made)
        peer_tiles_set_ahead(table, split->ahead);
    for (int i = 0; made && i < split->count; i++) {
        made = order(table, &member[i], i, &split->part[i],
                     device[split->part[i].device].memory_bytes);
        running[i] = (struct running){&split->part[i], &member[i], i, 0, there};
    }
    for (int i = 0; made && i < split->count; i++)
        add_bytes(times, &running[i]);
    if (made)
        times->ms = settle(running, split->count, times->tiles, there, there + times->tiles);
    for (int i = 0; i < split->count; i++) {
        schedule_free(&member[i].schedule);
        free(member[i].tile);
        free(member[i].owner);
    }
    free(there);
    if (table)
        peer_tiles_free(table);
    return made;
}
