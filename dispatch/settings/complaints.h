/*
 * Complaints about the settings: remembered while they are read, said later, in processes that call
 * BLAS. Nothing is allocated. Not thread-safe, except as said.
 */
#ifndef ACCEL_COMPLAINTS_H
#define ACCEL_COMPLAINTS_H

#include <stdbool.h>

/* The place of a value. */
struct complaint_place {
    const char *file; /* NULL: the environment */
    int line;         /* 0: the whole file */
};

/* The parts of one line: "FILE:LINE: NAME=VALUE", then problem, detail and outcome, unchanged. */
struct complaint {
    struct complaint_place place;
    const char *name;  /* NULL: none */
    const char *value; /* NULL: none */
    const char *problem, *detail, *outcome;
    bool ends_program; /* it is kept, however many complaints there are */
};

/* Forgets all complaints. */
void complaints_clear(void);

/* Remembers a complaint; copies its strings. */
void complaints_add(const struct complaint *complaint);

/* Whether there are complaints that have not been said. Thread-safe, cheap. */
bool complaints_wait(void);

/* Returns one of the lines that have been remembered, in their order; NULL behind the last. */
const char *complaints_line(int i);

/* Says each complaint, once. Thread-safe. */
void complaints_say(void);

#endif
