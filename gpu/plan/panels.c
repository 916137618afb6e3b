#include "panels.h"

#include <math.h>
#include <stdlib.h>

#include "base/memory/lru.h"
#include "call/call.h"
#include "gpu/pack/chunks.h"
#include "panels_plan.h"
#include "schedule_plan.h"
#include "simulate.h"

enum { UP = SCHEDULE_UP, COMPUTE = SCHEDULE_COMPUTE, DOWN = SCHEDULE_DOWN };

/* ---- Shapes ---- */

/* Returns the most columns of so many rows that fit: whole lines of what is seen transposed, and
 * products like multiples of 64. */
static int64_t widest(int64_t size, bool across, int64_t rows, int64_t bytes)
{
    const int64_t line = across ? 64 / size : 1, ld = across ? rows : pack_ld(rows, size);
    const int64_t cols = bytes / (ld * size);
    return cols >= 64 ? cols / 64 * 64 : cols >= line ? cols / line * line : cols;
}

/* Whether blocks are seen transposed. */
static bool blocks_across(const struct panels_call *call)
{
    return call->kind == PANELS_APPLY ? call->other_across : call->across;
}

/* Whether panels begin at their diagonals, and the blocks that change them in the same row. */
static bool is_triangle(const struct panels_call *call)
{
    return call->kind == PANELS_CHOLESKY || call->triangle;
}

static int64_t rows_at(const struct panels_call *call, int64_t col)
{
    return is_triangle(call) ? call->m - col : call->m;
}

/* The columns that have reflectors or pivots. */
static int64_t factored_end(const struct panels_call *call)
{
    return call->kind == PANELS_APPLY ? call->order : accel_min(call->m, call->n);
}

int64_t panels_factored(const struct panels *p, int j)
{
    if (p->call.kind == PANELS_APPLY)
        return 0;
    return accel_max(0, accel_min(p->first[j + 1], factored_end(&p->call)) - p->first[j]);
}

struct schedule_tile panels_panel(const struct panels *p, int j)
{
    const int64_t col = p->first[j], rows = rows_at(&p->call, col);
    return (struct schedule_tile){p->call.m - rows, col, rows, p->first[j + 1] - col};
}

/* Returns the columns that come up in blocks: those of panel i; or of the other matrix, those of
 * sweep i that change panel j. */
static struct panels_columns source_columns(const struct panels *p, int i, int j)
{
    if (p->call.kind != PANELS_APPLY)
        return (struct panels_columns){p->first[i], p->first[i] + panels_factored(p, i)};
    const struct panels_sweep *sweep = &p->call.sweep[i];
    const int64_t order = p->call.order;
    return (struct panels_columns){sweep->from_panel ? accel_min(order, p->first[j]) : 0,
                                   sweep->to_panel ? accel_min(order, p->first[j + 1]) : order};
}

/* Returns the columns of a panel's blocks, as they come up for panel j; i: the panel that they are
 * of. */
static int64_t block_columns(const struct panels *p, int i, int j)
{
    const struct panels_call *call = &p->call;
    if (p->in_core || (p->stays && i == j - 1))
        return accel_max(1, panels_factored(p, i));
    const int64_t rows = is_triangle(call)            ? call->m - p->first[j]
                         : call->kind == PANELS_APPLY ? call->m
                                                      : call->m - p->first[i];
    return accel_max(
        1, accel_min(PANELS_BLOCK_COLUMNS,
                     widest(call->size, blocks_across(call), accel_max(1, rows), p->block_bytes)));
}

struct schedule_tile panels_block(const struct panels *p, const struct schedule_step *step)
{
    const struct panels_call *call = &p->call;
    const struct panels_columns source = source_columns(p, step->i, step->j);
    const int64_t most = block_columns(p, step->i, step->j), col = source.first + step->p * most;
    const int64_t cols = accel_min(most, source.end - col);
    if (call->kind == PANELS_APPLY && call->sweep[step->i].above)
        return (struct schedule_tile){0, col, col + cols, cols};
    const int64_t row = call->kind == PANELS_CHOLESKY ? p->first[step->j] : col;
    return (struct schedule_tile){row, col, call->m - row, cols};
}

