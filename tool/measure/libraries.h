/*
 * The BLAS and LAPACK libraries that are measured: finds a routine's Fortran function under any of
 * its names, and the library that has it.
 */
#ifndef ACCEL_TOOL_LIBRARIES_H
#define ACCEL_TOOL_LIBRARIES_H

#include <stdbool.h>

#include "dispatch/dispatch.h"

enum { LIBRARIES_MAX = 8 };

struct libraries {
    void *handle[LIBRARIES_MAX];
    int count;
    /* Functions are looked for in these alone, not in the libraries that they are linked to */
    bool own;
};

struct library_function {
    void *address;
    int width;                              /* bits of INTEGER */
    const struct dispatch_library *library; /* that the function is in */
};

/* Opens libraries, for good. paths: separated by commas; NULL: libblas.so.3 and liblapack.so.3, as
 * the dynamic linker finds them. Returns NULL, or what is wrong, in static memory. */
const char *libraries_open(struct libraries *library, const char *paths);

/* Opens the library at a path, for good; those that it is linked to are left out. Returns NULL, or
 * what is wrong, in static memory. */
const char *libraries_open_own(struct libraries *library, const char *path);

/* False if the libraries lack the routine, or the width of its integers is unknown. */
bool libraries_find(const struct libraries *library, const struct accel_routine *routine,
                    struct library_function *function);

/* Returns the number of threads that the function's library, or one that it is linked to, would
 * use; 1 if unknown. */
int library_threads(const struct library_function *function);

/* Sets that number, if the library has a function for it. OpenMP's holds for the calling thread
 * alone. */
void library_set_threads(const struct library_function *function, int threads);

#endif
