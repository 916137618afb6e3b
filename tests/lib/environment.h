/*
 * The environment of a unit test.
 */
#ifndef ENVIRONMENT_H
#define ENVIRONMENT_H

#include <stdlib.h>
#include <string.h>

/* Removes all variables except cmocka's, which sets the form of its results, and those by which
 * `make coverage` finds what this test has run. */
static inline void clear_environment(void)
{
    static const char *const names[] = {"CMOCKA_MESSAGE_OUTPUT", "GCOV_PREFIX",
                                        "GCOV_PREFIX_STRIP"};
    enum { NAMES = sizeof names / sizeof *names };
    char *kept[NAMES];
    for (int i = 0; i < NAMES; i++) {
        const char *value = getenv(names[i]);
        kept[i] = value ? strdup(value) : NULL;
    }
    clearenv();
    for (int i = 0; i < NAMES; i++)
        if (kept[i]) {
            setenv(names[i], kept[i], 1);
            free(kept[i]);
        }
}

#endif
