#include "schedule_plan.h"

#include <string.h>

#include "pack.h"
#include "ops/call.h"

enum { A = SCHEDULE_A, B = SCHEDULE_B, C = SCHEDULE_C, OPERANDS = SCHEDULE_OPERANDS };

/* ---- Places ---- */

/* Returns the bytes that an operand's largest cell has on the device: the first one, or the first of the second group of rows. */
static int64_t cell_bytes(const struct schedule *s, int operand)
{
    const int head = schedule_head(s);
    struct schedule_cell cell = schedule_cell_of(s, operand, 0, 0);
    if (head > 0) {
        const struct schedule_cell other =
            schedule_cell_of(s, operand, head, operand == C ? head : 0);
        cell.rows = accel_max(cell.rows, other.rows);
        cell.cols = accel_max(cell.cols, other.cols);
    }
    const bool across = s->call.across[operand];
    const int64_t size = s->call.size[operand];
    const int64_t rows = across ? cell.cols : cell.rows, cols = across ? cell.rows : cell.cols;
    return pack_ld(rows, size) * cols * size;
}

/* Returns the cells of a triangle with so many rows. */
static int64_t triangle_of(int64_t rows)
{
    return rows * (rows + 1) / 2;
}

/* Returns the cells of C that a rank-k schedule computes. */
static int64_t computed_cells(const struct schedule *s)
{
    const unsigned omits = s->call.omits;
    const int64_t head = schedule_head(s), tail = s->cells[C].rows - head;
    return (omits & SCHEDULE_HEAD ? 0 : triangle_of(head)) +
           (omits & SCHEDULE_BETWEEN ? 0 : head * tail) +
           (omits & SCHEDULE_TAIL ? 0 : triangle_of(tail));
}

/* Returns the cells of an operand that a schedule uses: of a triangle, those that it has. */
static int64_t used_cells(const struct schedule *s, int operand)
{
    const struct schedule_cells cells = s->cells[operand];
    const enum schedule_kind kind = s->call.kind;
    if (kind == SCHEDULE_RANK_K && operand == C)
        return computed_cells(s);
    if (kind == SCHEDULE_RANK_K)
        return schedule_needed(&s->call, operand, schedule_head(s), cells.rows - schedule_head(s)) *
               cells.cols;
    if (operand == A && s->call.k > 0 &&
        (kind == SCHEDULE_SYMMETRIC || schedule_in_panels(&s->call)))
        return triangle_of(cells.rows);
    return cells.rows * (int64_t)cells.cols;
}

bool schedule_brings_once(const struct schedule *s, int operand)
{
    return s->places[operand] >= used_cells(s, operand);
}

/* Each operand has at least `buffers` times what one kernel uses: two cells of a factor of rank-k, else one. */
static int fewest_places(const struct schedule *s, int operand, int buffers)
{
    const int64_t cells = used_cells(s, operand);
    const int each = s->call.kind == SCHEDULE_RANK_K && operand != C ? 2
                     : schedule_in_panels(&s->call) && operand == C  ? s->cells[C].rows
                                                                     : 1;
    const int wanted = buffers * each;
    return cells < wanted ? (int)cells : wanted;
}

/* Gives an operand as many places as it can use of what is left, at most so many. */
static void add_places(struct schedule *s, int operand, int64_t *left, int64_t at_most)
{
    const int64_t cells = used_cells(s, operand);
    if (s->place_bytes[operand] == 0)
        return;
    const int64_t wanted =
        accel_min(accel_min(cells, at_most) - s->places[operand], *left / s->place_bytes[operand]);
    if (wanted <= 0)
        return;
    s->places[operand] += (int)wanted;
    *left -= wanted * s->place_bytes[operand];
}

