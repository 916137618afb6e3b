#include "places.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/thread/forks.h"

/* In a list, the newest first: programs have few at a time, and mostly use the newest. */
struct placed_object {
    struct placed_object *next;
    const void *address;
    enum place place;
};

static struct placed_object *objects;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
FORKS_LOCK(lock);

/* Returns the link to it, or the last link. Call it under the lock. */
static struct placed_object **link_to(const void *address)
{
    struct placed_object **link = &objects;
    while (*link && (*link)->address != address)
        link = &(*link)->next;
    return link;
}

void place_remove(const void *object)
{
    pthread_mutex_lock(&lock);
    struct placed_object **link = link_to(object), *found = *link;
    if (found)
        *link = found->next;
    pthread_mutex_unlock(&lock);
    free(found);
}

void place_add(const void *object, enum place place)
{
    struct placed_object *added = malloc(sizeof *added);
    place_remove(object);
    if (!added)
        return;
    pthread_mutex_lock(&lock);
    *added = (struct placed_object){objects, object, place};
    objects = added;
    pthread_mutex_unlock(&lock);
}

enum place place_of(const void *object)
{
    pthread_mutex_lock(&lock);
    const struct placed_object *found = *link_to(object);
    const enum place place = found ? found->place : PLACE_UNKNOWN;
    pthread_mutex_unlock(&lock);
    return place;
}

void place_put(const void *object, enum place place)
{
    pthread_mutex_lock(&lock);
    struct placed_object *found = *link_to(object);
    if (found)
        found->place = place;
    pthread_mutex_unlock(&lock);
}

bool place_move(const void *object, enum place from, enum place to, bool (*tell)(void *context),
                void *context)
{
    pthread_mutex_lock(&lock);
    struct placed_object *found = *link_to(object);
    const bool moved = found && found->place == from && tell(context);
    if (moved)
        found->place = to;
    pthread_mutex_unlock(&lock);
    return moved;
}
