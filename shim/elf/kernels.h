/*
 * What a CPU library multiplies with, by its own words and by what it is linked to. Nothing is
 * printed, set or computed. Thread-safe.
 */
#ifndef ACCEL_SHIM_KERNELS_H
#define ACCEL_SHIM_KERNELS_H

#include <link.h>

#include "dispatch/cost/cpu_kernels.h"

enum { ACCEL_CORE_BYTES = 24 };

struct accel_kernels {
    enum cpu_kernels kernels;
    char
        name[ACCEL_CORE_BYTES]; /* of the core that they are for; empty: the library does not say */
};

/* Returns that of a library of BLAS or LAPACK, object, whose handle is open; LAPACK's are those
 * of the BLAS that it calls. */
struct accel_kernels accel_kernels_of(void *handle, const struct link_map *object);

#endif
