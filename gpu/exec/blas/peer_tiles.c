#define _GNU_SOURCE
#include "peer_tiles.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/thread/monotonic_wait.h"
#include "gpu/plan/upload_order.h"
#include "gpu/device/work.h"

#define WAIT_MS 0.1

/* That a member's schedule brings a tile up. */
struct wish {
    struct matrix key;
    int64_t bytes;
    int member, position; /* among the member's */
};

struct peer_tile {
    struct matrix key;
    int64_t bytes;
    unsigned members; /* as bits */
    int position;     /* the first among those of its members: tiles are numbered by it */
    int number, owner;
    bool begun;         /* its owner brings it up */
    gpu_address memory; /* its owner's; 0: it is not lent yet */
};

enum member_state {
    BEFORE, /* the member has not begun */
    INSIDE, /* it may wait for others, and others for it */
    ENDING, /* it waits for those inside, which may read from its memory */
    GONE
};

struct peer_tiles {
    pthread_mutex_t lock;
    pthread_cond_t news;
    int members, ahead;
    double up_gbps[PEER_MEMBERS_MOST];
    struct schedule_params by[PEER_MEMBERS_MOST];
    double lent[PEER_MEMBERS_MOST][SCHEDULE_OPERANDS];
    struct wish *wish;
    int wishes, room;
    struct peer_tile *tile; /* by their keys */
    int tiles;
    /* With the lock: the tiles' `begun` and `memory`, and */
    bool stopped;
    enum member_state state[PEER_MEMBERS_MOST];
    bool failed[PEER_MEMBERS_MOST]; /* its memory is not to be read */
    /* For which a member waits, or has waited; NULL: none */
    const struct peer_tile *awaited[PEER_MEMBERS_MOST];
};

struct peer_tiles *peer_tiles_new(int members)
{
    struct peer_tiles *table = calloc(1, sizeof *table);
    if (!table)
        return NULL;
    table->members = table->ahead = members;
    pthread_mutex_init(&table->lock, NULL);
    monotonic_condition(&table->news);
    return table;
}

void peer_tiles_free(struct peer_tiles *table)
{
    pthread_cond_destroy(&table->news);
    pthread_mutex_destroy(&table->lock);
    free(table->wish);
    free(table->tile);
    free(table);
}

/* ---- Before the members run ---- */

static int compare(int64_t a, int64_t b)
{
    return (a > b) - (a < b);
}

static int compare_keys(const struct matrix *a, const struct matrix *b)
{
    const int by_place = compare((int64_t)(intptr_t)a->ptr, (int64_t)(intptr_t)b->ptr);
    const int by_rows = compare(a->rows, b->rows), by_cols = compare(a->cols, b->cols);
    return by_place ? by_place : by_rows ? by_rows : by_cols ? by_cols : compare(a->ld, b->ld);
}

static int compare_wishes(const void *a, const void *b)
{
    const struct wish *x = a, *y = b;
    const int by_key = compare_keys(&x->key, &y->key);
    return by_key ? by_key : compare(x->member, y->member);
}

static int compare_positions(const void *a, const void *b)
{
    const struct peer_tile *x = *(struct peer_tile *const *)a, *y = *(struct peer_tile *const *)b;
    const int by_position = compare(x->position, y->position);
    return by_position ? by_position : compare_keys(&x->key, &y->key);
}

static bool add_wish(struct peer_tiles *table, const struct wish *wish)
{
    if (table->wishes == table->room) {
        const int room = 2 * table->room + 64;
        struct wish *more = realloc(table->wish, (size_t)room * sizeof *more);
        if (!more)
            return false;
        table->wish = more;
        table->room = room;
    }
    table->wish[table->wishes++] = *wish;
    return true;
}

struct matrix peer_tiles_key(const struct scheduled *part, const struct schedule *s,
                             const struct schedule_step *step)
{
    const struct accel_span *x = part->operand[step->operand].x;
    const struct schedule_tile tile = scheduled_stored(part, s, step->operand, step->i, step->j);
    return matrix_part(matrix_of_span(x), tile.row, tile.col, tile.rows, tile.cols);
}

bool peer_tiles_have(const struct peer_tiles *table, int member, int operand)
{
    return table->lent[member][operand] > 0;
}