/* Chooses places for the cells. Returns false if the least do not fit. */
static bool choose_places(struct schedule *s, int64_t memory_bytes)
{
    const int factor = s->by.factor;
    int64_t left = memory_bytes, all = 0;
    for (int x = A; x < OPERANDS; x++) {
        const int64_t cells = used_cells(s, x);
        s->place_bytes[x] = s->call.in_place[x] || cells == 0 ? 0 : cell_bytes(s, x);
        s->places[x] = s->place_bytes[x] > 0 ? fewest_places(s, x, s->by.buffers) : 0;
        left -= s->places[x] * s->place_bytes[x];
        all += cells * s->place_bytes[x];
    }
    s->whole = all <= memory_bytes;
    if (left < 0)
        return false;
    if (s->whole) {
        for (int x = A; x < OPERANDS; x++)
            add_places(s, x, &left, INT32_MAX);
    } else {
        add_places(s, factor, &left, factor == B ? 2 * (int64_t)s->cells[B].rows : INT32_MAX);
        add_places(s, A, &left, INT32_MAX);
        add_places(s, B, &left, INT32_MAX);
        add_places(s, C, &left, schedule_in_panels(&s->call) ? INT32_MAX : 4);
    }
    s->bytes = 0;
    for (int x = A; x < OPERANDS; x++)
        s->bytes += s->places[x] * s->place_bytes[x];
    return true;
}

/* ---- Sizes ---- */

/* Divides a size into equal steps of about `step`, long ones of whole lines; none is longer than `longest`, itself
 * below 64 or of whole lines. */
static int64_t even(int64_t all, int64_t step, int64_t longest)
{
    step = accel_min(step, longest);
    const int64_t line = step < 64 ? 1 : 64;
    if (all <= step || all <= 1)
        return accel_max(all, 1);
    const int64_t parts = accel_max((all + step / 2) / accel_max(step, 1),
                                    (all + longest - 1) / accel_max(longest, 1));
    const int64_t each = (all + parts - 1) / parts;
    return (each + line - 1) / line * line;
}

/* Sets the cells' sizes: tiles of about side x side / aspect, longer where C is narrow. */
static void set_sizes(struct schedule *s, int64_t side, int64_t aspect, int64_t depth)
{
    const struct schedule_call *call = &s->call;
    const int64_t rows = accel_max(side, side * side / accel_max(call->n, 1));
    const int64_t cols =
        accel_max(accel_max(side, side * side / accel_max(call->m, 1)) / aspect, 1);
    /* The device's BLAS may have 32-bit sizes. */
    const int64_t longest = call->most > 0 ? accel_min(call->most, 1 << 30) : 1 << 30;
    s->by.rows = even(call->m, call->kind == SCHEDULE_PRODUCT ? rows : side, longest);
    if (call->kind == SCHEDULE_RANK_K && call->in_place[C])
        s->by.rows = accel_max(call->m, 1); /* one block: a part of it could not be computed anew */
    s->by.cols = call->kind == SCHEDULE_RANK_K
                     ? s->by.rows
                     : even(call->n, cols, call->widest > 0 ? call->widest : longest);
    s->by.depth = call->kind == SCHEDULE_PRODUCT || call->kind == SCHEDULE_RANK_K
                      ? even(call->k,
                             accel_max(depth, depth * depth /
                                                  accel_max(accel_min(s->by.rows, s->by.cols), 1)),
                             longest)
                      : s->by.rows;
    schedule_set_cells(s);
}

static void keep_better(struct schedule *best, struct schedule *s)
{
    if (best->step && best->ms <= s->ms) {
        schedule_free(s);
        return;
    }
    schedule_free(best);
    *best = *s;
}

/* ---- The search ---- */

/* Returns the kernels: at most so many, of a triangle those of its cells. */
static double tasks_of(const struct schedule *s)
{
    if (s->call.kind == SCHEDULE_RANK_K)
        return (double)computed_cells(s) * schedule_depths(s);
    const double most = (double)s->cells[A].rows * s->cells[C].cols * schedule_depths(s);
    const double diagonal =
        s->call.k > 0 ? s->cells[C].cols * (double)s->cells[A].cols : (double)s->cells[A].rows;
    return schedule_in_panels(&s->call) ? (most + diagonal) / 2 : most;
}

enum { SMALL_CELL = 64 };

