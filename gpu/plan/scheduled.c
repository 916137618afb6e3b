#include "scheduled.h"

#include "plan_cache.h"
#include "gpu/pack/chunks.h"
#include "call/operation.h"
#include "call/shape.h"

enum { A = SCHEDULE_A, C = SCHEDULE_C, OPERANDS = SCHEDULE_OPERANDS };

/* A panel whose old values are kept has at most so many bytes, or one column. */
#define OLD_BYTES ((int64_t)64 << 20)

/* A panel's columns do not depend on each other, but its rows do. */
static bool keeps_old(const struct scheduled *l)
{
    const struct accel_span *c = l->operand[C].x;
    return schedule_in_panels(&l->call) && l->call.reads && !l->call.in_place[C] &&
           (l->operand[C].across ||
            !pack_column_fits(gpu_device_ld(c->rows, c->dtype), gpu_size_of(c)));
}

/* ---- Batches ---- */

/* Returns which of an operand's matrices products use, if they follow each other with a regular
 * pattern: one for all, each for some in a row, some in turn. Other pointers count as different
 * matrices. */
static struct schedule_sharing sharing_of(const struct accel_span *x, int64_t batch)
{
    const struct schedule_sharing none = {1, batch}, one = {1, 1};
    int64_t repeat = 1, runs = 1;
    if (!x->array)
        return x->stride == 0 ? one : none;
    while (repeat < batch && x->array[repeat] == x->array[0])
        repeat++;
    if (repeat == batch)
        return one;
    while (runs * repeat < batch && x->array[runs * repeat] != x->array[0])
        runs++;
    if (repeat == 1 && runs == batch)
        return none;
    for (int64_t i = 0; i < batch; i++)
        if (x->array[i] != x->array[i / repeat % runs * repeat])
            return none;
    return (struct schedule_sharing){repeat, runs};
}

int64_t scheduled_distinct(const struct accel_span *x, int64_t batch)
{
    return sharing_of(x, batch).distinct;
}

bool scheduled_side_by_side(const struct accel_span *x, int64_t batch, struct accel_span *all)
{
    const struct schedule_sharing sharing = sharing_of(x, batch);
    struct accel_span one = *x;
    int64_t step, bytes;
    bool is = x->inc == 0 && accel_mul(x->ld, x->cols, &step) &&
              accel_mul(step, gpu_size_of(x), &bytes) &&
              accel_mul(x->cols, sharing.distinct, &one.cols) &&
              (x->array || sharing.distinct == 1 || x->stride == step);
    for (int64_t i = 1; is && x->array && i < sharing.distinct; i++)
        is = (uintptr_t)x->array[i * sharing.repeat] ==
             (uintptr_t)x->array[0] + (uintptr_t)(i * bytes);
    one.ptr = accel_matrix_of(x, 0);
    one.stride = 0;
    one.array = NULL;
    is = is && accel_extent(&one, 1) >= 0;
    if (is)
        *all = one;
    return is;
}

/* Returns whether a stride leads from matrix to matrix. */
static bool is_strided(const struct scheduled *l, int operand)
{
    const struct accel_span *x = l->operand[operand].x;
    const int64_t distinct = l->call.sharing[operand].distinct;
    return !x ||
           (l->call.in_place[operand] ? !x->array : distinct == 1 || distinct == l->call.products);
}

static void describe_batch(const struct accel_call *call, struct scheduled *l)
{
    struct schedule_call *s = &l->call;
    bool strided = true;
    s->kind = SCHEDULE_BATCH;
    s->products = call->batch;
    s->per_term /= (double)call->batch; /* those of all products were counted */
    s->widest = KERNEL_BATCH_MOST;
    for (int i = A; i < OPERANDS; i++) {
        const struct accel_span *x = l->operand[i].x;
        s->sharing[i] =
            x && i != C ? sharing_of(x, call->batch) : (struct schedule_sharing){1, call->batch};
        strided = strided && is_strided(l, i);
    }
    l->own_bytes[0] = strided ? 0 : OPERANDS * call->batch * (int64_t)sizeof(gpu_address);
}

/* Describes one of the products. */
static struct schedule_call product_of(const struct schedule_call *batch)
{
    struct schedule_call product = *batch;
    product.kind = SCHEDULE_PRODUCT;
    product.widest = product.products = 0;
    memset(product.sharing, 0, sizeof product.sharing);
    return product;
}