struct panels_columns panels_changed(const struct panels *p, const struct schedule_step *step)
{
    const struct schedule_tile block = panels_block(p, step);
    const int64_t first = p->first[step->j], cols = p->first[step->j + 1] - first;
    const bool apply = p->call.kind == PANELS_APPLY;
    struct panels_columns changed = {0, cols};
    if (apply && p->call.sweep[step->i].from_panel)
        changed.end = accel_min(cols, block.col + block.cols - first);
    if (apply && p->call.sweep[step->i].to_panel)
        changed.first = accel_max(0, block.col - first);
    return changed;
}

/* ---- Times ---- */

/* Returns what of factor_ms() are columns that wait for each other: of Cholesky, those of the
 * triangle on the diagonal, by which the rows below it are solved then. */
static double chain_of(const struct panels_call *call, const struct schedule_rates *rates,
                       double rows, double width)
{
    const bool solves = call->kind == PANELS_CHOLESKY && rows > width;
    return call->kind == PANELS_APPLY
               ? 0
               : (rates->column_ms + (solves ? rates->row_ms : 0)) * (width < rows ? width : rows);
}

/* Returns what of a block's kernels are rows that wait for each other: LU solves by the block's
 * triangle. */
static double block_chain_of(const struct panels_call *call, const struct schedule_rates *rates,
                             double cols)
{
    return call->kind == PANELS_LU ? rates->row_ms * cols : 0;
}

/* Returns the milliseconds that it takes to factor columns from their diagonal on. */
static double factor_ms(const struct panels_call *call, const struct schedule_rates *rates,
                        double rows, double width)
{
    const double twice = call->kind == PANELS_QR ? 2 : 1, wide = width < rows ? width : rows,
                 most = width < rows ? rows : width,
                 corner = wide * (call->kind == PANELS_CHOLESKY ? 2 : 1) / 3;
    return rates->kernel_ms + chain_of(call, rates, rows, width) +
           schedule_product_ms(rates, twice * call->per_term * (most - corner) * wide * wide / 2,
                               width);
}

/* A block changes a panel by so many kernels, at most: an exchange of rows, a solution, a
 * product. */
enum { KERNELS = 3 };

/* Of the triangle on a panel's diagonal, half is computed. */
double panels_kernel_ms(const struct panels *p, const struct schedule_rates *rates,
                        const struct schedule_step *step)
{
    const struct panels_call *call = &p->call;
    const bool reflects =
        call->kind == PANELS_QR || (call->kind == PANELS_APPLY && call->sweep[step->i].reflects);
    const double twice = reflects ? 2 : 1;
    if (step->p >= 0) {
        const struct schedule_tile block = panels_block(p, step);
        const struct panels_columns changed = panels_changed(p, step);
        const double cols = (double)block.cols, width = (double)(changed.end - changed.first),
                     triangle = call->kind == PANELS_CHOLESKY ? width / 2 : 0;
        return KERNELS * rates->kernel_ms + block_chain_of(call, rates, cols) +
               schedule_product_ms(
                   rates, twice * call->per_term * ((double)block.rows - triangle) * cols * width,
                   width < cols ? width : cols);
    }
    return factor_ms(call, rates, (double)(call->m - p->first[step->j]),
                     (double)panels_panel(p, step->j).cols);
}

static double step_ms(const void *panels, const struct schedule_rates *rates,
                      const struct schedule_step *step, double *bytes, double *chain_ms)
{
    const struct panels *p = panels;
    const struct panels_call *call = &p->call;
    if (step->engine == COMPUTE) {
        *chain_ms = step->p < 0 ? chain_of(call, rates, (double)(call->m - p->first[step->j]),
                                           (double)panels_panel(p, step->j).cols)
                                : block_chain_of(call, rates, (double)panels_block(p, step).cols);
        return panels_kernel_ms(p, rates, step);
    }
    if (step->operand == PANELS_PANEL || step->operand == PANELS_BLOCK) {
        const struct schedule_tile tile =
            step->operand == PANELS_PANEL ? panels_panel(p, step->j) : panels_block(p, step);
        *bytes = (double)tile.rows * (double)tile.cols * (double)call->size;
    }
    return rates->copy_ms + *bytes / (step->engine == UP ? rates->up : rates->down) * 1e-6;
}