/* Returns a time that no schedule with these cells is below: the kernels one after the other, or a copy of all cells. */
static double bound_of(const struct schedule *s, const struct schedule_rates *rates)
{
    const double tasks = tasks_of(s) * (s->call.kind == SCHEDULE_PRODUCT ? 1 : 0.9);
    const double copies = (double)s->cells[A].rows * s->cells[A].cols * 0.5 * rates->copy_ms;
    const double floor = schedule_floor(&s->call, rates);
    const struct schedule full = {.call = s->call, .by = {s->call.m, s->call.n, s->call.k}};
    const int64_t depth = s->call.k > 0 ? s->by.depth : 1;
    const double shortest = (double)accel_min(accel_min(s->by.rows, s->by.cols), depth);
    const double whole = (double)accel_min(accel_min(full.by.rows, full.by.cols),
                                           full.by.depth > 0 ? full.by.depth : 1);
    const double slower = shortest / (shortest + rates->half) * (whole + rates->half) / whole;
    const double kernels =
        (schedule_whole_ms(&s->call, rates) - rates->kernel_ms) / slower + tasks * rates->kernel_ms;
    return kernels > floor + copies ? kernels : floor + copies;
}

/* Trying one schedule takes about as long as so many of its tasks. */
enum { TRY_TASKS = 8 };

/* Tries schedules of these cells: where memory is short, with either factor kept, by columns and by rows of tiles. Only small cells that
 * would not fit else have one place: then nothing is filled while it is used. left: so many tasks may be tried; less those that were. */
static void try_sizes(struct schedule *best, const struct schedule *cells,
                      const struct schedule_rates *rates, int64_t memory_bytes, double *left)
{
    static const int shares[] = {0, 8, 5, 3, 2, 1}; /* the last ones for panels of which few fit */
    const bool panels = schedule_in_panels(&cells->call);
    const bool small = cells->by.rows <= SMALL_CELL && cells->by.cols <= SMALL_CELL;
    const bool is_one = tasks_of(cells) == 1;
    if (best->step && bound_of(cells, rates) >= best->ms)
        return;
    for (int factor = A; factor <= B; factor++)
        for (int way = 0; way < 6; way++) {
            struct schedule s = *cells;
            s.by.factor = factor;
            s.by.buffers = 2;
            s.by.share = shares[way];
            s.by.along_rows = way;
            bool fits = choose_places(&s, memory_bytes);
            if (!fits && small) {
                s.by.buffers = 1;
                fits = choose_places(&s, memory_bytes);
            }
            if (!fits)
                return;
            /* What is short of memory and not in panels has no shares, but two ways along C and two factors. */
            const int ways = is_one ? 1 : s.whole ? 4 : panels ? 6 : 2;
            if (way >= ways || (factor == B && (s.whole || panels)))
                break;
            *left -= tasks_of(&s) + TRY_TASKS;
            if (schedule_make_one(&s, rates))
                keep_better(best, &s);
        }
}

/* A call that moves fewer bytes is one kernel: packing and copying it takes about as long as to start them. */
#define DIVIDED_BYTES 4e6

static double bytes_of(const struct schedule_call *call)
{
    const bool one_factor = call->kind == SCHEDULE_RANK_K && !call->two;
    return (call->in_place[A] ? 0 : schedule_bytes(call, A)) +
           (call->in_place[B] || one_factor ? 0 : schedule_bytes(call, B)) +
           (call->in_place[C] ? 0 : schedule_bytes(call, C));
}

/* A schedule has at most so many kernels for each millisecond of the floor, within limits, and where there are few, more: it must be made
 * in a small part of the call's time. Short of memory, large cells send much twice, so the call takes longer, and smaller cells may shorten it
 * by a third: more is tried. If memory is so short that none has so few, the one with the largest cells is taken. */
enum {
    TRIED_EACH_MS =
        1000, /* tasks, of all schedules that are tried: they take about a twentieth of the floor */
    TASKS_EACH_MS = 16,
    TIMES_IF_SHORT = 3, /* more of both */
    FEWEST_TASKS = 16,
    FEW_TASKS = 64,
    MANY_TASKS = 640,
    MOST_TASKS = 1 << 16
};

/* Copies and kernels of a small call take about as long as to start them; but of what devices lend each other, each brings some cells up. After a failure, a result
 * in place that is computed in parts would be lost. */
bool schedule_stays_whole(const struct schedule_call *call)
{
    const bool lends = call->lent[A] > 0 || call->lent[B] > 0;
    return (bytes_of(call) < DIVIDED_BYTES && !lends) || call->in_place[C];
}

