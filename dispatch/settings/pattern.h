/*
 * Lists of routines or programs: names and globs, separated by commas. * stands for any characters,
 * ? for one, [a-z] and [!a-z] for one of a set. Spaces around an item mean nothing. Allocates
 * nothing, in any locale. Thread-safe.
 */
#ifndef ACCEL_PATTERN_H
#define ACCEL_PATTERN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "call/call.h"

struct accel_pattern {
    const char *text; /* not owned; NULL: empty, matches nothing */
};

/* Whether an item names the routine, in upper or lower case, with or without a trailing underscore,
 * cblas_ or LAPACKE_. A group may stand before the name: blas:, blas2:, blas3: (all of BLAS except
 * Level 2), lapack:; alone it stands for all of its routines. */
bool pattern_matches(const struct accel_pattern *pattern, const struct accel_routine *routine);

/* Returns what is wrong with the first item that matches none of the routines, or has an unknown
 * group; NULL: there is none. Copies the item to `item`, cut to `size` bytes with its final 0. */
const char *pattern_fault(const struct accel_pattern *pattern, const struct accel_routine *routines,
                          uint32_t count, char *item, size_t size);

/* Whether an item of the list names `name`; case counts. The item `default` stands for the items of
 * `standard`. */
bool pattern_lists(const char *list, const char *standard, const char *name);

#endif