/* Returns the multiply-adds of a sweep: a column of the panels meets all columns of the other
 * matrix, those before it, or those from it on. */
static double sweep_terms(const struct panels_call *call, const struct panels_sweep *sweep)
{
    const double m = (double)call->m, n = (double)call->n, k = (double)call->order;
    const bool part = sweep->to_panel || sweep->from_panel;
    /* The sum over the columns of how many they meet, and of the squares of that. */
    const double met = part ? n * k - k * k / 2 : n * k,
                 squares = part ? n * k * k - 2 * k * k * k / 3 : n * k * k;
    return sweep->reflects ? 2 * m * met - squares : squares / 2;
}

static double applied_terms(const struct panels_call *call)
{
    double terms = 0;
    for (int i = 0; i < call->sweeps; i++)
        terms += sweep_terms(call, &call->sweep[i]);
    return terms;
}

double panels_floor(const struct panels_call *call, const struct schedule_rates *rates)
{
    const double m = (double)call->m, n = (double)call->n, mn = m < n ? m : n;
    const double share = is_triangle(call) ? 0.5 : 1;
    const double elements =
        share * m * n + (call->kind == PANELS_APPLY ? m * (double)call->order / 2 : 0);
    const double terms =
        call->kind == PANELS_CHOLESKY ? n * n * n / 6
        : call->kind == PANELS_APPLY
            ? applied_terms(call)
            : mn * (m * n - (m + n) * mn / 2 + mn * mn / 3) * (call->kind == PANELS_QR ? 2 : 1);
    const double up = elements * (double)call->size / rates->up * 1e-6,
                 down = share * m * n * (double)call->size / rates->down * 1e-6,
                 compute = call->per_term * terms / rates->compute * 1e-6,
                 longest = up > down ? up : down;
    return longest > compute ? longest : compute;
}

/* Of a large triangle, little besides comes up (chunks.h). */
static double triangle_share(const struct panels_call *call)
{
    const double square = (double)call->m * (double)call->m * (double)call->size;
    return is_triangle(call) ? (double)chunks_triangle_sent(call->m, call->size) / square : 1;
}

double panels_whole_ms(const struct panels_call *call, const struct schedule_rates *rates)
{
    const double m = (double)call->m, n = (double)call->n, order = (double)call->order;
    const double share = triangle_share(call);
    const double up = rates->copy_ms + share * m * n * (double)call->size / rates->up * 1e-6;
    if (call->kind != PANELS_APPLY)
        return up + rates->wait_ms + factor_ms(call, rates, m, n);
    return up + call->sweeps * (rates->kernel_ms +
                                schedule_product_ms(rates, call->per_term * order * order * n / 2,
                                                    n < order ? n : order));
}

double panels_down_ms(const struct panels_call *call, const struct schedule_rates *rates)
{
    const double share = triangle_share(call);
    return rates->copy_ms +
           share * (double)call->m * (double)call->n * (double)call->size / rates->down * 1e-6;
}

/* ---- The panels ---- */

/* Divides the matrix by the bytes of a panel. */
static bool divide_into_panels(struct panels *p)
{
    int64_t col = 0;
    p->count = 0;
    while (col < p->call.n) {
        const int64_t left = p->call.n - col, cols = widest(p->call.size, p->call.across,
                                                            rows_at(&p->call, col), p->panel_bytes);
        if (p->count == PANELS_MOST || cols < accel_min(left, PANELS_LEAST_COLUMNS))
            return false;
        p->first[p->count++] = col;
        col += accel_min(left, cols);
    }
    p->first[p->count] = p->call.n;
    return p->count > 0;
}

/* Divides the matrix into about so many panels, for a device that has the whole of it. */
static bool divide_evenly(struct panels *p, const struct panels_call *call, int count)
{
    const int64_t even = (call->n + count - 1) / count, most = even < 64 ? 8 : 64;
    const int64_t cols = (even + most - 1) / most * most;
    *p = (struct panels){.call = *call, .in_core = true};
    for (int64_t col = 0; col < call->n; col += cols)
        p->first[p->count++] = col;
    p->first[p->count] = call->n;
    p->buffers = p->count;
    return p->count > 1;
}

