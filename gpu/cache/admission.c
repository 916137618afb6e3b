#include "admission.h"

#include <stdatomic.h>

#include "base/memory/lru.h"
#include "base/memory/write_watch.h"

/* A set holds all operands whose keys have the same hash. */
enum { SETS = 32, WAYS = 8 };

/* A miss costs a digest, for which a hit saves an upload: an operand must be found twice for each
 * time that it is not. One that always changes is digested at every 64th call in the end. */
enum { MISS = 2, MISS_SCORE_MOST = 12 };

/* One that a call overwrites before another has found it has cost a digest on its way up, which is
 * cheaper. */
enum { WASTED = 1 };

/* Of the cached results, so many more may never have been found than an eighth of those that have;
 * then one of 64 is cached. */
enum { UNREAD_MOST = 16, READ_WORTH = 8, RESULTS_REST = 64 };

/* To protect pages, and to let them be written to again, costs what this many digests cost,
 * measured. */
enum { WORTH_REUSES = 11 };

/* Each watch that ended early makes the next one so many times less likely, as a power of two; so
 * often. */
enum { FAILED_WATCHES_SHIFT = 3, FAILED_WATCHES_MOST = 6 };

struct seen {
    struct lru_entry lru;
    struct seen_key {
        const void *ptr;
        int64_t rows, cols, ld, dtype, triangle;
    } key;
    bool cached;
    /* MISS for each miss, less 1 for each hit; calls that do not digest it, from now on */
    int miss_score, back_off;
    struct gpu_key digest;
    struct gpu_tiles tiles; /* by which that is the digest */
    struct admission_watch watch;
    bool is_result;     /* a call has written what is cached */
    bool found;         /* since it was cached */
    int reuses;         /* that the watch has shown */
    bool unwatched;     /* not by calls that digest it, for good */
    double missed_ms;   /* by calls on the CPU */
    int failed_watches; /* watches that ended early */
};
LRU(table, seen, SETS, WAYS);
static int unread;  /* results that have been cached, less READ_WORTH for each that was found */
static int resting; /* results that were not cached for that */
static atomic_int validated; /* entries whose watch is validated */

/* The child of a fork has no device. */
void admission_reset(void)
{
    if (table.now > 0) /* else its pages stay untouched */
        lru_clear(&table);
    if (unread || resting || atomic_load(&validated)) {
        unread = resting = 0;
        atomic_store(&validated, 0);
    }
}
FORKS_CHILD(admission_reset);

static struct seen_key seen_key_of(const struct accel_span *x)
{
    return (struct seen_key){x->ptr, x->rows, x->cols, x->ld, x->dtype, x->triangle};
}

/* With the lock. Returns NULL if the operand has not been seen. */
static struct seen *find_seen(const struct accel_span *x)
{
    const struct seen_key key = seen_key_of(x);
    return lru_lookup(&table, &key);
}

/* With the lock. Returns the watch that the caller is to end without it. */
static uint64_t end_watch(struct seen *seen)
{
    const uint64_t watch = seen->watch.watch;
    if (watch && seen->reuses < WORTH_REUSES)
        seen->failed_watches += seen->failed_watches < FAILED_WATCHES_MOST;
    else if (watch)
        seen->failed_watches -= seen->failed_watches > 0;
    seen->missed_ms = 0;
    atomic_fetch_sub(&validated, seen->watch.validated);
    seen->watch = (struct admission_watch){.watch = 0};
    seen->reuses = 0;
    return watch;
}

/* With the lock. Notes one that has not been seen. Ends the watch of the one that is evicted:
 * *left, which the caller is to end without the lock, or 0. */
static struct seen *add_seen(const struct accel_span *x, uint64_t *left)
{
    const struct seen_key key = seen_key_of(x);
    struct seen *seen = lru_insert(&table, &key);
    *left = end_watch(seen);
    *seen = (struct seen){.lru = seen->lru, .key = key};
    return seen;
}

/* With the lock. Returns an operand that a call reads; NULL if it has not been seen before: now it
 * has been. *left: as for add_seen(). */
