#include "sites.h"

#include <pthread.h>
#include <stdatomic.h>

/* A program has a few; where there are more, the first ones are known. */
enum { PLACES = 4096, PROBES = 8 };

static struct place {
    _Atomic uint64_t key; /* 0: free */
    atomic_bool lost;
    int runs;
    double gpu_ms, cpu_ms; /* of the runs that count */
} places[PLACES];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of what is not atomic */

/* Runs before a judgement, and by how much they have to lose: what is measured is noisy. The first run sets up what others
 * use: it counts only where it is long. */
enum { RUNS_LEAST = 2 };
static const double margin = 1.25, long_ms = 100;

/* splitmix64's last steps (Steele, Lea and Flood, 2014): every bit depends on every other one. */
static uint64_t mixed(uint64_t x)
{
    x ^= x >> 30;
    x *= 0xbf58476d1ce4e5b9;
    x ^= x >> 27;
    x *= 0x94d049bb133111eb;
    return x ^ x >> 31;
}

uint64_t sites_key(uintptr_t site, const struct accel_call *call)
{
    uint64_t key = mixed((uint64_t)site) ^ mixed((uint64_t)(uintptr_t)call->routine + 1);
    for (int i = 0; i <= ACCEL_DIMENSIONS; i++) {
        int64_t size = i < ACCEL_DIMENSIONS ? call->size[i] : call->batch;
        uint64_t power = size > 0 ? 64 - (uint64_t)__builtin_clzll((unsigned long long)size) : 0;
        key = mixed(key + power + 1);
    }
    return key ? key : 1;
}

/* The place of a key; a free one, or NULL where all are taken. */
static struct place *find(uint64_t key)
{
    for (uint64_t i = 0; i < PROBES; i++) {
        struct place *place = &places[(key + i) % PLACES];
        uint64_t there = atomic_load_explicit(&place->key, memory_order_acquire);
        if (there == key || there == 0)
            return place;
    }
    return NULL;
}

bool sites_lost(uint64_t key)
{
    struct place *place = find(key);
    return place && atomic_load_explicit(&place->key, memory_order_relaxed) == key &&
           atomic_load_explicit(&place->lost, memory_order_relaxed);
}

bool sites_note(uint64_t key, double gpu_ms, double cpu_ms)
{
    bool lost = false;
    pthread_mutex_lock(&lock);
    struct place *place = find(key);
    if (place) {
        bool first = atomic_load(&place->key) == 0;
        atomic_store_explicit(&place->key, key, memory_order_release);
        place->runs++;
        if (!first || gpu_ms > cpu_ms + long_ms) {
            place->gpu_ms += gpu_ms;
            place->cpu_ms += cpu_ms;
        }
        lost = (place->runs > RUNS_LEAST || (first && place->gpu_ms > 0)) &&
               place->gpu_ms > margin * place->cpu_ms && !atomic_load(&place->lost);
        if (lost)
            atomic_store(&place->lost, true);
    }
    pthread_mutex_unlock(&lock);
    return lost;
}

void sites_fork_child(void)
{
    pthread_mutex_init(&lock, NULL);
}
