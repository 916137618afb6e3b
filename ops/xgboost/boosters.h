/*
 * The boosters that the program has made, and where each computes. Thread-safe.
 */
#ifndef XGBOOST_BOOSTERS_H
#define XGBOOST_BOOSTERS_H

#include <stdbool.h>

#include "ops/guide.h"

enum booster_place {
    BOOSTER_UNKNOWN, /* not seen when it was made */
    BOOSTER_CHOSEN,  /* the program has chosen a device, or an algorithm that only one has */
    BOOSTER_OPEN,    /* on the CPU, and no choice has been made */
    BOOSTER_LEFT,    /* on the CPU: no device, or the library cannot use it */
    BOOSTER_ON_GPU,  /* told to use the device */
    BOOSTER_ASIDE    /* told to use the CPU, until it trains on */
};

void booster_add(const void *booster);
void booster_remove(const void *booster);
enum booster_place booster_place(const void *booster);

/* Unless it is unknown. */
void booster_put(const void *booster, enum booster_place place);

/* Moves it to `to`, if it is at `from`: tells XGBoost `device`. Others wait meanwhile. False: it is elsewhere, or XGBoost does not
 * take the parameter. */
bool booster_move(const struct guide *guide, enum booster_place from, enum booster_place to,
                  const char *device);

#endif