/* How the memory is divided. */
static const struct memory_division {
    int buffers, share;
    /* Then the upload of a panel waits for the kernel that reads the one in its slot */
    bool stays;
} choices[] = {{1, 16, false}, {2, 16, false}, {2, 16, true}, {1, 5, false},
               {2, 5, false},  {2, 5, true},   {1, 3, false}};
enum { CHOICES = sizeof choices / sizeof *choices };

/* Divides the memory: each of two blocks gets choice->share of it. */
static bool divide_memory(struct panels *p, const struct panels_call *call,
                          const struct memory_division *choice, int64_t memory_bytes)
{
    const int64_t columns = call->kind == PANELS_APPLY ? call->order : accel_min(call->m, call->n);
    if (call->m <= 0 || call->n <= 0 || columns <= 0 || memory_bytes <= 0)
        return false;
    p->call = *call;
    p->in_core = false;
    p->buffers = choice->buffers;
    p->stays = choice->stays;
    if (p->stays && call->kind == PANELS_APPLY)
        return false;
    const int64_t size = call->size;
    const bool across = blocks_across(call);
    p->block_bytes =
        accel_min(memory_bytes / choice->share / 64 * 64,
                  pack_copy_bytes(call->m, accel_min(PANELS_BLOCK_COLUMNS, columns), size, across));
    p->panel_bytes = (memory_bytes - PANELS_BLOCKS * p->block_bytes) / p->buffers / 64 * 64;
    p->panel_bytes =
        accel_min(p->panel_bytes, pack_copy_bytes(call->m, call->n, size, call->across));
    return widest(size, across, call->m, p->block_bytes) >=
               accel_min(PANELS_LEAST_BLOCK_COLUMNS, columns) &&
           divide_into_panels(p);
}

/* ---- The steps ---- */

int panels_blocks(const struct panels *p, int i, int j)
{
    const struct panels_columns source = source_columns(p, i, j);
    const int64_t columns = block_columns(p, i, j);
    return (int)((source.end - source.first + columns - 1) / columns);
}

static bool add_panel_step(struct panels_builder *x, struct schedule_step step)
{
    struct schedule_step *to = schedule_add(&x->p->schedule, &x->room, step.engine);
    if (to)
        *to = step;
    return to != NULL;
}

/* Behind all uploads before it. */
static bool add_kernel(struct panels_builder *x, int i, int j, int number, int slot, bool first)
{
    return add_panel_step(x, (struct schedule_step){.engine = COMPUTE,
                                                    .i = i,
                                                    .j = j,
                                                    .p = number,
                                                    .slot = slot,
                                                    .first = first,
                                                    .after = {[UP] = x->p->schedule.steps[UP]}});
}

/* Behind all kernels and uploads before it. */
static bool add_download(struct panels_builder *x, int operand, int j, int slot)
{
    const int *steps = x->p->schedule.steps;
    return add_panel_step(
        x, (struct schedule_step){.engine = DOWN,
                                  .operand = (uint8_t)operand,
                                  .j = j,
                                  .slot = slot,
                                  .after = {[UP] = steps[UP], [COMPUTE] = steps[COMPUTE]}});
}

enum { STAYS = -1 }; /* the slot of a block that is where it was factored */

/* A block comes up behind the kernels that read the one in its slot before, and behind the
 * download that brought it to host memory. */
static bool add_block(struct panels_builder *x, int i, int j, int number, bool first)
{
    const struct panels *p = x->p;
    if (p->in_core || (p->stays && i == j - 1)) {
        x->stayed = p->in_core ? 0 : p->schedule.steps[COMPUTE] + 1;
        return add_kernel(x, i, j, number, STAYS, first);
    }
    const int slot = x->block++ % PANELS_BLOCKS;
    const bool same = p->call.kind != PANELS_APPLY; /* a block of the same matrix */
    if (!add_panel_step(
            x,
            (struct schedule_step){
                .engine = UP,
                .operand = PANELS_BLOCK,
                .i = i,
                .j = j,
                .p = number,
                .slot = slot,
                .after = {[COMPUTE] = x->used[slot], [DOWN] = same ? x->unpacked[i] : 0}}) ||
        !add_kernel(x, i, j, number, slot, first))
        return false;
    x->used[slot] = p->schedule.steps[COMPUTE];
    return true;
}