static struct seen *meet(const struct accel_span *x, uint64_t *left)
{
    struct seen *seen = find_seen(x);
    *left = 0;
    if (seen)
        lru_touch(&table, seen);
    else
        add_seen(x, left);
    return seen;
}

enum admission admission_see_served(const struct accel_span *x, bool *first)
{
    enum admission how = ADMIT_NONE;
    uint64_t left;
    pthread_mutex_lock(&table.lock);
    struct seen *seen = meet(x, &left);
    *first = !seen;
    if (seen && seen->back_off > 0 && !seen->watch.validated)
        seen->back_off--;
    else if (seen)
        how = seen->cached ? ADMIT_LOOKUP : ADMIT_INSERT;
    pthread_mutex_unlock(&table.lock);
    write_watch_leave(left);
    return how;
}

enum admission admission_see(const struct accel_span *x)
{
    bool first;
    return admission_see_served(x, &first);
}

enum admission admission_see_shared(const struct accel_span *x)
{
    uint64_t left;
    pthread_mutex_lock(&table.lock);
    struct seen *seen = meet(x, &left);
    const bool rests = seen && seen->back_off > 0;
    if (rests)
        seen->back_off--;
    pthread_mutex_unlock(&table.lock);
    write_watch_leave(left);
    return rests ? ADMIT_NONE : ADMIT_LOOKUP;
}

/* With the lock. */
static void raise_miss_score(struct seen *seen, int more, int most)
{
    seen->miss_score = (int)accel_min(seen->miss_score + more, MISS_SCORE_MOST);
    if (seen->miss_score > most)
        seen->back_off = (1 << seen->miss_score / MISS) - 1;
}

bool admission_want_results(void)
{
    pthread_mutex_lock(&table.lock);
    const bool want = unread < UNREAD_MOST || ++resting % RESULTS_REST == 0;
    pthread_mutex_unlock(&table.lock);
    return want;
}

bool admission_write(const struct accel_span *x, struct gpu_key *old)
{
    uint64_t left = 0;
    bool had = false;
    pthread_mutex_lock(&table.lock);
    struct seen *seen = find_seen(x);
    if (seen) {
        had = seen->cached;
        *old = seen->digest;
        if (had && !seen->found && !seen->is_result)
            raise_miss_score(seen, WASTED, 2 * MISS - 1);
        seen->cached = false;
        left = end_watch(seen);
    }
    pthread_mutex_unlock(&table.lock);
    write_watch_leave(left);
    return had;
}

/* With the lock. */
static void mark_cached(struct seen *seen, const struct gpu_key *key, struct gpu_tiles tiles,
                        bool is_result)
{
    seen->cached = true;
    seen->digest = *key;
    seen->tiles = tiles;
    seen->is_result = is_result;
    seen->found = false;
}

void admission_cached_result(const struct accel_span *x, const struct gpu_key *key,
                             struct gpu_tiles tiles)
{
    uint64_t left = 0;
    pthread_mutex_lock(&table.lock);
    struct seen *seen = find_seen(x);
    mark_cached(seen ? seen : add_seen(x, &left), key, tiles, true);
    unread += unread < UNREAD_MOST;
    pthread_mutex_unlock(&table.lock);
    write_watch_leave(left);
}

void admission_cached(const struct accel_span *x, const struct gpu_key *key)
{
    pthread_mutex_lock(&table.lock);
    struct seen *seen = find_seen(x);
    if (seen)
        mark_cached(seen, key, (struct gpu_tiles){0, 0}, false);
    pthread_mutex_unlock(&table.lock);
}

enum admission admission_looked(const struct accel_span *x, bool found)
{
    enum admission how = ADMIT_NONE;
    pthread_mutex_lock(&table.lock);
    struct seen *seen = find_seen(x);
    if (seen && found) {
        seen->miss_score -= seen->miss_score > 0;
        if (seen->is_result && !seen->found)
            unread -= (int)accel_min(unread, READ_WORTH);
        seen->found = true;
    } else if (seen) {
        seen->cached = false;
        raise_miss_score(seen, MISS, MISS);
        how = seen->miss_score == MISS ? ADMIT_INSERT : ADMIT_NONE;
    }
    pthread_mutex_unlock(&table.lock);
    return how;
}

