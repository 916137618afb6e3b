/*
 * How BLAS's interfaces pass an argument: for those who read a call and those who make one. Pure functions.
 */
#ifndef ACCEL_BLAS_ABI_H
#define ACCEL_BLAS_ABI_H

#include "ops/call.h"
#include "ops/passing.h"

enum { CBLAS_ROW_MAJOR = 101, CBLAS_COL_MAJOR = 102 };

/* Values of the CBLAS enumerations (the reference cblas.h): the letters from `first` on. */
struct blas_letters {
    int first;
    const char *letters;
};

/* By flag. */
extern const struct blas_letters blas_letters[ACCEL_FLAGS];

/* Whether an interface has an argument of that kind. */
bool blas_is_passed(enum accel_abi abi, const struct accel_arg *arg);

/* Whether a scalar comes in a vector register. */
bool blas_is_by_value(enum accel_abi abi, const struct accel_routine *routine,
                      const struct accel_arg *arg);

/* The type in which a scalar argument is passed. */
enum accel_dtype blas_scalar_dtype(const struct accel_routine *routine, enum accel_kind kind);

void blas_store_scalar(void *p, struct accel_complex z, enum accel_dtype dtype);

/* The caller's word for argument i of a routine that has no scalar by value. */
uint64_t blas_word_of(const struct accel_passed *passed, int i);

/* INTEGER number `index` of an array; a single one is the first of one. */
int64_t blas_load_integer(uint64_t word, int width, int64_t index);

#endif