/* Another device's panel of LU comes with the list of its pivots. */
static bool add_list(struct panels_builder *x, int i, int j)
{
    if (!x->owner || x->owner[i] == x->device || x->listed[i] || x->p->call.kind != PANELS_LU)
        return true;
    x->listed[i] = true;
    return add_panel_step(
        x, (struct schedule_step){.engine = UP, .operand = PANELS_LIST, .i = i, .j = j});
}

static bool add_blocks(struct panels_builder *x, int j)
{
    const struct panels *p = x->p;
    const bool apply = p->call.kind == PANELS_APPLY;
    const int sources = apply ? p->call.sweeps : j;
    const bool before_first = p->stays && p->call.kind == PANELS_CHOLESKY;
    bool first = true;
    for (int n = 0; n < sources; n++) {
        const int i = before_first ? (n + sources - 1) % sources : n;
        const int blocks = panels_blocks(p, i, j);
        if (blocks > 0 && !add_list(x, i, j))
            return false;
        for (int b = 0; b < blocks; b++, first = false)
            if (!add_block(x, i, j, apply && p->call.sweep[i].backwards ? blocks - 1 - b : b,
                           first))
                return false;
    }
    return true;
}

bool panels_add(struct panels_builder *x, int j)
{
    const struct panels *p = x->p;
    const struct schedule *s = &p->schedule;
    const int slot = x->panels % p->buffers, before = x->panels - p->buffers;
    const bool factors = panels_factored(p, j) > 0;
    x->own[x->panels++] = j;
    if (!add_panel_step(x,
                        (struct schedule_step){
                            .engine = UP,
                            .operand = PANELS_PANEL,
                            .j = j,
                            .slot = slot,
                            .after = {[COMPUTE] = x->stayed,
                                      [DOWN] = before >= 0 ? x->unpacked[x->own[before]] : 0}}) ||
        !add_blocks(x, j) || (factors && !add_kernel(x, 0, j, -1, 0, j == 0)))
        return false;
    for (int n = s->count - 1; n >= 0; n--)
        if (s->step[n].engine == COMPUTE) {
            s->step[n].last = true;
            break;
        }
    if (p->in_core)
        return true;
    if (!add_download(x, PANELS_PANEL, j, slot) ||
        (factors && p->call.kind != PANELS_CHOLESKY && !add_download(x, PANELS_LIST, j, 0)) ||
        ((factors || x->owner) && !add_download(x, PANELS_INFO, j, 0)))
        return false;
    x->unpacked[j] = s->steps[DOWN];
    return true;
}

static bool make_steps(struct panels *p)
{
    struct panels_builder x = {.p = p};
    p->schedule = (struct schedule){0};
    for (int j = 0; j < p->count; j++)
        if (!panels_add(&x, j)) {
            panels_free(p);
            return false;
        }
    return true;
}

void panels_free(struct panels *p)
{
    schedule_free(&p->schedule);
}

/* ---- The choice ---- */

/* How many panels there may be of a matrix that stays on the device. */
static const int counts[] = {2, 3, 4, 6, 8, 12, 16, 24, 32};
enum { COUNTS = sizeof counts / sizeof *counts };

enum { IN_CORE = -1 }; /* in place of the memory for panels and blocks */

/* number: of the choice. */
static bool make_one(struct panels *p, const struct panels_call *call, int number,
                     const struct schedule_rates *rates, int64_t memory_bytes)
{
    const bool divided = memory_bytes == IN_CORE
                             ? divide_evenly(p, call, counts[number])
                             : divide_memory(p, call, &choices[number], memory_bytes);
    if (!divided || !make_steps(p))
        return false;
    p->times = simulate_steps(&p->schedule, rates, step_ms, p);
    p->schedule.ms = p->times.ms;
    p->up_bytes = p->times.bytes[UP];
    p->down_bytes = p->times.bytes[DOWN];
    if (p->times.first < 0)
        panels_free(p);
    return p->times.first >= 0;
}