bool admission_expect(const struct accel_span *x, struct gpu_key *key)
{
    pthread_mutex_lock(&table.lock);
    const struct seen *seen = find_seen(x);
    const bool expected = seen && seen->cached &&
                          (seen->watch.validated || (seen->miss_score == 0 && seen->back_off == 0));
    if (expected)
        *key = seen->digest;
    pthread_mutex_unlock(&table.lock);
    return expected;
}

bool admission_expect_result(const struct accel_span *x, struct gpu_key *key)
{
    pthread_mutex_lock(&table.lock);
    const struct seen *seen = find_seen(x);
    const bool expected = seen && seen->cached && seen->is_result && seen->back_off == 0;
    if (expected)
        *key = seen->digest;
    pthread_mutex_unlock(&table.lock);
    return expected;
}

bool admission_digest(const struct accel_span *x, struct gpu_key *key)
{
    pthread_mutex_lock(&table.lock);
    const struct seen *seen = find_seen(x);
    const bool cached = seen && seen->cached;
    if (cached)
        *key = seen->digest;
    pthread_mutex_unlock(&table.lock);
    return cached;
}

struct gpu_tiles admission_tiles(const struct accel_span *x)
{
    struct gpu_tiles tiles = {0, 0};
    pthread_mutex_lock(&table.lock);
    const struct seen *seen = find_seen(x);
    if (seen && seen->cached)
        tiles = seen->tiles;
    pthread_mutex_unlock(&table.lock);
    return tiles;
}

/* ---- Watches ---- */

struct admission_watch admission_watch(const struct accel_span *x, bool *may)
{
    struct admission_watch watch = {.watch = 0};
    pthread_mutex_lock(&table.lock);
    const struct seen *seen = find_seen(x);
    if (seen)
        watch = seen->watch;
    *may = seen && !seen->unwatched;
    pthread_mutex_unlock(&table.lock);
    return watch;
}

/* Whether x is a part of what has been seen, and not all of it. */
static bool is_within(const struct accel_span *x, const struct seen *seen, int64_t *row,
                      int64_t *col)
{
    const int64_t size = (int64_t)accel_dtype_size(x->dtype);
    const int64_t bytes = (int64_t)((uintptr_t)x->ptr - (uintptr_t)seen->key.ptr);
    if (seen->key.dtype != x->dtype || seen->key.ld != x->ld || seen->key.triangle || x->triangle ||
        (uintptr_t)x->ptr < (uintptr_t)seen->key.ptr || bytes % size != 0)
        return false;
    *row = bytes / size % x->ld;
    *col = bytes / size / x->ld;
    return *row + x->rows <= seen->key.rows && *col + x->cols <= seen->key.cols &&
           (x->rows < seen->key.rows || x->cols < seen->key.cols);
}

struct admission_watch admission_around(const struct accel_span *x, struct accel_span *larger,
                                        int64_t *row, int64_t *col)
{
    struct admission_watch watch = {.watch = 0};
    if (!admission_any_validated())
        return watch;
    pthread_mutex_lock(&table.lock);
    for (int i = 0; !watch.watch && i < SETS * WAYS; i++) {
        struct seen *seen = &table_entries[i];
        if (!seen->watch.validated || !is_within(x, seen, row, col))
            continue;
        lru_touch(&table, seen);
        watch = seen->watch;
        *larger = *x;
        larger->ptr = (void *)(uintptr_t)seen->key.ptr;
        larger->rows = seen->key.rows;
        larger->cols = seen->key.cols;
    }
    pthread_mutex_unlock(&table.lock);
    return watch;
}

