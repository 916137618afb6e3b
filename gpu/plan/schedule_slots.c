#include "schedule_plan.h"

#include "gpu/pack/pack.h"
#include "call/call.h"

enum { A = SCHEDULE_A, B = SCHEDULE_B, C = SCHEDULE_C, OPERANDS = SCHEDULE_OPERANDS };

/* Returns the bytes that an operand's largest tile has on the device: the first one, or the first
 * of the second group of rows. */
static int64_t tile_bytes(const struct schedule *s, int operand)
{
    const int head = schedule_head(s);
    struct schedule_tile tile = schedule_tile_of(s, operand, 0, 0);
    if (head > 0) {
        const struct schedule_tile other =
            schedule_tile_of(s, operand, head, operand == C ? head : 0);
        tile.rows = accel_max(tile.rows, other.rows);
        tile.cols = accel_max(tile.cols, other.cols);
    }
    return pack_copy_bytes(tile.rows, tile.cols, s->call.size[operand], s->call.across[operand]);
}

/* Returns the tiles of a triangle with so many rows. */
static int64_t triangle_of(int64_t rows)
{
    return rows * (rows + 1) / 2;
}

/* Returns the tiles of C that a rank-k schedule computes. */
static int64_t computed_tiles(const struct schedule *s)
{
    const unsigned omits = s->call.omits;
    const int64_t head = schedule_head(s), tail = s->tiles[C].rows - head;
    return (omits & SCHEDULE_HEAD ? 0 : triangle_of(head)) +
           (omits & SCHEDULE_BETWEEN ? 0 : head * tail) +
           (omits & SCHEDULE_TAIL ? 0 : triangle_of(tail));
}

/* Returns the tiles of an operand that a schedule uses: of a triangle, those that it has. */
static int64_t used_tiles(const struct schedule *s, int operand)
{
    const struct schedule_tiles tiles = s->tiles[operand];
    const enum schedule_kind kind = s->call.kind;
    if (kind == SCHEDULE_RANK_K && operand == C)
        return computed_tiles(s);
    if (kind == SCHEDULE_RANK_K)
        return schedule_needed(&s->call, operand, schedule_head(s), tiles.rows - schedule_head(s)) *
               tiles.cols;
    if (operand == A && s->call.k > 0 &&
        (kind == SCHEDULE_SYMMETRIC || schedule_in_panels(&s->call)))
        return triangle_of(tiles.rows);
    return tiles.rows * (int64_t)tiles.cols;
}

bool schedule_brings_once(const struct schedule *s, int operand)
{
    return s->slots[operand] >= used_tiles(s, operand);
}

/* Each operand has at least `buffers` times what one kernel uses: two tiles of a factor of rank-k,
 * else one. */
static int fewest_slots(const struct schedule *s, int operand, int buffers)
{
    const int64_t tiles = used_tiles(s, operand);
    const int each = s->call.kind == SCHEDULE_RANK_K && operand != C ? 2
                     : schedule_in_panels(&s->call) && operand == C  ? s->tiles[C].rows
                                                                     : 1;
    const int wanted = buffers * each;
    return tiles < wanted ? (int)tiles : wanted;
}

/* Gives an operand as many slots as it can use of what is left, at most so many. */
static void add_slots(struct schedule *s, int operand, int64_t *left, int64_t at_most)
{
    const int64_t tiles = used_tiles(s, operand);
    if (s->slot_bytes[operand] == 0)
        return;
    const int64_t wanted =
        accel_min(accel_min(tiles, at_most) - s->slots[operand], *left / s->slot_bytes[operand]);
    if (wanted <= 0)
        return;
    s->slots[operand] += (int)wanted;
    *left -= wanted * s->slot_bytes[operand];
}

/* A kept C has what two lines of tiles of its factors leave: they go by, one part of k after the
 * other. */
static void add_kept(struct schedule *s, int64_t *left)
{
    const int64_t lines = (s->by.buffers - 1) * (int64_t)s->tiles[C].rows;
    add_slots(s, A, left, lines);
    add_slots(s, B, left, lines);
    add_slots(s, C, left, INT32_MAX);
}

bool schedule_choose_slots(struct schedule *s, int64_t memory_bytes)
{
    const int factor = s->by.factor;
    int64_t left = memory_bytes, all = 0;
    for (int x = A; x < OPERANDS; x++) {
        const int64_t tiles = used_tiles(s, x);
        s->slot_bytes[x] = s->call.in_place[x] || tiles == 0 ? 0 : tile_bytes(s, x);
        s->slots[x] = s->slot_bytes[x] > 0 ? fewest_slots(s, x, s->by.buffers) : 0;
        left -= s->slots[x] * s->slot_bytes[x];
        all += tiles * s->slot_bytes[x];
    }
    s->whole = all <= memory_bytes;
    if (left < 0)
        return false;
    if (s->whole) {
        for (int x = A; x < OPERANDS; x++)
            add_slots(s, x, &left, INT32_MAX);
    } else if (factor == C) {
        add_kept(s, &left);
        add_slots(s, A, &left, INT32_MAX);
        add_slots(s, B, &left, INT32_MAX);
    } else {
        add_slots(s, factor, &left, factor == B ? 2 * (int64_t)s->tiles[B].rows : INT32_MAX);
        add_slots(s, A, &left, INT32_MAX);
        add_slots(s, B, &left, INT32_MAX);
        add_slots(s, C, &left, schedule_in_panels(&s->call) ? INT32_MAX : 4);
    }
    s->bytes = 0;
    for (int x = A; x < OPERANDS; x++)
        s->bytes += s->slots[x] * s->slot_bytes[x];
    return true;
}

double schedule_tasks(const struct schedule *s)
{
    if (s->call.kind == SCHEDULE_RANK_K)
        return (double)computed_tiles(s) * schedule_depths(s);
    const double most = (double)s->tiles[A].rows * s->tiles[C].cols * schedule_depths(s);
    const double diagonal =
        s->call.k > 0 ? s->tiles[C].cols * (double)s->tiles[A].cols : (double)s->tiles[A].rows;
    return schedule_in_panels(&s->call) ? (most + diagonal) / 2 : most;
}
