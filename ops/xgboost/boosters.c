#include "boosters.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/forks.h"

struct booster {
    struct booster *next;
    const void *handle;
    enum booster_place place;
};

static struct booster *boosters;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
FORKS_LOCK(lock);

/* Returns the link to it, or the last link. Call it under the lock. */
static struct booster **link_to(const void *handle)
{
    struct booster **link = &boosters;
    while (*link && (*link)->handle != handle)
        link = &(*link)->next;
    return link;
}

void booster_remove(const void *handle)
{
    pthread_mutex_lock(&lock);
    struct booster **link = link_to(handle), *found = *link;
    if (found)
        *link = found->next;
    pthread_mutex_unlock(&lock);
    free(found);
}

void booster_add(const void *handle)
{
    struct booster *added = malloc(sizeof *added);
    booster_remove(handle);
    if (!added)
        return; /* it stays unknown */
    pthread_mutex_lock(&lock);
    *added = (struct booster){boosters, handle, BOOSTER_OPEN};
    boosters = added;
    pthread_mutex_unlock(&lock);
}

enum booster_place booster_place(const void *handle)
{
    pthread_mutex_lock(&lock);
    const struct booster *found = *link_to(handle);
    const enum booster_place place = found ? found->place : BOOSTER_UNKNOWN;
    pthread_mutex_unlock(&lock);
    return place;
}

void booster_put(const void *handle, enum booster_place place)
{
    pthread_mutex_lock(&lock);
    struct booster *found = *link_to(handle);
    if (found)
        found->place = place;
    pthread_mutex_unlock(&lock);
}

bool booster_move(const struct guide *guide, enum booster_place from, enum booster_place to,
                  const char *device)
{
    const struct accel_provider *provider = guide->passed->provider;
    void *handle = (void *)(uintptr_t)guide->passed->gpr[0];
    if (booster_place(handle) != from) /* spares most calls the look-up */
        return false;
    void *function = provider->symbol(provider, "XGBoosterSetParam");
    int (*set)(void *booster, const char *name, const char *value);
    memcpy(&set, &function, sizeof set);
    pthread_mutex_lock(&lock);
    struct booster *found = *link_to(handle);
    const bool moved = found && found->place == from && set && set(handle, "device", device) == 0;
    if (moved)
        found->place = to;
    pthread_mutex_unlock(&lock);
    return moved;
}