bool peer_tiles_add(struct peer_tiles *table, int member, const struct scheduled *part,
                    const struct schedule *s, double up_gbps)
{
    int position = 0;
    table->up_gbps[member] = up_gbps;
    table->by[member] = s->by;
    memcpy(table->lent[member], s->call.lent, sizeof table->lent[member]);
    for (int n = 0; n < s->count; n++) {
        const struct schedule_step *step = &s->step[n];
        if (step->engine != SCHEDULE_UP || !peer_tiles_have(table, member, step->operand))
            continue;
        const struct matrix tile = peer_tiles_key(part, s, step);
        const struct wish wish = {tile,
                                  (int64_t)schedule_tile_bytes(s, step->operand, step->i, step->j),
                                  member, position++};
        if (!add_wish(table, &wish))
            return false;
    }
    return true;
}

/* Joins the members' wishes for the same tile, and leaves out those of one member alone. */
static void find_tiles(struct peer_tiles *table)
{
    qsort(table->wish, (size_t)table->wishes, sizeof *table->wish, compare_wishes);
    for (int n = 0, end; n < table->wishes; n = end) {
        const struct wish *first = &table->wish[n];
        struct peer_tile tile = {
            .key = first->key, .bytes = first->bytes, .position = first->position};
        for (end = n; end < table->wishes && compare_keys(&first->key, &table->wish[end].key) == 0;
             end++) {
            tile.members |= 1u << table->wish[end].member;
            if (table->wish[end].position < tile.position)
                tile.position = table->wish[end].position;
        }
        if ((tile.members & (tile.members - 1)) != 0)
            table->tile[table->tiles++] = tile;
    }
}

/* Returns the member that would have brought up its own tiles first, with this one. */
static int next_owner(const struct peer_tiles *table, const struct peer_tile *tile,
                      const double busy[PEER_MEMBERS_MOST])
{
    int owner = -1;
    double earliest = 0;
    for (int m = 0; m < table->members; m++) {
        const double end = busy[m] + (double)tile->bytes / table->up_gbps[m];
        if (!(tile->members & 1u << m) || (owner >= 0 && end >= earliest))
            continue;
        owner = m;
        earliest = end;
    }
    return owner;
}

int peer_tiles_deal(struct peer_tiles *table)
{
    double busy[PEER_MEMBERS_MOST] = {0};
    if (table->wishes == 0)
        return 0;
    struct peer_tile **order = malloc((size_t)table->wishes * sizeof *order);
    table->tile = malloc((size_t)table->wishes * sizeof *table->tile);
    if (order && table->tile)
        find_tiles(table);
    for (int n = 0; n < table->tiles; n++)
        order[n] = &table->tile[n];
    if (table->tiles > 0)
        qsort(order, (size_t)table->tiles, sizeof *order, compare_positions);
    for (int n = 0; n < table->tiles; n++) {
        struct peer_tile *tile = order[n];
        tile->number = n;
        tile->owner = next_owner(table, tile, busy);
        busy[tile->owner] += (double)tile->bytes / table->up_gbps[tile->owner];
    }
    free(order);
    return table->tiles;
}

/* ---- A member's schedule ---- */

