#include "arrivals.h"

#include <errno.h>
#include <pthread.h>

#include "base/thread/forks.h"
#include "base/thread/monotonic_wait.h"

/* In so much time a device is sent 100 GB. */
#define WAIT_MS 2000

enum { PLACES = 32 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
FORKS_LOCK(lock);
static pthread_cond_t news;
static pthread_once_t news_once = PTHREAD_ONCE_INIT;

static void init_news(void)
{
    monotonic_condition(&news);
}

static struct {
    const struct gpu_work *by; /* NULL: the place is free */
    uint64_t user;
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

/* Only what the same user's calls bring, and to the same device. */
static bool arrives(const struct gpu_work *work, const struct gpu_key *key)
{
    const uint64_t user = work->host->user.id;
    for (int i = 0; i < PLACES; i++)
        if (place[i].by && place[i].user == user && place[i].by->device == work->device &&
            gpu_key_is(&place[i].key, key))
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
        place[i].user = work->host->user.id;
        place[i].key = *key;
        work->brings = true;
    }
    pthread_mutex_unlock(&lock);
}

bool arrivals_await(const struct gpu_work *work, const struct gpu_key *key)
{
    const struct timespec until = monotonic_deadline(WAIT_MS);
    pthread_once(&news_once, init_news);
    pthread_mutex_lock(&lock);
    const bool did = !work->brings && arrives(work, key);
    while (did && arrives(work, key) && pthread_cond_timedwait(&news, &lock, &until) != ETIMEDOUT)
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
    pthread_once(&news_once, init_news);
    pthread_cond_broadcast(&news);
    pthread_mutex_unlock(&lock);
    work->brings = false;
}