/* What was chosen for calls before. */
struct cached_panels {
    struct lru_entry lru;
    struct panels_key {
        int64_t memory_bytes;
        struct panels_call call;
        struct schedule_rates rates;
    } key;
    struct panels_chosen {
        int64_t number; /* of the fastest; negative: there is none */
        double ms;
    } value;
};
LRU(known_panels, cached_panels, 64, 4);

/* Makes the fastest schedule that takes less than less_ms. Returns its number; negative: there is
 * none. */
static int make_fastest(struct panels *p, const struct panels_call *call,
                        const struct schedule_rates *rates, int64_t memory_bytes, double less_ms)
{
    const int count = memory_bytes == IN_CORE ? COUNTS : CHOICES;
    int fastest = -1;
    for (int i = 0; i < count; i++) {
        struct panels other;
        if (!make_one(&other, call, i, rates, memory_bytes))
            continue;
        if (other.schedule.ms >= (fastest >= 0 ? p->schedule.ms : less_ms)) {
            panels_free(&other);
            continue;
        }
        if (fastest >= 0)
            panels_free(p);
        *p = other;
        fastest = i;
    }
    return fastest;
}

static bool make_or_recall(struct panels *p, const struct panels_call *call,
                           const struct schedule_rates *rates, int64_t memory_bytes, double less_ms)
{
    const struct panels_key key = {memory_bytes, *call, *rates};
    struct panels_chosen chosen;
    if (lru_get(&known_panels, &key, &chosen))
        return chosen.number >= 0 && make_one(p, call, (int)chosen.number, rates, memory_bytes);
    chosen.number = make_fastest(p, call, rates, memory_bytes, less_ms);
    chosen.ms = chosen.number >= 0 ? p->schedule.ms : -1;
    lru_put(&known_panels, &key, &chosen);
    return chosen.number >= 0;
}

static double ms_of(const struct panels_call *call, const struct schedule_rates *rates,
                    int64_t memory_bytes, double less_ms)
{
    const struct panels_key key = {memory_bytes, *call, *rates};
    struct panels_chosen chosen;
    struct panels p;
    if (lru_get(&known_panels, &key, &chosen))
        return chosen.ms;
    if (!make_or_recall(&p, call, rates, memory_bytes, less_ms))
        return -1;
    panels_free(&p);
    return p.schedule.ms;
}

bool panels_make(struct panels *p, const struct panels_call *call,
                 const struct schedule_rates *rates, int64_t memory_bytes)
{
    return memory_bytes > 0 && make_or_recall(p, call, rates, memory_bytes, INFINITY);
}

double panels_ms(const struct panels_call *call, const struct schedule_rates *rates,
                 int64_t memory_bytes)
{
    return memory_bytes > 0 ? ms_of(call, rates, memory_bytes, INFINITY) : -1;
}

/* Panels are worth it if they save a part of the time that can be told from rounding, kernels of
 * other sizes and the like, and what they save is more than a few waits. Returns the time that they
 * must take less than; negative: they cannot. */
static double less_than_whole(const struct panels_call *call, const struct schedule_rates *rates)
{
    const double least_up_ms = 0.1, gain = 0.98;
    const double bytes = (double)call->m * (double)call->n * (double)call->size;
    if (call->kind == PANELS_APPLY || bytes < PANELS_LEAST_BYTES ||
        bytes / rates->up * 1e-6 < least_up_ms || call->n < 2 * PANELS_LEAST_COLUMNS)
        return -1;
    return gain * panels_whole_ms(call, rates);
}

bool panels_make_in_core(struct panels *p, const struct panels_call *call,
                         const struct schedule_rates *rates)
{
    const double less_ms = less_than_whole(call, rates);
    return less_ms > 0 && make_or_recall(p, call, rates, IN_CORE, less_ms);
}

double panels_in_core_ms(const struct panels_call *call, const struct schedule_rates *rates)
{
    const double less_ms = less_than_whole(call, rates);
    return less_ms > 0 ? ms_of(call, rates, IN_CORE, less_ms) : -1;
}

bool panels_fit(const struct panels_call *call, int64_t memory_bytes)
{
    struct panels p;
    for (int i = 0; i < CHOICES; i++)
        if (divide_memory(&p, call, &choices[i], memory_bytes))
            return true;
    return false;
}
