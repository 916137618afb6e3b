/*
 * Calling any routine of the table through each of its interfaces, with the types that a program has
 * for it: the compiler places the arguments, as it does for users.
 */
#ifndef ACCEL_TEST_INTERFACES_H
#define ACCEL_TEST_INTERFACES_H

#include "ops/call.h"

#ifdef TEST_ILP64
typedef int64_t blas_int;
#else
typedef int32_t blas_int;
#endif

enum test_interface { TEST_FORTRAN, TEST_NO_LENGTHS, TEST_CBLAS_COLUMN, TEST_CBLAS_ROW };

static inline bool is_cblas(enum test_interface interface)
{
    return interface >= TEST_CBLAS_COLUMN;
}

#define GROUPS_MAX 3

/* A call as its caller writes it, argument by argument: of each what any routine may have, and of
 * arrays one for each group. Only grouped batches use more than the first. */
struct arguments {
    char letter[ACCEL_FLAGS][GROUPS_MAX]; /* Fortran's flags */
    int code[ACCEL_FLAGS][GROUPS_MAX];    /* the same for CBLAS */
    blas_int size[ACCEL_SIZES][GROUPS_MAX];
    union {
        float f[2 * GROUPS_MAX];
        double d[2 * GROUPS_MAX];
    } scalar[ACCEL_SCALARS]; /* of the routine's type, one behind the other */
    void *matrix[ACCEL_MATRICES];
    blas_int ld[ACCEL_MATRICES][GROUPS_MAX];
    blas_int inc[ACCEL_MATRICES], stride[ACCEL_MATRICES];
    blas_int batch[GROUPS_MAX];
    blas_int groups; /* 0: the arrays are NULL */
};

typedef void blas_function(void);

/* Calls a function that is routine number `routine` of accel_routines[] in that interface. */
void interface_call(enum test_interface interface, uint32_t routine, blas_function *function,
                    const struct arguments *x);

#endif