/* Returns the milliseconds of all products by their own schedules; negative: they have none, or are
 * one kernel each. */
static double alone_ms(const struct schedule_call *batch, const struct schedule_rates *rates,
                       int64_t device_bytes, unsigned left_out)
{
    const struct schedule_call product = product_of(batch);
    if (schedule_stays_whole(&product))
        return -1;
    return (double)batch->products * plan_cache_ms(&product, rates, device_bytes, left_out);
}

bool scheduled_runs_alone(const struct scheduled *l, const struct schedule_rates *rates,
                          int64_t device_bytes)
{
    const double alone = alone_ms(&l->call, rates, device_bytes, 0);
    if (alone <= 0)
        return false;
    const double together = plan_cache_ms(&l->call, rates, scheduled_memory(l, device_bytes), 0);
    return together <= 0 || alone < together;
}

/* ---- All calls ---- */

bool scheduled_describe(const struct accel_call *call, struct scheduled *l)
{
    const struct accel_gpu *gpu = call->op->gpu;
    struct schedule_call *s = &l->call;
    *l = (struct scheduled){.of = call};
    if (!gpu || !gpu->scheduled || call->batch < 1)
        return false;
    gpu->scheduled(call, l);
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
    if (call->batch > 1)
        describe_batch(call, l);
    l->keeps_old = keeps_old(l);
    if (!l->keeps_old)
        return true;
    const int64_t widest = OLD_BYTES / s->size[C] / s->m;
    s->widest = widest < 64 ? accel_max(1, widest) : widest / 64 * 64;
    return true;
}

/* Returns whether memory could have the operands. Blocks of others cannot be counted, nor their
 * bytes. */
static bool may_exist(const struct scheduled *l)
{
    const double longest = 1e10, most_bytes = 1e15;
    const struct schedule_call *s = &l->call;
    bool may = (double)s->m < longest && (double)s->n < longest && (double)s->k < longest &&
               (double)s->products < longest;
    for (int i = A; may && i < OPERANDS; i++) {
        const struct accel_span *x = l->operand[i].x;
        const double matrices = s->products > 0 ? (double)s->sharing[i].distinct : 1;
        may = !x || (double)x->rows * (double)x->cols * (double)s->size[i] * matrices < most_bytes;
    }
    return may;
}

bool scheduled_is_divided(const struct scheduled *l)
{
    return may_exist(l) && !schedule_stays_whole(&l->call);
}

struct schedule_tile scheduled_stored(const struct scheduled *l, const struct schedule *s,
                                      int operand, int i, int j)
{
    const int64_t head = s->call.head;
    struct schedule_tile tile = schedule_tile_of(s, operand, i, j);
    tile.row += head > 0 && tile.row >= head ? l->gap : 0;
    tile.col += operand == C && head > 0 && tile.col >= head ? l->gap : 0;
    return l->operand[operand].across
               ? (struct schedule_tile){tile.col, tile.row, tile.cols, tile.rows}
               : tile;
}

int64_t scheduled_memory(const struct scheduled *l, int64_t device_bytes)
{
    for (int i = 0; i < SCHEDULED_OWN; i++)
        device_bytes -= l->own_bytes[i];
    return device_bytes;
}

/* Returns bits 1 << enum schedule_operand. */
static unsigned operands_of(const struct scheduled *l, unsigned kept)
{
    unsigned operands = 0;
    for (int x = A; x < C; x++)
        if (l->operand[x].x && kept & 1u << (l->operand[x].x - l->of->span))
            operands |= 1u << x;
    return operands;
}

double scheduled_ms(const struct scheduled *l, const struct schedule_rates *rates,
                    int64_t device_bytes, unsigned kept)
{
    const unsigned left_out = operands_of(l, kept);
    const double ms = plan_cache_ms(&l->call, rates, scheduled_memory(l, device_bytes), left_out);
    const double alone =
        l->call.products > 0 ? alone_ms(&l->call, rates, device_bytes, left_out) : -1;
    return alone > 0 && (ms <= 0 || alone < ms) ? alone : ms;
}

double scheduled_floor_ms(const struct scheduled *l, const struct schedule_rates *rates,
                          unsigned kept)
{
    const unsigned operands = operands_of(l, kept);
    struct schedule_call rest = l->call;
    for (int x = A; x < C; x++)
        rest.in_place[x] = rest.in_place[x] || operands & 1u << x;
    return schedule_floor(&rest, rates);
}
