#include "misprediction.h"

#include <pthread.h>

#include "base/memory/hash.h"
#include "base/thread/forks.h"
#include "call/shape.h"

enum { PROBES = 8 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of what is not atomic */
FORKS_LOCK(lock);

/* A place is judged after RUNS_LEAST runs, or a loss of long_ms; it has lost if the GPU took more
 * than `margin` times the CPU's time, as measured times are noisy. The first run does not count: it
 * loads kernels and libraries. But long first runs of the process count once they have lost
 * setup_most_ms together. Where a run has gained, a single one that loses tells nothing, however
 * long it was (a process may be stopped), and counts for no more than `most` times the CPU's time;
 * the next one in a row counts in full. */
enum { RUNS_LEAST = 3 };
static const double margin = 1.25, long_ms = 100, setup_most_ms = 2000, most = 4;

uint64_t call_site_key(uintptr_t site, const struct accel_call *call)
{
    const int64_t *sizes = accel_sizes(call);
    uint64_t word[ACCEL_DIMENSIONS + 3] = {site, (uintptr_t)call->routine};
    for (int i = 0; i <= ACCEL_DIMENSIONS; i++) {
        const int64_t size = i < ACCEL_DIMENSIONS ? sizes[i] : call->batch;
        word[2 + i] = size > 0 ? 64 - (uint64_t)__builtin_clzll((unsigned long long)size) : 0;
    }
    return hash_bytes(word, sizeof word) | UINT64_C(1) << 63; /* 0 would be a free place */
}

/* Returns the place of a key, or a free one; NULL if all are taken. */
static struct mispredicted_site *find_site(struct mispredictions *mispredictions, uint64_t key)
{
    for (uint64_t i = 0; i < PROBES; i++) {
        struct mispredicted_site *place = &mispredictions->places[(key + i) % MISPREDICTION_PLACES];
        uint64_t there = atomic_load_explicit(&place->key, memory_order_acquire);
        if (there == key || there == 0)
            return place;
    }
    return NULL;
}

bool misprediction_is_lost(struct mispredictions *mispredictions, uint64_t key)
{
    struct mispredicted_site *place = find_site(mispredictions, key);
    return place && atomic_load_explicit(&place->key, memory_order_relaxed) == key &&
           atomic_load_explicit(&place->lost, memory_order_relaxed);
}

/* Whether this is a first run that does not count. Under the lock. */
static bool is_setup(struct mispredictions *mispredictions, const struct mispredicted_site *place,
                     double loss_ms)
{
    if (place->runs > 1)
        return false;
    if (loss_ms <= long_ms)
        return true;
    if (mispredictions->setup_ms + loss_ms > setup_most_ms)
        return false;
    mispredictions->setup_ms += loss_ms;
    return true;
}

/* Under the lock. */
static void count_run(struct mispredicted_site *place, double gpu_ms, double cpu_ms)
{
    const bool loses = gpu_ms > margin * cpu_ms, single = place->gained && !place->losing;
    place->losses += loses;
    place->gained = place->gained || !loses;
    place->losing = loses;
    place->gpu_ms += single && gpu_ms > most * cpu_ms ? most * cpu_ms : gpu_ms;
    place->cpu_ms += cpu_ms;
}

static bool has_lost(const struct mispredicted_site *place)
{
    const bool enough = place->runs >= RUNS_LEAST || place->gpu_ms - place->cpu_ms > long_ms;
    return enough && place->gpu_ms > margin * place->cpu_ms &&
           place->losses >= (place->gained ? 2 : 1);
}

enum misprediction_verdict misprediction_note(struct mispredictions *mispredictions, uint64_t key,
                                              double gpu_ms, double cpu_ms)
{
    enum misprediction_verdict verdict = MISPREDICTION_USUAL;
    pthread_mutex_lock(&lock);
    struct mispredicted_site *place = find_site(mispredictions, key);
    if (place) {
        atomic_store_explicit(&place->key, key, memory_order_release);
        place->runs++;
        if (!is_setup(mispredictions, place, gpu_ms - cpu_ms))
            count_run(place, gpu_ms, cpu_ms);
        if (has_lost(place) && !atomic_exchange(&place->lost, true))
            verdict = MISPREDICTION_SENT_BACK;
        else if (place->runs < RUNS_LEAST)
            verdict = MISPREDICTION_EARLY;
    }
    pthread_mutex_unlock(&lock);
    return verdict;
}
