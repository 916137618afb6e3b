#include "arrivals.h"

#include <errno.h>
#include <pthread.h>
#include <time.h>

#include "base/thread/forks.h"

/* In so much time a device is sent 15 GB. */
#define WAIT_NS 300000000

enum { PLACES = 32 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
FORKS_LOCK(lock);
static pthread_cond_t news = PTHREAD_COND_INITIALIZER;
static struct {
    const struct gpu_work *by; /* NULL: the place is free */
    struct gpu_key key;
} place[PLACES];

/* A child has no calls under way. */
static void forget(void)
{
    for (int i = 0; i < PLACES; i++)
        if (place[i].by)
            place[i].by = NULL;
}
FORKS_CHILD(forget);

static bool arrives(const struct gpu_key *key)
{
    for (int i = 0; i < PLACES; i++)
        if (place[i].by && gpu_key_is(&place[i].key, key))
            return true;
    return false;
}

void arrivals_begin(struct gpu_work *work, const struct gpu_key *key)
{
    int i = 0;
    pthread_mutex_lock(&lock);
    while (i < PLACES && place[i].by)
        i++;
    if (i < PLACES) {
        place[i].by = work;
        place[i].key = *key;
        work->brings = true;
    }
    pthread_mutex_unlock(&lock);
}

bool arrivals_await(const struct gpu_work *work, const struct gpu_key *key)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += WAIT_NS;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_mutex_lock(&lock);
    const bool did = !work->brings && arrives(key);
    while (did && arrives(key) && pthread_cond_timedwait(&news, &lock, &until) != ETIMEDOUT)
        continue;
    pthread_mutex_unlock(&lock);
    return did;
}

void arrivals_end(struct gpu_work *work)
{
    if (!work->brings)
        return;
    pthread_mutex_lock(&lock);
    for (int i = 0; i < PLACES; i++)
        if (place[i].by == work)
            place[i].by = NULL;
    pthread_cond_broadcast(&news);
    pthread_mutex_unlock(&lock);
    work->brings = false;
}
