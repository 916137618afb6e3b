/*
 * The objects of guided libraries (guide.h) that the program has made, such as XGBoost's boosters,
 * and where each computes. Thread-safe.
 */
#ifndef ACCEL_PLACES_H
#define ACCEL_PLACES_H

#include <stdbool.h>

enum place {
    PLACE_UNKNOWN, /* not seen when it was made */
    PLACE_CHOSEN,  /* the program has chosen a device, or an algorithm that only one has */
    PLACE_OPEN,    /* on the CPU, and no choice has been made */
    PLACE_LEFT,    /* on the CPU: no device, or the library cannot use it */
    PLACE_ON_GPU,  /* told to use the device */
    PLACE_ASIDE    /* told to use the CPU, until it trains on */
};

/* Forgets an earlier object at the same address. If memory is short, the object stays unknown. */
void place_add(const void *object, enum place place);
void place_remove(const void *object);
enum place place_of(const void *object);

/* Does nothing if the object is unknown. */
void place_put(const void *object, enum place place);

/* Moves it to `to`, if it is at `from` and tell(context) returns true. Others wait meanwhile:
 * tell() calls nothing of this file. */
bool place_move(const void *object, enum place from, enum place to, bool (*tell)(void *context),
                void *context);

#endif
