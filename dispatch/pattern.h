/*
 * Lists of names and globs, separated by commas: which routines, which programs. * stands for any characters,
 * ? for one, [a-z] and [!a-z] for one of a set. Spaces around an item mean nothing. Nothing is allocated, no
 * locale is asked; any thread may use them.
 */
#ifndef ACCEL_PATTERN_H
#define ACCEL_PATTERN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ops/call.h"

struct accel_pattern {
    const char *text; /* somebody else's; NULL: empty, it matches nothing */
};

/* Whether an item names the routine. Upper and lower case are one, a trailing underscore means nothing.
 * A group may stand before the name: blas:, blas2:, blas3: (all of BLAS but Level 2), lapack:; alone it stands
 * for all of its routines. */
bool pattern_matches(const struct accel_pattern *pattern, const struct accel_routine *routine);

/* What is wrong with the first item that is of no use: it matches none of the routines, or there is no such
 * group. The item is copied to `item`, cut to `size` bytes with the 0 that ends it. NULL: nothing. */
const char *pattern_fault(const struct accel_pattern *pattern, const struct accel_routine *routines,
                          uint32_t count, char *item, size_t size);

/* Whether an item of the list names this, as it is written. The item `default` stands for the items of
 * `standard`. */
bool pattern_lists(const char *list, const char *standard, const char *name);

#endif
