#include "schedule_plan.h"

#include <stdlib.h>

#include "gpu/pack/pack.h"
#include "call/call.h"

enum { A = SCHEDULE_A, B = SCHEDULE_B, C = SCHEDULE_C, OPERANDS = SCHEDULE_OPERANDS };
enum { UP = SCHEDULE_UP, COMPUTE = SCHEDULE_COMPUTE, DOWN = SCHEDULE_DOWN };

/* ---- Groups ---- */

static int64_t group_of(const struct schedule *s)
{
    return accel_max(1, s->by.cols);
}

/* Returns the products of the groups that are shorter than the others at one end, the first `count`
 * of them. */
static int64_t short_products(const struct schedule *s, int count)
{
    int64_t products = 0;
    for (int i = 0; i < count; i++)
        products += accel_max(1, group_of(s) >> (s->by.share - i));
    return products;
}

/* Returns the groups that are not at an end. */
static int64_t long_groups(const struct schedule *s)
{
    const int64_t all = s->call.products - 2 * short_products(s, s->by.share);
    return (all + group_of(s) - 1) / group_of(s);
}

/* The search asks often: without a division. */
int64_t schedule_group_start(const struct schedule *s, int group)
{
    const int share = s->by.share;
    const int left = s->tiles[C].cols - group; /* groups from this one on */
    const int64_t all = s->call.products;
    if (group <= share)
        return accel_min(short_products(s, group), all);
    if (left <= share)
        return all - short_products(s, left > 0 ? left : 0);
    return short_products(s, share) + (group - share) * group_of(s);
}

/* ---- Matrices ---- */

int64_t schedule_matrix_bytes(const struct schedule_call *call, int operand)
{
    const int64_t rows = operand == B ? call->k : call->m;
    const int64_t cols = operand == A ? call->k : call->n;
    return pack_copy_bytes(rows, cols, call->size[operand], call->across[operand]);
}

static bool all_are_there(const struct schedule *s, int operand)
{
    return s->slots[operand] == 1;
}

/* Returns the number of a product's matrix, without those that come in turn. The search asks often,
 * mostly for 1. */
static int64_t run_of(const struct schedule_sharing *x, int64_t product)
{
    return x->repeat == 1 ? product : product / x->repeat;
}

/* Returns how many matrices the first products use. */
static int64_t used_by(const struct schedule_sharing *x, int64_t products)
{
    return accel_min(x->distinct, run_of(x, products + x->repeat - 1));
}

struct schedule_tile schedule_group_tile(const struct schedule *s, int operand, int group)
{
    const struct schedule_call *call = &s->call;
    const struct schedule_sharing *x = &call->sharing[operand];
    const int64_t first = schedule_group_start(s, group), end = schedule_group_start(s, group + 1);
    const int64_t rows = operand == B ? call->k : call->m;
    const int64_t cols = operand == A ? call->k : call->n;
    struct schedule_tile tile = {.rows = rows * cols};
    if (all_are_there(s, operand)) {
        tile.col = used_by(x, first);
        tile.cols = used_by(x, end) - tile.col;
    } else {
        tile.col = run_of(x, first);
        tile.cols = accel_min(x->distinct, run_of(x, end - 1) + 1 - tile.col);
    }
    return tile;
}

int64_t schedule_matrix_at(const struct schedule *s, int operand, int group, int64_t product)
{
    const struct schedule_sharing *x = &s->call.sharing[operand];
    const int slots = s->slots[operand];
    const int64_t first =
        all_are_there(s, operand) ? 0 : schedule_group_start(s, group) / x->repeat;
    return group % slots * s->slot_bytes[operand] +
           (product / x->repeat - first) % x->distinct * schedule_matrix_bytes(&s->call, operand);
}

/* ---- Slots ---- */

/* Groups of each operand that are on the device at once, at most and at least: one that goes up,
 * one that is used, and of the result one that comes down. */
enum { MOST_BUFFERS = 4, LEAST_BUFFERS = 2 };

static bool is_copied(const struct schedule_call *call, int operand)
{
    return !call->in_place[operand] && (operand == C || call->k > 0);
}

static bool is_shared(const struct schedule_call *call, int operand)
{
    return operand != C && call->sharing[operand].distinct < call->products;
}

/* Returns the most matrices of an operand that one group uses. */
static int64_t most_used(const struct schedule *s, int operand)
{
    const struct schedule_sharing *x = &s->call.sharing[operand];
    return accel_min(x->distinct, (group_of(s) + 2 * x->repeat - 2) / x->repeat);
}

/* stays: operands of which all matrices have a slot, as bits. Returns whether that fits. */
static bool take_slots(struct schedule *s, unsigned stays, int buffers, int64_t memory_bytes)
{
    s->bytes = 0;
    for (int x = A; x < OPERANDS; x++) {
        const int64_t bytes = schedule_matrix_bytes(&s->call, x);
        const bool all = stays >> x & 1 || s->tiles[C].cols == 1;
        s->slots[x] = !is_copied(&s->call, x) ? 0
                      : all                   ? 1
                                              : (int)accel_min(buffers, s->tiles[C].cols);
        const int64_t matrices = all ? s->call.sharing[x].distinct : most_used(s, x);
        s->slot_bytes[x] = s->slots[x] > 0 ? matrices * bytes : 0;
        if (s->slot_bytes[x] > (memory_bytes - s->bytes) / accel_max(1, s->slots[x]))
            return false;
        s->bytes += s->slots[x] * s->slot_bytes[x];
    }
    return true;
}

