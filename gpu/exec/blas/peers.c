#define _GNU_SOURCE
#include "peers.h"

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

struct peers {
    pthread_mutex_t lock;
    pthread_cond_t news;
    int members, ahead;
    double up_gbps[PEERS_MOST];
    struct schedule_params by[PEERS_MOST];
    double lent[PEERS_MOST][SCHEDULE_OPERANDS];
    struct wish *wish;
    int wishes, room;
    struct peer_tile *tile; /* by their keys */
    int tiles;
    /* With the lock: the tiles' `begun` and `memory`, and */
    bool stopped;
    enum member_state state[PEERS_MOST];
    bool failed[PEERS_MOST]; /* its memory is not to be read */
    /* For which a member waits, or has waited; NULL: none */
    const struct peer_tile *awaited[PEERS_MOST];
};

struct peers *peers_new(int members)
{
    struct peers *peers = calloc(1, sizeof *peers);
    if (!peers)
        return NULL;
    peers->members = peers->ahead = members;
    pthread_mutex_init(&peers->lock, NULL);
    monotonic_condition(&peers->news);
    return peers;
}

void peers_free(struct peers *peers)
{
    pthread_cond_destroy(&peers->news);
    pthread_mutex_destroy(&peers->lock);
    free(peers->wish);
    free(peers->tile);
    free(peers);
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

static bool add_wish(struct peers *peers, const struct wish *wish)
{
    if (peers->wishes == peers->room) {
        const int room = 2 * peers->room + 64;
        struct wish *more = realloc(peers->wish, (size_t)room * sizeof *more);
        if (!more)
            return false;
        peers->wish = more;
        peers->room = room;
    }
    peers->wish[peers->wishes++] = *wish;
    return true;
}

struct matrix peers_tile_of(const struct scheduled *part, const struct schedule *s,
                            const struct schedule_step *step)
{
    const struct accel_span *x = part->operand[step->operand].x;
    const struct schedule_tile tile = scheduled_stored(part, s, step->operand, step->i, step->j);
    return matrix_part(matrix_of_span(x), tile.row, tile.col, tile.rows, tile.cols);
}

bool peers_have(const struct peers *peers, int member, int operand)
{
    return peers->lent[member][operand] > 0;
}

bool peers_add(struct peers *peers, int member, const struct scheduled *part,
               const struct schedule *s, double up_gbps)
{
    int position = 0;
    peers->up_gbps[member] = up_gbps;
    peers->by[member] = s->by;
    memcpy(peers->lent[member], s->call.lent, sizeof peers->lent[member]);
    for (int n = 0; n < s->count; n++) {
        const struct schedule_step *step = &s->step[n];
        if (step->engine != SCHEDULE_UP || !peers_have(peers, member, step->operand))
            continue;
        const struct matrix tile = peers_tile_of(part, s, step);
        const struct wish wish = {tile,
                                  (int64_t)schedule_tile_bytes(s, step->operand, step->i, step->j),
                                  member, position++};
        if (!add_wish(peers, &wish))
            return false;
    }
    return true;
}

/* Joins the members' wishes for the same tile, and leaves out those of one member alone. */
static void find_tiles(struct peers *peers)
{
    qsort(peers->wish, (size_t)peers->wishes, sizeof *peers->wish, compare_wishes);
    for (int n = 0, end; n < peers->wishes; n = end) {
        const struct wish *first = &peers->wish[n];
        struct peer_tile tile = {
            .key = first->key, .bytes = first->bytes, .position = first->position};
        for (end = n; end < peers->wishes && compare_keys(&first->key, &peers->wish[end].key) == 0;
             end++) {
            tile.members |= 1u << peers->wish[end].member;
            if (peers->wish[end].position < tile.position)
                tile.position = peers->wish[end].position;
        }
        if ((tile.members & (tile.members - 1)) != 0)
            peers->tile[peers->tiles++] = tile;
    }
}

/* Returns the member that would have brought up its own tiles first, with this one. */
static int next_owner(const struct peers *peers, const struct peer_tile *tile,
                      const double busy[PEERS_MOST])
{
    int owner = -1;
    double earliest = 0;
    for (int m = 0; m < peers->members; m++) {
        const double end = busy[m] + (double)tile->bytes / peers->up_gbps[m];
        if (!(tile->members & 1u << m) || (owner >= 0 && end >= earliest))
            continue;
        owner = m;
        earliest = end;
    }
    return owner;
}

int peers_deal(struct peers *peers)
{
    double busy[PEERS_MOST] = {0};
    if (peers->wishes == 0)
        return 0;
    struct peer_tile **order = malloc((size_t)peers->wishes * sizeof *order);
    peers->tile = malloc((size_t)peers->wishes * sizeof *peers->tile);
    if (order && peers->tile)
        find_tiles(peers);
    for (int n = 0; n < peers->tiles; n++)
        order[n] = &peers->tile[n];
    if (peers->tiles > 0)
        qsort(order, (size_t)peers->tiles, sizeof *order, compare_positions);
    for (int n = 0; n < peers->tiles; n++) {
        struct peer_tile *tile = order[n];
        tile->number = n;
        tile->owner = next_owner(peers, tile, busy);
        busy[tile->owner] += (double)tile->bytes / peers->up_gbps[tile->owner];
    }
    free(order);
    return peers->tiles;
}

/* ---- A member's schedule ---- */

/* Returns NULL if other members do not have it. The tile that it finds stays where it is. */
static struct peer_tile *find_tile(const struct peers *peers, const struct matrix *key)
{
    int low = 0, high = peers->tiles;
    while (low < high) {
        const int middle = (low + high) / 2;
        if (compare_keys(&peers->tile[middle].key, key) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low < peers->tiles && compare_keys(&peers->tile[low].key, key) == 0 ? &peers->tile[low]
                                                                               : NULL;
}

int peers_number(const struct peers *peers, const struct matrix *key, int *owner)
{
    const struct peer_tile *tile = find_tile(peers, key);
    *owner = tile ? tile->owner : -1;
    return tile ? tile->number : -1;
}

bool peers_order(const struct peers *peers, int member, const struct scheduled *part,
                 struct schedule *s, int ahead)
{
    struct upload_order *tile = malloc((size_t)(s->steps[SCHEDULE_UP] + 1) * sizeof *tile);
    int uploads = 0;
    for (int n = 0; tile && n < s->count; n++) {
        int owner = -1;
        if (s->step[n].engine != SCHEDULE_UP)
            continue;
        const struct matrix key = peers_tile_of(part, s, &s->step[n]);
        const int number =
            peers_have(peers, member, s->step[n].operand) ? peers_number(peers, &key, &owner) : -1;
        tile[uploads++] = (struct upload_order){number, owner == member};
    }
    const bool done = tile && upload_order_make(s, tile, ahead);
    free(tile);
    return done;
}

bool peers_schedule(const struct peers *peers, int member, const struct scheduled *part,
                    const struct schedule_rates *rates, int64_t memory_bytes, struct schedule *s)
{
    struct schedule_call call = part->call;
    memcpy(call.lent, peers->lent[member], sizeof call.lent);
    if (!schedule_make_by(s, &peers->by[member], &call, rates, memory_bytes))
        return false;
    if (peers_order(peers, member, part, s, peers->ahead))
        return true;
    schedule_free(s);
    return false;
}

void peers_set_ahead(struct peers *peers, int ahead)
{
    peers->ahead = ahead;
}

/* ---- Beginning and end ---- */

static bool any_in(const struct peers *peers, int but, enum member_state state)
{
    for (int m = 0; m < peers->members; m++)
        if (m != but && peers->state[m] == state)
            return true;
    return false;
}

static void enter_state(struct peers *peers, int member, enum member_state state)
{
    peers->state[member] = state;
    pthread_cond_broadcast(&peers->news);
}

void peers_stop(struct peers *peers)
{
    pthread_mutex_lock(&peers->lock);
    peers->stopped |= any_in(peers, -1, BEFORE);
    pthread_cond_broadcast(&peers->news);
    pthread_mutex_unlock(&peers->lock);
}

bool peers_join(struct peers *peers, int member)
{
    pthread_mutex_lock(&peers->lock);
    const bool may = peers->state[member] == BEFORE && !peers->stopped;
    if (may)
        enter_state(peers, member, INSIDE);
    while (may && any_in(peers, member, BEFORE) && !peers->stopped)
        pthread_cond_wait(&peers->news, &peers->lock);
    const bool together = may && any_in(peers, member, INSIDE) && !peers->stopped;
    pthread_mutex_unlock(&peers->lock);
    return together;
}

void peers_leave(struct peers *peers, int member, bool well)
{
    pthread_mutex_lock(&peers->lock);
    peers->failed[member] |= !well;
    if (peers->state[member] == INSIDE) {
        enter_state(peers, member, ENDING);
        while (any_in(peers, member, INSIDE) && !peers->stopped)
            pthread_cond_wait(&peers->news, &peers->lock);
    }
    enter_state(peers, member, GONE);
    pthread_mutex_unlock(&peers->lock);
}

/* ---- Tiles, while members run ---- */

/* With the lock. */
static bool is_lent(const struct peers *peers, const struct peer_tile *tile)
{
    return tile->memory && !peers->failed[tile->owner] && peers->state[tile->owner] != GONE;
}

/* With the lock: whether it will be lent, if its owner waits for nobody. */
static bool is_coming(const struct peers *peers, const struct peer_tile *tile)
{
    return !is_lent(peers, tile) && peers->state[tile->owner] == INSIDE &&
           !peers->failed[tile->owner] && !peers->stopped;
}

/* With the lock: whether a member may wait for a tile: its owner does not wait for this member, nor
 * for one that does. */
static bool may_wait(const struct peers *peers, int member, const struct peer_tile *tile)
{
    while (tile && is_coming(peers, tile) && !tile->begun) {
        if (tile->owner == member)
            return false;
        tile = peers->awaited[tile->owner];
    }
    return true;
}

bool peers_may_have(struct peers *peers, int member, const struct matrix *key)
{
    const struct peer_tile *tile = find_tile(peers, key);
    if (!tile || tile->owner == member)
        return true;
    pthread_mutex_lock(&peers->lock);
    const bool waits = is_coming(peers, tile) && may_wait(peers, member, tile);
    peers->awaited[member] = waits ? tile : NULL;
    pthread_mutex_unlock(&peers->lock);
    return !waits;
}

gpu_address peers_find(struct peers *peers, int member, const struct matrix *key)
{
    struct peer_tile *tile = find_tile(peers, key);
    gpu_address memory = 0;
    if (!tile)
        return 0;
    pthread_mutex_lock(&peers->lock);
    if (tile->owner == member)
        tile->begun = true;
    else if (is_lent(peers, tile))
        memory = tile->memory;
    pthread_mutex_unlock(&peers->lock);
    return memory;
}

void peers_lend(struct peers *peers, int member, const struct matrix *key, gpu_address memory)
{
    struct peer_tile *tile = find_tile(peers, key);
    if (!tile || tile->owner != member)
        return;
    pthread_mutex_lock(&peers->lock);
    tile->memory = memory;
    pthread_cond_broadcast(&peers->news);
    pthread_mutex_unlock(&peers->lock);
}

void peers_wait(struct peers *peers)
{
    const struct timespec until = monotonic_deadline(WAIT_MS);
    pthread_mutex_lock(&peers->lock);
    pthread_cond_timedwait(&peers->news, &peers->lock, &until);
    pthread_mutex_unlock(&peers->lock);
}
