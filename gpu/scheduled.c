#include "scheduled.h"

#include "choices.h"
#include "work.h"
#include "ops/op.h"
#include "ops/shape.h"

enum { A = SCHEDULE_A, C = SCHEDULE_C, OPERANDS = SCHEDULE_OPERANDS };

/* A panel whose old values are kept has at most so many bytes, or one column. */
#define OLD_BYTES ((int64_t)64 << 20)

/* A panel's columns do not depend on each other, but its rows do. */
static bool keeps_old(const struct scheduled *l)
{
    const struct accel_span *c = l->operand[C].x;
    return schedule_in_panels(&l->call) && l->call.reads && !l->call.in_place[C] &&
           (l->operand[C].across ||
            !lane_column_fits(gpu_device_ld(c->rows, c->dtype), gpu_size_of(c)));
}

bool scheduled_describe(const struct accel_call *call, struct scheduled *l)
{
    const struct accel_op *op = accel_op_of(call->routine);
    struct schedule_call *s = &l->call;
    *l = (struct scheduled){.keeps_old = false};
    if (!op->scheduled || call->batch != 1)
        return false;
    op->scheduled(call, l);
    const struct accel_span *c = l->operand[C].x;
    if (c->rows == 0 || c->cols == 0)
        return false;
    s->reads = accel_is_read(call, c) && !(schedule_in_panels(s) && s->k == 0);
    for (int x = A; x < OPERANDS; x++) {
        const struct accel_span *operand = l->operand[x].x;
        s->size[x] = gpu_size_of(operand ? operand : c);
        s->across[x] = l->operand[x].across;
        s->in_place[x] = operand && gpu_in_place(operand);
    }
    l->keeps_old = keeps_old(l);
    if (!l->keeps_old)
        return true;
    const int64_t widest = OLD_BYTES / s->size[C] / s->m;
    s->widest = widest < 64 ? accel_max(1, widest) : widest / 64 * 64;
    return true;
}

/* Returns whether memory could have the operands. Blocks of others cannot be counted, nor their bytes. */
static bool may_exist(const struct scheduled *l)
{
    const double longest = 1e10, most_bytes = 1e15;
    const struct schedule_call *s = &l->call;
    bool may = (double)s->m < longest && (double)s->n < longest && (double)s->k < longest;
    for (int i = A; may && i < OPERANDS; i++) {
        const struct accel_span *x = l->operand[i].x;
        may = !x || (double)x->rows * (double)x->cols * (double)s->size[i] < most_bytes;
    }
    return may;
}

bool scheduled_is_divided(const struct accel_call *call, struct scheduled *l)
{
    return scheduled_describe(call, l) && may_exist(l) && !schedule_stays_whole(&l->call);
}

int64_t scheduled_memory(const struct scheduled *l, int64_t device_bytes)
{
    for (int i = 0; i < SCHEDULED_OWN; i++)
        device_bytes -= l->own_bytes[i];
    return device_bytes;
}

/* Returns bits 1 << enum schedule_operand. */
static unsigned operands_of(const struct accel_call *call, const struct scheduled *l, unsigned kept)
{
    unsigned operands = 0;
    for (int x = A; x < C; x++)
        if (l->operand[x].x && kept & 1u << (l->operand[x].x - call->span))
            operands |= 1u << x;
    return operands;
}

double scheduled_ms(const struct accel_call *call, const struct scheduled *l,
                    const struct schedule_rates *rates, int64_t device_bytes, unsigned kept)
{
    return choices_ms(&l->call, rates, scheduled_memory(l, device_bytes),
                      operands_of(call, l, kept));
}

double scheduled_floor_ms(const struct accel_call *call, const struct scheduled *l,
                          const struct schedule_rates *rates, unsigned kept)
{
    const unsigned operands = operands_of(call, l, kept);
    struct schedule_call rest = l->call;
    for (int x = A; x < C; x++)
        rest.in_place[x] = rest.in_place[x] || operands & 1u << x;
    return schedule_floor(&rest, rates);
}