/* Shared matrices stay on the device if they fit, all or those of one operand: then none goes up
 * twice. */
static bool choose_slots(struct schedule *s, int64_t memory_bytes)
{
    static const unsigned ways[] = {1 << A | 1 << B, 1 << A, 1 << B, 0};
    unsigned shared = 0;
    for (int x = A; x < C; x++)
        shared |= is_shared(&s->call, x) ? 1u << x : 0;
    for (int way = 0; way < 4; way++) {
        if (ways[way] & ~shared)
            continue;
        s->whole = ways[way] == shared;
        for (int buffers = MOST_BUFFERS; buffers >= LEAST_BUFFERS; buffers--)
            if (take_slots(s, ways[way], buffers, memory_bytes))
                return true;
    }
    return false;
}

/* ---- Steps ---- */

static struct schedule_step *add_step(struct schedule *s, int engine, int operand, int group)
{
    struct schedule_step *step = schedule_put(s, engine);
    step->operand = (uint8_t)operand;
    step->j = group;
    step->slot = group % (int)accel_max(1, s->slots[operand]);
    step->first = step->last = engine == COMPUTE;
    return step;
}

/* A slot is filled again when the group that it held has been computed, and of C has come down. */
static void add_group(struct schedule *s, int group)
{
    const bool comes_down = !s->call.in_place[C];
    for (int x = A; x < OPERANDS; x++) {
        const int before = all_are_there(s, x) ? 0 : (int)accel_max(0, group + 1 - s->slots[x]);
        if (!is_copied(&s->call, x) || (x == C && !s->call.reads) ||
            schedule_group_tile(s, x, group).cols == 0)
            continue;
        struct schedule_step *up = add_step(s, UP, x, group);
        up->after[COMPUTE] = before;
        up->after[DOWN] = x == C ? before : 0;
    }
    struct schedule_step *kernel = add_step(s, COMPUTE, C, group);
    kernel->after[UP] = s->steps[UP];
    if (comes_down && !s->call.reads)
        kernel->after[DOWN] = (int32_t)accel_max(0, group + 1 - s->slots[C]);
    if (comes_down)
        add_step(s, DOWN, C, group)->after[COMPUTE] = group + 1;
}

bool schedule_make_groups(struct schedule *s, const struct schedule_rates *rates,
                          int64_t memory_bytes)
{
    const int64_t groups = long_groups(s) + 2 * s->by.share;
    if (groups > INT32_MAX / 8 || long_groups(s) < 1)
        return false;
    for (int x = A; x < OPERANDS; x++)
        s->tiles[x] = (struct schedule_tiles){1, x == C || s->call.k > 0 ? (int)groups : 0};
    s->step = NULL;
    if (!choose_slots(s, memory_bytes))
        return false;
    s->step = malloc((size_t)groups * (OPERANDS + 2) * sizeof *s->step);
    if (!s->step)
        return false;
    for (int group = 0; group < groups; group++)
        add_group(s, group);
    const struct schedule_times times = schedule_simulate(s, rates);
    s->ms = times.ms;
    if (times.first < 0)
        schedule_free(s);
    return times.first >= 0;
}

/* ---- The search ---- */

/* Shared matrices of which a group uses the last ones, and the next group too, would go up twice
 * where they cannot stay. */
static int64_t whole_runs(const struct schedule_call *call, int64_t group)
{
    for (int x = A; x < C; x++)
        if (call->sharing[x].repeat < group)
            group -= group % call->sharing[x].repeat;
    return group;
}

enum { SHARES = 4 };

static void try_group(struct schedule *best, int64_t group, const struct schedule_rates *rates,
                      int64_t memory_bytes, double *left)
{
    for (int share = 0; share < SHARES && (share == 0 || group >> share > 0); share++) {
        struct schedule s = {.call = best->call, .by = {.cols = group, .share = share}};
        if (best->step && *left <= 0)
            return;
        if (!schedule_make_groups(&s, rates, memory_bytes))
            continue;
        *left -= s.count + s.tiles[C].cols;
        schedule_keep_faster(best, &s);
    }
}

/* Groups get smaller. Where one kernel is enough, or memory is so short that few fit, the largest
 * ones are taken. */
bool schedule_make_batch(struct schedule *best, const struct schedule_call *call,
                         const struct schedule_rates *rates, int64_t memory_bytes, double most,
                         double tries)
{
    const int64_t widest = call->widest > 0 ? call->widest : call->products;
    *best = (struct schedule){.call = *call};
    for (int64_t count = 1, before = 0;; count += accel_max(1, count / 3)) {
        const int64_t groups = accel_min(count, call->products);
        const int64_t group =
            whole_runs(call, accel_min(widest, (call->products + groups - 1) / groups));
        if (best->step && (schedule_stays_whole(call) || (double)groups > most || tries <= 0))
            break;
        if (group != before)
            try_group(best, group, rates, memory_bytes, &tries);
        before = group;
        if (groups == call->products)
            break;
    }
    return best->step != NULL;
}
