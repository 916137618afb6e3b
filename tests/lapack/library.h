/*
 * LAPACK as a program calls it: by the Fortran names that it is linked to, or those of a library
 * that it opens, whose names may have a prefix and a suffix.
 */
#ifndef ACCEL_TEST_LAPACK_LIBRARY_H
#define ACCEL_TEST_LAPACK_LIBRARY_H

#include <stddef.h>

struct library {
    const char *path; /* NULL: the linked one */
    const char *prefix, *suffix;
    void *handle;
};

typedef void lapack_function(void);

/* Opens the library, or ends the program. */
void library_open(struct library *library);

/* By the name without underscore. NULL where it is lacking. */
lapack_function *library_find(const struct library *library, const char *name);

/* Every name there is, one after the other; NULL at the end. */
const char *library_name(int i);

/* Calls with so many arguments, of which the last ones may be hidden lengths. */
void library_call(lapack_function *function, void *const *arguments, int count);

#endif
