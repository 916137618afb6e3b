/*
 * The exported names and what each says about the call: built from the routine table and the
 * manglings. Constant data; any thread may read it.
 */
#ifndef ACCEL_NAMES_H
#define ACCEL_NAMES_H

#include "call.h"
#include "passing.h"

/* What a mangling says: a row of manglings.def. */
struct accel_mangling {
    enum accel_abi abi;
    int width;         /* bits of INTEGER, 0: to be probed */
    bool trusted;      /* false: other libraries may use such a name for something else */
    const char *probe; /* isamax in this mangling, for probing the width */
};

struct accel_name {
    char symbol[40];
    char sibling[40]; /* the name that the same library must define as well, if not trusted */
};

/* Entry numbers run routine by routine, within one mangling by mangling: for BLAS and LAPACK, each of whose routines has
 * accel_mangling_count names; behind those, for functions of other libraries, which have as many as their rows list. */
extern const struct accel_name accel_names[];
extern const uint32_t accel_name_count, accel_blas_name_count, accel_mangling_count;

const struct accel_mangling *accel_name_mangling(uint32_t entry);
const struct accel_routine *accel_name_routine(uint32_t entry);

/* Entry number of an exported name, -1 where it is none. Allocates nothing: the dlsym hook runs
 * inside other libraries' allocators. */
int accel_name_find(const char *symbol);

#endif
