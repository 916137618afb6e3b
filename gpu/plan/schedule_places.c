#include "schedule_plan.h"

#include "gpu/pack/pack.h"
#include "call/call.h"

enum { A = SCHEDULE_A, B = SCHEDULE_B, C = SCHEDULE_C, OPERANDS = SCHEDULE_OPERANDS };

/* Returns the bytes that an operand's largest cell has on the device: the first one, or the first
 * of the second group of rows. */
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
    return pack_copy_bytes(cell.rows, cell.cols, s->call.size[operand], s->call.across[operand]);
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

/* Each operand has at least `buffers` times what one kernel uses: two cells of a factor of rank-k,
 * else one. */
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

/* A kept C has what two lines of cells of its factors leave: they go by, one part of k after the
 * other. */
static void add_kept(struct schedule *s, int64_t *left)
{
    const int64_t lines = (s->by.buffers - 1) * (int64_t)s->cells[C].rows;
    add_places(s, A, left, lines);
    add_places(s, B, left, lines);
    add_places(s, C, left, INT32_MAX);
}

bool schedule_choose_places(struct schedule *s, int64_t memory_bytes)
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
    } else if (factor == C) {
        add_kept(s, &left);
        add_places(s, A, &left, INT32_MAX);
        add_places(s, B, &left, INT32_MAX);
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

double schedule_tasks(const struct schedule *s)
{
    if (s->call.kind == SCHEDULE_RANK_K)
        return (double)computed_cells(s) * schedule_depths(s);
    const double most = (double)s->cells[A].rows * s->cells[C].cols * schedule_depths(s);
    const double diagonal =
        s->call.k > 0 ? s->cells[C].cols * (double)s->cells[A].cols : (double)s->cells[A].rows;
    return schedule_in_panels(&s->call) ? (most + diagonal) / 2 : most;
}
