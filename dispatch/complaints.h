/*
 * What is wrong with the settings: remembered while they are read, said later, in processes that call BLAS. Nothing is
 * allocated. Not thread-safe, except as said.
 */
#ifndef ACCEL_COMPLAINTS_H
#define ACCEL_COMPLAINTS_H

#include <stdbool.h>

/* Where a value comes from. */
struct complaint_place {
    const char *file; /* NULL: the environment */
    int line;         /* 0: the whole file */
};

/* The parts of one line: "FILE:LINE: NAME=VALUE", and the problem, its detail and the outcome, as they are. */
struct complaint {
    struct complaint_place place;
    const char *name;  /* NULL: none */
    const char *value; /* NULL: none */
    const char *problem, *detail, *outcome;
    bool ends_program; /* such a one is kept, however many there are */
};

/* Forgets all of them. */
void complaints_clear(void);

/* Remembers one; its strings are copied. */
void complaints_add(const struct complaint *complaint);

/* Whether there are some that have not been said. Thread-safe. */
bool complaints_wait(void);

/* Says each of them, once. Thread-safe. */
void complaints_say(void);

#endif
