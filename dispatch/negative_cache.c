#include "negative_cache.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>

#include "base/thread/forks.h"

/* A program has a few such places; of more than fit, the first ones are known. */
enum { PLACES = 256, PROBES = 8 };

enum { IN_A_ROW = 2, WANTED_FIRST = 2, WANTED_MOST = 64 };

struct negative_cache_site {
    _Atomic uint64_t key; /* 0: free */
    atomic_int wanted; /* successes on the CPU, before the GPU gets a call again; 0: it gets them */
    int level;         /* how many of them the last hold has begun with; 0: there was none */
    int declined;      /* since the last success on the GPU */
};

static struct negative_cache_site places[PLACES];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of what is not atomic, and of changes */
FORKS_LOCK(lock);

/* Returns the place of a key, or a free one; NULL if there is none. */
static struct negative_cache_site *find_site(uint64_t key)
{
    for (uint64_t i = 0; i < PROBES; i++) {
        struct negative_cache_site *place = &places[(key + i) % PLACES];
        const uint64_t there = atomic_load_explicit(&place->key, memory_order_acquire);
        if (there == key || there == 0)
            return place;
    }
    return NULL;
}

static struct negative_cache_site *known(uint64_t key)
{
    struct negative_cache_site *place = find_site(key);
    return place && atomic_load_explicit(&place->key, memory_order_relaxed) == key ? place : NULL;
}

bool negative_cache_holds(uint64_t key)
{
    const struct negative_cache_site *place = key ? known(key) : NULL;
    return place && atomic_load_explicit(&place->wanted, memory_order_relaxed) > 0;
}

/* Under the lock. */
static void decline(struct negative_cache_site *place)
{
    place->declined++;
    if (place->declined < IN_A_ROW)
        return;
    place->level = place->level == 0            ? WANTED_FIRST
                   : place->level < WANTED_MOST ? 2 * place->level
                                                : WANTED_MOST;
    atomic_store_explicit(&place->wanted, place->level, memory_order_relaxed);
}

void negative_cache_note_gpu(uint64_t key, bool done)
{
    if (!key || (done && !known(key)))
        return;
    pthread_mutex_lock(&lock);
    struct negative_cache_site *place = find_site(key);
    if (place && done) {
        place->declined = place->level = 0;
        atomic_store_explicit(&place->wanted, 0, memory_order_relaxed);
    } else if (place) {
        atomic_store_explicit(&place->key, key, memory_order_release);
        decline(place);
    }
    pthread_mutex_unlock(&lock);
}

void negative_cache_note_cpu(uint64_t key, bool succeeded)
{
    if (!negative_cache_holds(key))
        return;
    pthread_mutex_lock(&lock);
    struct negative_cache_site *place = known(key);
    const int wanted = place ? atomic_load_explicit(&place->wanted, memory_order_relaxed) : 0;
    if (wanted > 0)
        atomic_store_explicit(&place->wanted, succeeded ? wanted - 1 : place->level,
                              memory_order_relaxed);
    pthread_mutex_unlock(&lock);
}
