/*
 * The BLAS that a test program calls: the one it is linked to, or a library that it opens, whose names
 * may have a prefix and a suffix.
 */
#ifndef ACCEL_TEST_PROVIDER_H
#define ACCEL_TEST_PROVIDER_H

#include "interfaces.h"

struct provider {
    const char *library;         /* a path; NULL: the linked one */
    const char *prefix, *suffix; /* as in prefix_dgemm_64_, suffix behind Fortran's underscore */
    void *handle;
};

/* Opens the library, or ends the program. */
void provider_open(struct provider *provider);

/* Routine number `routine` of accel_routines[], NULL where the provider lacks it. */
blas_function *provider_find(const struct provider *provider, uint32_t routine, bool cblas);

#endif