void admission_watched(const struct accel_span *x, const struct admission_watch *w)
{
    pthread_mutex_lock(&table.lock);
    struct seen *seen = find_seen(x);
    const bool takes = seen && (!seen->watch.watch || seen->watch.watch == w->watch);
    if (takes) {
        atomic_fetch_add(&validated, w->validated - seen->watch.validated);
        seen->watch = *w;
    }
    pthread_mutex_unlock(&table.lock);
    if (!takes)
        write_watch_leave(w->watch);
}

void admission_unchanged(const struct accel_span *x, uint64_t watch)
{
    pthread_mutex_lock(&table.lock);
    struct seen *seen = find_seen(x);
    if (seen && seen->watch.watch == watch && seen->reuses < WORTH_REUSES)
        seen->reuses++;
    pthread_mutex_unlock(&table.lock);
}

void admission_written(const struct accel_span *x, uint64_t watch)
{
    uint64_t left = 0;
    pthread_mutex_lock(&table.lock);
    struct seen *seen = find_seen(x);
    if (seen && watch && seen->watch.watch == watch) {
        seen->unwatched = seen->reuses < WORTH_REUSES;
        left = end_watch(seen);
    }
    pthread_mutex_unlock(&table.lock);
    write_watch_leave(left);
}

void admission_evicted(const struct gpu_key *key)
{
    uint64_t left[SETS * WAYS];
    int count = 0;
    pthread_mutex_lock(&table.lock);
    for (int i = 0; i < SETS * WAYS; i++) {
        struct seen *seen = &table_entries[i];
        const struct gpu_key *of = seen->watch.validated ? &seen->watch.key : &seen->digest;
        if (seen->watch.watch && gpu_key_is(of, key))
            left[count++] = end_watch(seen);
    }
    pthread_mutex_unlock(&table.lock);
    for (int i = 0; i < count; i++)
        write_watch_leave(left[i]);
}

void admission_forget(const void *from, int64_t bytes)
{
    uint64_t left[SETS * WAYS];
    int count = 0;
    pthread_mutex_lock(&table.lock);
    for (int i = 0; i < SETS * WAYS; i++) {
        struct seen *seen = &table_entries[i];
        if ((uintptr_t)seen->key.ptr - (uintptr_t)from >= (uint64_t)bytes)
            continue;
        left[count++] = end_watch(seen);
        *seen = (struct seen){.cached = false};
    }
    pthread_mutex_unlock(&table.lock);
    for (int i = 0; i < count; i++)
        write_watch_leave(left[i]);
}

/* ---- What calls on the CPU have missed ---- */

enum admission_step admission_miss(const struct accel_span *x, double gain_ms, double protect_ms,
                                   double upload_ms, uint64_t *watch)
{
    enum admission_step step = ADMISSION_WAIT;
    uint64_t left;
    *watch = 0;
    pthread_mutex_lock(&table.lock);
    struct seen *seen = meet(x, &left);
    if (seen) {
        seen->missed_ms += gain_ms;
        *watch = seen->watch.watch;
        if (*watch && seen->missed_ms >= upload_ms) {
            step = ADMISSION_VALIDATE;
        } else if (!*watch && seen->missed_ms >=
                                  protect_ms * (1 << FAILED_WATCHES_SHIFT * seen->failed_watches)) {
            step = ADMISSION_PROTECT;
            seen->missed_ms = 0;
        }
    }
    pthread_mutex_unlock(&table.lock);
    write_watch_leave(left);
    return step;
}

void admission_not_watched(const struct accel_span *x)
{
    pthread_mutex_lock(&table.lock);
    struct seen *seen = find_seen(x);
    if (seen)
        seen->failed_watches += seen->failed_watches < FAILED_WATCHES_MOST;
    pthread_mutex_unlock(&table.lock);
}

void admission_prefetch(const struct accel_span *x)
{
    pthread_mutex_lock(&table.lock);
    struct seen *seen = find_seen(x);
    if (seen)
        seen->missed_ms = 0;
    pthread_mutex_unlock(&table.lock);
}

bool admission_any_validated(void)
{
    return atomic_load_explicit(&validated, memory_order_relaxed) > 0;
}
