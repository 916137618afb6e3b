/*
 * The BLAS and LAPACK libraries that are measured: a routine's Fortran function under whatever name they have it, and
 * what tells one library from another.
 */
#ifndef ACCEL_TOOL_LIBRARIES_H
#define ACCEL_TOOL_LIBRARIES_H

#include <stdbool.h>

#include "dispatch/dispatch.h"

enum { LIBRARIES_MAX = 8 };

struct libraries {
    void *handle[LIBRARIES_MAX];
    int count;
    bool own; /* without what they are linked to */
};

struct library_function {
    void *address;
    int width;                              /* bits of INTEGER */
    const struct dispatch_library *library; /* the one that it lies in */
};

/* paths: separated by commas; NULL: those that the dynamic linker has as libblas.so.3 and liblapack.so.3. They stay
 * open. Returns NULL, or what is wrong, in static memory. */
const char *libraries_open(struct libraries *library, const char *paths);

/* The one at a path, without what it is linked to. It stays open. Returns NULL, or what is wrong, in static memory. */
const char *libraries_open_own(struct libraries *library, const char *path);

/* False where the libraries lack the routine, or its integers cannot be told. */
bool libraries_find(const struct libraries *library, const struct accel_routine *routine,
                    struct library_function *function);

/* How many threads its library, or what that is linked to, would use; 1 where it does not say. */
int library_threads(const struct library_function *function);

/* Has it use so many from here on, where it can be told; of OpenMP, for the calling thread. */
void library_set_threads(const struct library_function *function, int threads);

#endif
