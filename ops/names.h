/*
 * The exported names and what each says about the call, built from the routine table and the
 * manglings. Constant data.
 */
#ifndef ACCEL_NAMES_H
#define ACCEL_NAMES_H

#include "call/call.h"
#include "call/passing.h"

/* A row of manglings.def. */
struct accel_mangling {
    enum accel_abi abi;
    int width;         /* bits of INTEGER; 0: the name does not tell */
    bool trusted;      /* false: other libraries may use such a name for something else */
    const char *probe; /* isamax in this mangling: nearly every BLAS has it */
};

struct accel_name {
    char symbol[40];
    char sibling[40]; /* if not trusted: the name that the same library must define too */
};

/* By entry number. First each routine of BLAS and LAPACK, in all its accel_mangling_count
 * manglings; then each function of another library, under the names that its row lists. */
extern const struct accel_name accel_names[];
extern const uint32_t accel_name_count, accel_blas_name_count, accel_mangling_count;

/* Return the mangling of a name, and the row of its routine. */
const struct accel_mangling *accel_name_mangling(uint32_t entry);
const struct accel_routine *accel_name_routine(uint32_t entry);

/* Returns the row of the routine that an exported name, or one of ACCEL_NO_NAME, belongs to; NULL
 * if there is none. */
const struct accel_routine *accel_name_called(const char *symbol);

/* Returns whether some function without an exported name has the routine's operation, and the row
 * of the one of this name, or NULL. */
bool accel_name_has_outer(const struct accel_routine *routine);
const struct accel_routine *accel_name_outer(const struct accel_routine *routine,
                                             const char *symbol);

/* Returns the entry number of an exported name, or -1. Allocates nothing: the dlsym hook runs
 * inside other libraries' allocators. */
int accel_name_find(const char *symbol);

/* The same for a symbol whose hash is known: that of .gnu.hash, which keeps no lowest bit. */
int accel_name_find_hashed(const char *symbol, uint32_t hash);

static inline uint32_t accel_name_hash(const char *symbol)
{
    uint32_t hash = 5381;
    for (; *symbol; symbol++)
        hash = hash * 33 + (unsigned char)*symbol;
    return hash;
}

#endif