/* Returns NULL if other members do not have it. The tile that it finds stays where it is. */
static struct peer_tile *find_tile(const struct peer_tiles *table, const struct matrix *key)
{
    int low = 0, high = table->tiles;
    while (low < high) {
        const int middle = (low + high) / 2;
        if (compare_keys(&table->tile[middle].key, key) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low < table->tiles && compare_keys(&table->tile[low].key, key) == 0 ? &table->tile[low]
                                                                               : NULL;
}

int peer_tiles_number(const struct peer_tiles *table, const struct matrix *key, int *owner)
{
    const struct peer_tile *tile = find_tile(table, key);
    *owner = tile ? tile->owner : -1;
    return tile ? tile->number : -1;
}

bool peer_tiles_order(const struct peer_tiles *table, int member, const struct scheduled *part,
                      struct schedule *s, int ahead)
{
    struct upload_order *tile = malloc((size_t)(s->steps[SCHEDULE_UP] + 1) * sizeof *tile);
    int uploads = 0;
    for (int n = 0; tile && n < s->count; n++) {
        int owner = -1;
        if (s->step[n].engine != SCHEDULE_UP)
            continue;
        const struct matrix key = peer_tiles_key(part, s, &s->step[n]);
        const int number = peer_tiles_have(table, member, s->step[n].operand)
                               ? peer_tiles_number(table, &key, &owner)
                               : -1;
        tile[uploads++] = (struct upload_order){number, owner == member};
    }
    const bool done = tile && upload_order_make(s, tile, ahead);
    free(tile);
    return done;
}

bool peer_tiles_schedule(const struct peer_tiles *table, int member, const struct scheduled *part,
                         const struct schedule_rates *rates, int64_t memory_bytes,
                         struct schedule *s)
{
    struct schedule_call call = part->call;
    memcpy(call.lent, table->lent[member], sizeof call.lent);
    if (!schedule_make_by(s, &table->by[member], &call, rates, memory_bytes))
        return false;
    if (peer_tiles_order(table, member, part, s, table->ahead))
        return true;
    schedule_free(s);
    return false;
}

void peer_tiles_set_ahead(struct peer_tiles *table, int ahead)
{
    table->ahead = ahead;
}

/* ---- Beginning and end ---- */

static bool any_in(const struct peer_tiles *table, int but, enum member_state state)
{
    for (int m = 0; m < table->members; m++)
        if (m != but && table->state[m] == state)
            return true;
    return false;
}

static void enter_state(struct peer_tiles *table, int member, enum member_state state)
{
    table->state[member] = state;
    pthread_cond_broadcast(&table->news);
}

void peer_tiles_stop(struct peer_tiles *table)
{
    pthread_mutex_lock(&table->lock);
    table->stopped |= any_in(table, -1, BEFORE);
    pthread_cond_broadcast(&table->news);
    pthread_mutex_unlock(&table->lock);
}

bool peer_tiles_join(struct peer_tiles *table, int member)
{
    pthread_mutex_lock(&table->lock);
    const bool may = table->state[member] == BEFORE && !table->stopped;
    if (may)
        enter_state(table, member, INSIDE);
    while (may && any_in(table, member, BEFORE) && !table->stopped)
        pthread_cond_wait(&table->news, &table->lock);
    const bool together = may && any_in(table, member, INSIDE) && !table->stopped;
    pthread_mutex_unlock(&table->lock);
    return together;
}

void peer_tiles_leave(struct peer_tiles *table, int member, bool well)
{
    pthread_mutex_lock(&table->lock);
    table->failed[member] |= !well;
    if (table->state[member] == INSIDE) {
        enter_state(table, member, ENDING);
        while (any_in(table, member, INSIDE) && !table->stopped)
            pthread_cond_wait(&table->news, &table->lock);
    }
    enter_state(table, member, GONE);
    pthread_mutex_unlock(&table->lock);
}

/* ---- Tiles, while members run ---- */

/* With the lock. */
static bool is_lent(const struct peer_tiles *table, const struct peer_tile *tile)
{
    return tile->memory && !table->failed[tile->owner] && table->state[tile->owner] != GONE;
}

/* With the lock: whether it will be lent, if its owner waits for nobody. */
static bool is_coming(const struct peer_tiles *table, const struct peer_tile *tile)
{
    return !is_lent(table, tile) && table->state[tile->owner] == INSIDE &&
           !table->failed[tile->owner] && !table->stopped;
}

/* With the lock: whether a member may wait for a tile: its owner does not wait for this member, nor
 * for one that does. */
static bool may_wait(const struct peer_tiles *table, int member, const struct peer_tile *tile)
{
    while (tile && is_coming(table, tile) && !tile->begun) {
        if (tile->owner == member)
            return false;
        tile = table->awaited[tile->owner];
    }
    return true;
}

bool peer_tiles_may_have(struct peer_tiles *table, int member, const struct matrix *key)
{
    const struct peer_tile *tile = find_tile(table, key);
    if (!tile || tile->owner == member)
        return true;
    pthread_mutex_lock(&table->lock);
    const bool waits = is_coming(table, tile) && may_wait(table, member, tile);
    table->awaited[member] = waits ? tile : NULL;
    pthread_mutex_unlock(&table->lock);
    return !waits;
}

gpu_address peer_tiles_find(struct peer_tiles *table, int member, const struct matrix *key)
{
    struct peer_tile *tile = find_tile(table, key);
    gpu_address memory = 0;
    if (!tile)
        return 0;
    pthread_mutex_lock(&table->lock);
    if (tile->owner == member)
        tile->begun = true;
    else if (is_lent(table, tile))
        memory = tile->memory;
    pthread_mutex_unlock(&table->lock);
    return memory;
}

void peer_tiles_lend(struct peer_tiles *table, int member, const struct matrix *key,
                     gpu_address memory)
{
    struct peer_tile *tile = find_tile(table, key);
    if (!tile || tile->owner != member)
        return;
    pthread_mutex_lock(&table->lock);
    tile->memory = memory;
    pthread_cond_broadcast(&table->news);
    pthread_mutex_unlock(&table->lock);
}

void peer_tiles_wait(struct peer_tiles *table)
{
    const struct timespec until = monotonic_deadline(WAIT_MS);
    pthread_mutex_lock(&table->lock);
    pthread_cond_timedwait(&table->news, &table->lock, &until);
    pthread_mutex_unlock(&table->lock);
}
