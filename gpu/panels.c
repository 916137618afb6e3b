#include "panels.h"

#include <stdlib.h>

#include "ops/call.h"
#include "pack.h"
#include "schedule_plan.h"

enum { UP = SCHEDULE_UP, COMPUTE = SCHEDULE_COMPUTE, DOWN = SCHEDULE_DOWN };

/* Two blocks: one goes up while the other is used. More columns than these make no product faster. */
enum { BLOCKS = 2, BLOCK_COLUMNS = 1024 };

/* ---- Shapes ---- */

static int64_t bytes_of(const struct panels_call *call, int64_t rows, int64_t cols)
{
    return (call->across ? pack_ld(cols, call->size) * rows : pack_ld(rows, call->size) * cols) *
           call->size;
}

/* Returns the most columns of so many rows that fit: whole lines of an upper triangle, and products like multiples of 64. */
static int64_t widest(const struct panels_call *call, int64_t rows, int64_t bytes)
{
    const int64_t line = call->across ? 64 / call->size : 1;
    const int64_t ld = call->across ? rows : pack_ld(rows, call->size);
    const int64_t cols = bytes / (ld * call->size);
    return cols >= 64 ? cols / 64 * 64 : cols >= line ? cols / line * line : cols;
}

static int64_t rows_at(const struct panels_call *call, int64_t col)
{
    return call->kind == PANELS_CHOLESKY ? call->m - col : call->m;
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

struct schedule_cell panels_panel(const struct panels *p, int j)
{
    const int64_t col = p->first[j], rows = rows_at(&p->call, col);
    return (struct schedule_cell){p->call.m - rows, col, rows, p->first[j + 1] - col};
}

/* Returns the columns of a panel's blocks, as they come up for panel j; i: the panel that they are of. */
static int64_t block_columns(const struct panels *p, int i, int j)
{
    const int64_t rows = p->call.kind == PANELS_CHOLESKY ? p->call.m - p->first[j]
                         : p->call.kind == PANELS_APPLY  ? p->call.m
                                                         : p->call.m - p->first[i];
    return accel_max(
        1, accel_min(BLOCK_COLUMNS, widest(&p->call, accel_max(1, rows), p->block_bytes)));
}

/* Returns the columns that have blocks: of a panel, or of the whole matrix that is applied. */
static int64_t source_columns(const struct panels *p, int i)
{
    return p->call.kind == PANELS_APPLY ? p->call.order : panels_factored(p, i);
}

struct schedule_cell panels_block(const struct panels *p, const struct schedule_step *step)
{
    const struct panels_call *call = &p->call;
    const int64_t most = block_columns(p, step->i, step->j), before = step->p * most;
    const int64_t cols = accel_min(most, source_columns(p, step->i) - before);
    const int64_t col = before + (call->kind == PANELS_APPLY ? 0 : p->first[step->i]);
    if (call->kind == PANELS_APPLY && call->sweep[step->i].above)
        return (struct schedule_cell){0, col, col + cols, cols};
    const int64_t row = call->kind == PANELS_CHOLESKY ? p->first[step->j] : col;
    return (struct schedule_cell){row, col, call->m - row, cols};
}

/* ---- Times ---- */

/* Of the triangle on a panel's diagonal, half is computed. */
static double kernel_ms(const struct panels *p, const struct schedule_rates *rates,
                        const struct schedule_step *step)
{
    const struct panels_call *call = &p->call;
    const double twice = call->kind == PANELS_QR ? 2 : 1,
                 width = (double)panels_panel(p, step->j).cols,
                 triangle = call->kind == PANELS_CHOLESKY ? width / 2 : 0;
    if (step->p >= 0) {
        const struct schedule_cell block = panels_block(p, step);
        const double cols = (double)block.cols;
        return rates->kernel_ms +
               schedule_product_ms(
                   rates, twice * call->per_term * ((double)block.rows - triangle) * cols * width,
                   width < cols ? width : cols);
    }
    const double rows = (double)(call->m - p->first[step->j]);
    const double wide = width < rows ? width : rows,
                 corner = wide * (call->kind == PANELS_CHOLESKY ? 2 : 1) / 3;
    return rates->kernel_ms +
           schedule_product_ms(rates, twice * call->per_term * (rows - corner) * wide * width / 2,
                               width);
}

static double copied_bytes(const struct panels *p, const struct schedule_step *step)
{
    struct schedule_cell cell;
    if (step->operand == PANELS_LIST || step->operand == PANELS_INFO)
        return 0;
    cell = step->operand == PANELS_PANEL ? panels_panel(p, step->j) : panels_block(p, step);
    return (double)cell.rows * (double)cell.cols * (double)p->call.size;
}

struct timed {
    const struct panels *p;
    const struct schedule_rates *rates;
};

static double step_ms(const void *context, const struct schedule_step *step, double *bytes)
{
    const struct timed *t = context;
    if (step->engine == COMPUTE)
        return kernel_ms(t->p, t->rates, step);
    *bytes = copied_bytes(t->p, step);
    return t->rates->copy_ms + *bytes / (step->engine == UP ? t->rates->up : t->rates->down) * 1e-6;
}

double panels_floor(const struct panels_call *call, const struct schedule_rates *rates)
{
    const double m = (double)call->m, n = (double)call->n, mn = m < n ? m : n;
    const double share = call->kind == PANELS_CHOLESKY ? 0.5 : 1;
    const double elements =
        share * m * n + (call->kind == PANELS_APPLY ? m * (double)call->order / 2 : 0);
    const double terms =
        call->kind == PANELS_CHOLESKY ? n * n * n / 6
        : call->kind == PANELS_APPLY
            ? (double)call->sweeps * (double)call->order * (double)call->order * n / 2
            : mn * (m * n - (m + n) * mn / 2 + mn * mn / 3) * (call->kind == PANELS_QR ? 2 : 1);
    const double up = elements * (double)call->size / rates->up * 1e-6,
                 down = share * m * n * (double)call->size / rates->down * 1e-6,
                 compute = call->per_term * terms / rates->compute * 1e-6,
                 longest = up > down ? up : down;
    return longest > compute ? longest : compute;
}

/* ---- The panels ---- */

/* Divides the matrix by the bytes of a panel. */
static bool divide(struct panels *p)
{
    int64_t col = 0;
    p->count = 0;
    while (col < p->call.n) {
        const int64_t left = p->call.n - col,
                      cols = widest(&p->call, rows_at(&p->call, col), p->panel_bytes);
        if (p->count == PANELS_MOST || cols < accel_min(left, PANELS_LEAST_COLUMNS))
            return false;
        p->first[p->count++] = col;
        col += accel_min(left, cols);
    }
    p->first[p->count] = p->call.n;
    return p->count > 0;
}

/* Divides the memory: blocks get this share of it each. */
static bool divide_memory(struct panels *p, const struct panels_call *call, int buffers, int share,
                          int64_t memory_bytes)
{
    const int64_t columns = call->kind == PANELS_APPLY ? call->order : accel_min(call->m, call->n);
    if (call->m <= 0 || call->n <= 0 || columns <= 0 || memory_bytes <= 0)
        return false;
    p->call = *call;
    p->in_core = false;
    p->buffers = buffers;
    p->block_bytes = accel_min(memory_bytes / share / 64 * 64,
                               bytes_of(call, call->m, accel_min(BLOCK_COLUMNS, columns)));
    p->panel_bytes = (memory_bytes - BLOCKS * p->block_bytes) / buffers / 64 * 64;
    p->panel_bytes = accel_min(p->panel_bytes, bytes_of(call, call->m, call->n));
    return widest(call, call->m, p->block_bytes) >= accel_min(PANELS_LEAST_COLUMNS, columns) &&
           divide(p);
}

/* ---- The steps ---- */

struct plan {
    struct panels *p;
    int room;
    int *unpacked; /* by panel: the downloads up to its last one */
    int used[BLOCKS],
        next; /* the kernels up to the last that read a block; the block that is next */
    bool short_of_memory;
};

static struct schedule_step *add(struct plan *plan, int engine, int i, int j, int number)
{
    struct schedule *s = &plan->p->schedule;
    if (s->count == plan->room) {
        const int room = plan->room ? 2 * plan->room : 64;
        struct schedule_step *grown = realloc(s->step, (size_t)room * sizeof *grown);
        if (!grown) {
            plan->short_of_memory = true;
            return NULL;
        }
        s->step = grown;
        plan->room = room;
    }
    struct schedule_step *step = &s->step[s->count++];
    *step = (struct schedule_step){.engine = (uint8_t)engine, .i = i, .j = j, .p = number};
    s->steps[engine]++;
    return step;
}

static bool add_copy(struct plan *plan, int engine, int operand, int i, int j, int number,
                     int place, int kernels, int downloads)
{
    const struct schedule *s = &plan->p->schedule;
    const int uploads = s->steps[UP];
    struct schedule_step *step = add(plan, engine, i, j, number);
    if (!step)
        return false;
    step->operand = (uint8_t)operand;
    step->place = place;
    step->after[COMPUTE] = kernels;
    if (engine == UP)
        step->after[DOWN] = downloads;
    else
        step->after[UP] = uploads;
    return true;
}

static bool add_kernel(struct plan *plan, int i, int j, int number, int place, bool first)
{
    struct schedule_step *step = add(plan, COMPUTE, i, j, number);
    if (!step)
        return false;
    step->place = place;
    step->first = first;
    step->after[UP] = plan->p->schedule.steps[UP];
    return true;
}

/* A block comes up behind the kernels that read the one in its place before, and behind the download that brought it to host memory. */
static bool add_block(struct plan *plan, int i, int j, int number, bool first)
{
    const int place = plan->next;
    const bool own = plan->p->call.kind != PANELS_APPLY; /* of the same matrix */
    plan->next = (place + 1) % BLOCKS;
    if (!add_copy(plan, UP, PANELS_BLOCK, i, j, number, place, plan->used[place],
                  own ? plan->unpacked[i] : 0) ||
        !add_kernel(plan, i, j, number, place, first))
        return false;
    plan->used[place] = plan->p->schedule.steps[COMPUTE];
    return true;
}

static bool add_blocks(struct plan *plan, int j)
{
    const struct panels *p = plan->p;
    const bool apply = p->call.kind == PANELS_APPLY;
    const int sources = apply ? p->call.sweeps : j;
    bool first = true;
    for (int i = 0; i < sources; i++) {
        const int64_t columns = block_columns(p, i, j), all = source_columns(p, i);
        const int blocks = (int)((all + columns - 1) / columns);
        for (int b = 0; b < blocks; b++, first = false)
            if (!add_block(plan, i, j, apply && p->call.sweep[i].backwards ? blocks - 1 - b : b,
                           first))
                return false;
    }
    return true;
}

static bool add_panel(struct plan *plan, int j)
{
    struct panels *p = plan->p;
    const struct schedule *s = &p->schedule;
    const int place = j % p->buffers, before = j - p->buffers;
    const bool factors = panels_factored(p, j) > 0;
    if (!add_copy(plan, UP, PANELS_PANEL, 0, j, 0, place, 0,
                  before >= 0 ? plan->unpacked[before] : 0) ||
        !add_blocks(plan, j) || (factors && !add_kernel(plan, 0, j, -1, 0, j == 0)))
        return false;
    for (int n = s->count - 1; n >= 0; n--)
        if (s->step[n].engine == COMPUTE) {
            s->step[n].last = true;
            break;
        }
    const int kernels = s->steps[COMPUTE];
    const bool list = factors && p->call.kind != PANELS_CHOLESKY;
    if (!add_copy(plan, DOWN, PANELS_PANEL, 0, j, 0, place, kernels, 0) ||
        (list && !add_copy(plan, DOWN, PANELS_LIST, 0, j, 0, 0, kernels, 0)) ||
        (factors && !add_copy(plan, DOWN, PANELS_INFO, 0, j, 0, 0, kernels, 0)))
        return false;
    plan->unpacked[j] = s->steps[DOWN];
    return true;
}

static bool make_steps(struct panels *p)
{
    int unpacked[PANELS_MOST];
    struct plan plan = {.p = p, .unpacked = unpacked};
    p->schedule = (struct schedule){0};
    for (int j = 0; j < p->count; j++)
        if (!add_panel(&plan, j)) {
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

static const struct choice {
    int buffers, share;
} choices[] = {{1, 16}, {2, 16}, {1, 5}, {2, 5}, {1, 3}};
enum { CHOICES = sizeof choices / sizeof *choices };

static bool make_one(struct panels *p, const struct panels_call *call, const struct choice *choice,
                     const struct schedule_rates *rates, int64_t memory_bytes)
{
    const struct timed timed = {p, rates};
    if (!divide_memory(p, call, choice->buffers, choice->share, memory_bytes) || !make_steps(p))
        return false;
    p->times = schedule_time(&p->schedule, step_ms, &timed, rates->wait_ms);
    p->schedule.ms = p->times.ms;
    p->up_bytes = p->times.bytes[UP];
    p->down_bytes = p->times.bytes[DOWN];
    if (p->times.first < 0)
        panels_free(p);
    return p->times.first >= 0;
}

bool panels_make(struct panels *p, const struct panels_call *call,
                 const struct schedule_rates *rates, int64_t memory_bytes)
{
    bool made = false;
    for (int i = 0; i < CHOICES; i++) {
        struct panels other;
        if (!make_one(&other, call, &choices[i], rates, memory_bytes))
            continue;
        if (made && other.schedule.ms >= p->schedule.ms) {
            panels_free(&other);
            continue;
        }
        if (made)
            panels_free(p);
        *p = other;
        made = true;
    }
    return made;
}

/* Of blocks, all rows count from the first of their panel on: so the sum has a term for each pair of panels alone. */
static double traffic(const struct panels *p)
{
    const double size = (double)p->call.size;
    double bytes = 0;
    for (int j = 0; j < p->count; j++) {
        const struct schedule_cell panel = panels_panel(p, j);
        bytes += (double)panel.rows * (double)panel.cols * size;
        if (p->call.kind == PANELS_APPLY)
            bytes += p->call.sweeps * (double)p->call.m * (double)p->call.order * size;
        for (int i = 0; i < j && p->call.kind != PANELS_APPLY; i++) {
            const int64_t row = p->first[p->call.kind == PANELS_CHOLESKY ? j : i];
            bytes += (double)(p->call.m - row) * (double)panels_factored(p, i) * size;
        }
    }
    return bytes;
}

double panels_up_bytes(const struct panels_call *call, int64_t memory_bytes)
{
    double most = -1;
    for (int i = 0; i < CHOICES; i++) {
        struct panels p;
        if (!divide_memory(&p, call, choices[i].buffers, choices[i].share, memory_bytes))
            continue;
        const double bytes = traffic(&p);
        most = bytes > most ? bytes : most;
    }
    return most;
}