enum { ASPECTS = 4, DEPTHS = 2, RECENT = ASPECTS * DEPTHS };

/* The cells' sizes that came last: large ones are often the same. */
struct recent {
    int64_t size[RECENT][3];
    int count;
};

static bool is_new(struct recent *recent, const struct schedule *s)
{
    const int64_t size[] = {s->by.rows, s->by.cols, s->by.depth};
    for (int n = 0; n < RECENT; n++)
        if (memcmp(recent->size[n], size, sizeof size) == 0)
            return false;
    memcpy(recent->size[recent->count++ % RECENT], size, sizeof size);
    return true;
}

static double most_tasks(const struct schedule_call *call, const struct schedule_rates *rates)
{
    const double ms = schedule_floor(call, rates);
    if (ms * FEW_TASKS < FEWEST_TASKS)
        return FEWEST_TASKS;
    if (ms < 1)
        return ms * FEW_TASKS;
    return ms * TASKS_EACH_MS < FEW_TASKS    ? FEW_TASKS
           : ms * TASKS_EACH_MS > MANY_TASKS ? MANY_TASKS
                                             : ms * TASKS_EACH_MS;
}

/* Returns whether some operands do not fit as wholes. */
static bool is_short(const struct schedule_call *call, int64_t memory_bytes)
{
    const bool half_a = call->kind == SCHEDULE_SYMMETRIC || schedule_in_panels(call);
    double bytes = 0;
    if (call->kind == SCHEDULE_BATCH) /* its groups send nothing twice */
        return false;
    for (int x = A; x < OPERANDS; x++) {
        const bool none = call->in_place[x] || (x == B && schedule_in_panels(call)) ||
                          (x == B && call->kind == SCHEDULE_RANK_K && !call->two);
        const bool half = x == A ? half_a : x == C && call->kind == SCHEDULE_RANK_K;
        bytes += none ? 0 : schedule_bytes(call, x) * (half ? 0.5 : 1);
    }
    return bytes > (double)memory_bytes;
}

bool schedule_make(struct schedule *best, const struct schedule_call *call,
                   const struct schedule_rates *rates, int64_t memory_bytes)
{
    static const int64_t sides[] = {INT32_MAX / 2, 8192, 6144, 4096, 3072, 2048, 1536, 1024,
                                    768,           512,  384,  256,  128,  64,   32,   16};
    const bool shaped = call->kind == SCHEDULE_PRODUCT || call->kind == SCHEDULE_RANK_K;
    const double times = is_short(call, memory_bytes) ? TIMES_IF_SHORT : 1;
    const double limit = most_tasks(call, rates) * times;
    double left = schedule_floor(call, rates) * TRIED_EACH_MS * times;
    struct recent recent = {.count = 0};
    *best = (struct schedule){.call = *call};
    if (call->kind == SCHEDULE_BATCH)
        return schedule_make_batch(best, call, rates, memory_bytes, limit, left);
    for (int n = 0; n < (int)(sizeof sides / sizeof *sides); n++)
        for (int aspect = 0; aspect < (call->kind == SCHEDULE_RANK_K ? 1 : ASPECTS); aspect++)
            for (int deeper = 1; deeper <= (shaped ? DEPTHS : 1); deeper++) {
                struct schedule s = {.call = *call};
                if (best->step && (schedule_stays_whole(call) || left <= 0))
                    return true;
                set_sizes(&s, sides[n], 1 << aspect, accel_max(sides[n] / deeper, 1));
                if (!is_new(&recent, &s))
                    continue;
                if (tasks_of(&s) <= (best->step ? limit : MOST_TASKS))
                    try_sizes(best, &s, rates, memory_bytes, &left);
            }
    return best->step != NULL;
}

bool schedule_make_by(struct schedule *s, const struct schedule_choice *choice,
                      const struct schedule_call *call, const struct schedule_rates *rates,
                      int64_t memory_bytes)
{
    *s = (struct schedule){.call = *call, .by = *choice};
    if (call->kind == SCHEDULE_BATCH)
        return schedule_make_groups(s, rates, memory_bytes);
    schedule_set_cells(s);
    return choose_places(s, memory_bytes) && schedule_make_one(s, rates);
}
