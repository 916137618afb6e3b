#include "sightings.h"

#include <pthread.h>

#include "base/forks.h"

/* A set holds all operands whose keys have the same hash. */
enum { SETS = 32, WAYS = 8 };

/* A miss costs a digest, for which a hit saves an upload: an operand must be found twice for each time that it is not. One that always
 * changes is digested at every 64th call in the end. */
enum { MISS = 2, DOUBT_MOST = 12 };

static struct seen {
    const void *ptr;
    int64_t rows, cols, ld;
    enum accel_dtype dtype;
    bool kept;
    int doubt,
        rest; /* MISS for each miss, less 1 for each hit; calls that do not digest it, from now on */
    uint64_t used; /* 0: the entry is free */
    struct gpu_key key;
} table[SETS][WAYS];
static uint64_t now;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
FORKS_LOCK(lock);

/* In the child of a fork, which has no device. */
static void forget(void)
{
    if (now > 0) /* else its pages stay untouched */
        memset(table, 0, sizeof table);
}
FORKS_CHILD(forget);

static struct seen *set_of(const struct accel_span *x)
{
    const int64_t words[] = {(int64_t)(uintptr_t)x->ptr, x->rows, x->cols, x->ld, x->dtype};
    return table[gpu_digest_columns((const char *)words, sizeof words, 1, sizeof words).word[0] %
                 SETS];
}

/* With the lock. Returns NULL if the operand has not been seen. */
static struct seen *find(const struct accel_span *x)
{
    struct seen *set = set_of(x);
    for (int i = 0; i < WAYS; i++)
        if (set[i].used && set[i].ptr == x->ptr && set[i].rows == x->rows &&
            set[i].cols == x->cols && set[i].ld == x->ld && set[i].dtype == x->dtype)
            return &set[i];
    return NULL;
}

/* With the lock. In place of the one that has not been seen for longest. */
static void add(const struct accel_span *x)
{
    struct seen *set = set_of(x), *oldest = set;
    for (int i = 1; i < WAYS; i++)
        if (set[i].used < oldest->used)
            oldest = &set[i];
    *oldest = (struct seen){.ptr = x->ptr,
                            .rows = x->rows,
                            .cols = x->cols,
                            .ld = x->ld,
                            .dtype = x->dtype,
                            .used = ++now};
}

enum sighting sightings_see(const struct accel_span *x)
{
    enum sighting how = SIGHTING_PLAIN;
    pthread_mutex_lock(&lock);
    struct seen *seen = find(x);
    if (!seen) {
        add(x);
    } else {
        seen->used = ++now;
        if (seen->rest > 0)
            seen->rest--;
        else
            how = seen->kept ? SIGHTING_LOOK : SIGHTING_KEEP;
    }
    pthread_mutex_unlock(&lock);
    return how;
}

void sightings_kept(const struct accel_span *x, const struct gpu_key *key)
{
    pthread_mutex_lock(&lock);
    struct seen *seen = find(x);
    if (seen) {
        seen->kept = true;
        seen->key = *key;
    }
    pthread_mutex_unlock(&lock);
}

enum sighting sightings_looked(const struct accel_span *x, bool found)
{
    enum sighting how = SIGHTING_PLAIN;
    pthread_mutex_lock(&lock);
    struct seen *seen = find(x);
    if (seen && found) {
        seen->doubt -= seen->doubt > 0;
    } else if (seen) {
        seen->kept = false;
        seen->doubt = (int)accel_min(seen->doubt + MISS, DOUBT_MOST);
        if (seen->doubt == MISS)
            how = SIGHTING_KEEP;
        else
            seen->rest = (1 << seen->doubt / MISS) - 1;
    }
    pthread_mutex_unlock(&lock);
    return how;
}

bool sightings_expect(const struct accel_span *x, struct gpu_key *key)
{
    pthread_mutex_lock(&lock);
    const struct seen *seen = find(x);
    const bool expected = seen && seen->kept && seen->doubt == 0 && seen->rest == 0;
    if (expected)
        *key = seen->key;
    pthread_mutex_unlock(&lock);
    return expected;
}
