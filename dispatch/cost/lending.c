#include "lending.h"

#include <float.h>
#include <string.h>

#include "call/matrix.h"
#include "gpu/plan/plan_cache.h"
#include "gpu/plan/schedule_plan.h"
#include "gpu/plan/scheduled.h"
#include "ops/op.h"
#include "part_ms.h"

enum { C = SCHEDULE_C, OPERANDS = SCHEDULE_OPERANDS, GROUPS = 2 };

/* ---- Lines that several parts have ---- */

/* Of an operand: all of it that a part needs, or one of the two groups of a triangle's. */
struct lines {
    struct matrix of;
    bool across;
};

static bool are_same(const struct lines *a, const struct lines *b)
{
    return a->of.ptr == b->of.ptr && a->of.rows == b->of.rows && a->of.cols == b->of.cols &&
           a->of.ld == b->of.ld && a->across == b->across;
}

/* Returns lines of a factor of rank-k, `count` from the line `from` on. */
static struct lines lines_at(const struct scheduled_operand *operand, int64_t from, int64_t count)
{
    const struct accel_span *x = operand->x;
    const struct matrix all = matrix_of_span(x);
    return operand->across ? (struct lines){matrix_part(all, 0, from, x->rows, count), true}
                           : (struct lines){matrix_part(all, from, 0, count, x->cols), false};
}

/* Sets what a part needs of an operand. Returns its number of groups. */
static int lines_of(const struct scheduled *l, int number, struct lines lines[GROUPS])
{
    const struct scheduled_operand *operand = &l->operand[number];
    const struct accel_span *x = operand->x;
    const struct schedule_call *call = &l->call;
    int count = 0;
    if (number == C || call->kind == SCHEDULE_BATCH || !x || call->in_place[number] || call->k == 0)
        return 0;
    if (call->kind != SCHEDULE_RANK_K) {
        lines[0] = (struct lines){matrix_of_span(x), operand->across};
        return 1;
    }
    if (call->head > 0 && schedule_needed(call, number, call->head, 0) > 0)
        lines[count++] = lines_at(operand, 0, call->head);
    if (schedule_needed(call, number, 0, call->m - call->head) > 0)
        lines[count++] =
            lines_at(operand, call->head > 0 ? call->head + l->gap : 0, call->m - call->head);
    return count;
}

struct needs {
    int count[OPERANDS];
    struct lines lines[OPERANDS][GROUPS];
};

static bool has(const struct needs *needs, int operand, const struct lines *lines)
{
    for (int i = 0; i < needs->count[operand]; i++)
        if (are_same(&needs->lines[operand][i], lines))
            return true;
    return false;
}

/* Returns the share of some lines that others than a part bring up. */
static double lent_share(const struct split_part *part, const struct needs *needs, int parts,
                         int own, int operand, const struct lines *lines)
{
    double up = 0;
    for (int i = 0; i < parts; i++) {
        if (!has(&needs[i], operand, lines))
            continue;
        if (!(part[i].rates.peer > LENDING_GAIN * part[i].rates.up))
            return 0;
        up += part[i].rates.up;
    }
    return 1 - part[own].rates.up / up;
}

static bool may_lend(const struct split_part *part, int parts)
{
    int count = 0;
    for (int i = 0; i < parts; i++)
        count += part[i].rates.peer > LENDING_GAIN * part[i].rates.up;
    return count > 1;
}

bool lending_find(struct split_part *part, int parts, const struct accel_call *whole,
                  unsigned never)
{
    struct needs needs[SPLIT_MOST];
    bool any = false;
    for (int i = 0; i < parts; i++) {
        memset(part[i].lent, 0, sizeof part[i].lent);
        part[i].by = (struct schedule_params){0};
    }
    if (!may_lend(part, parts))
        return false;
    for (int i = 0; i < parts; i++) {
        struct scheduled scheduled;
        needs[i] = (struct needs){.count = {0}};
        if (split_is_empty(&part[i]))
            continue;
        const struct accel_call call = accel_cut_part(whole, &part[i].region);
        for (int x = 0; x < C && scheduled_describe(&call, &scheduled); x++)
            needs[i].count[x] = never & 1u << x ? 0 : lines_of(&scheduled, x, needs[i].lines[x]);
    }
    for (int i = 0; i < parts; i++)
        for (int x = 0; x < C; x++) {
            double all = 0, lent = 0;
            for (int n = 0; n < needs[i].count[x]; n++) {
                const struct lines *lines = &needs[i].lines[x][n];
                const double bytes = (double)lines->of.rows * (double)lines->of.cols;
                all += bytes;
                lent += bytes * lent_share(part, needs, parts, i, x, lines);
            }
            part[i].lent[x] = lent > 0 ? lent / all : 0;
            any |= lent > 0;
        }
    return any;
}

/* ---- Schedules with the same tiles ---- */

/* Tiles of a triangle's lines are the same for all parts that have these lines if they are equally
 * long. */
static struct schedule_params agree(struct schedule_params common,
                                    const struct schedule_call *shape)
{
    struct schedule_params by = part_fit(common, shape);
    if (shape->kind == SCHEDULE_RANK_K)
        by.rows = by.cols = common.rows;
    return by;
}

static unsigned lent_of(const struct split_part *part)
{
    unsigned operands = 0;
    for (int x = 0; x < OPERANDS; x++)
        operands |= part->lent[x] > 0 ? 1u << x : 0;
    return operands;
}

unsigned lending_ms(struct split_part *part, const struct accel_call *call, int64_t memory_bytes,
                    struct schedule_params *common)
{
    const struct split_device device = {part->rates, memory_bytes, 0};
    const unsigned lent = lent_of(part);
    struct schedule_params own = *common;
    struct scheduled scheduled;
    struct schedule s = {.count = 0};
    if (lent == 0) {
        part->ms = part_ms(call, &device, &part->rates, &own);
        return 0;
    }
    if (!scheduled_describe(call, &scheduled))
        return lent;
    struct schedule_call *shape = &scheduled.call;
    memcpy(shape->lent, part->lent, sizeof shape->lent);
    const int64_t tiles_bytes = scheduled_memory(&scheduled, memory_bytes);
    if (common->rows == 0 && plan_cache_make(&s, shape, &part->rates, tiles_bytes)) {
        *common = s.by;
        schedule_free(&s);
    }
    if (common->rows == 0) /* the device has no memory for any */
        return lent;
    part->by = agree(*common, shape);
    if (!schedule_make_by(&s, &part->by, shape, &part->rates, tiles_bytes))
        return lent;
    unsigned never = s.steps[SCHEDULE_COMPUTE] == 1 ? lent : 0;
    for (int x = 0; x < OPERANDS; x++)
        never |= lent & 1u << x && !schedule_brings_once(&s, x) ? 1u << x : 0;
    part->ms = s.ms;
    schedule_free(&s);
    return never;
}
