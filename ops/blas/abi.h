/*
 * How BLAS's interfaces pass an argument: for parse.c, which reads a call, and pass.c, which makes
 * one. Pure functions.
 */
#ifndef ACCEL_BLAS_ABI_H
#define ACCEL_BLAS_ABI_H

#include "call/call.h"
#include "call/passing.h"

enum { CBLAS_ROW_MAJOR = 101, CBLAS_COL_MAJOR = 102 };

/* Values of a CBLAS enumeration (the reference cblas.h): `first` is that of the first letter. */
struct blas_letters {
    int first;
    const char *letters;
};

/* By flag. */
extern const struct blas_letters blas_letters[ACCEL_FLAGS];

/* Returns whether an interface has the argument. */
static inline bool blas_is_passed(enum accel_abi abi, const struct accel_arg *arg)
{
    return abi == ACCEL_ABI_LAPACKE ? !accel_is_fortran_only(arg->kind)
                                    : arg->kind != ACCEL_ARG_EXTRA;
}

/* Returns whether the argument is passed in a vector register. */
static inline bool blas_is_by_value(enum accel_abi abi, const struct accel_routine *routine,
                                    const struct accel_arg *arg)
{
    return abi != ACCEL_ABI_FORTRAN && !arg->array &&
           (arg->kind == ACCEL_ARG_REAL ||
            (arg->kind == ACCEL_ARG_SCALAR && !accel_is_complex(routine->dtype)));
}

/* A word of a call: an argument in a general register, or on the stack behind those. */
enum blas_word {
    BLAS_WORD_OTHER,
    BLAS_WORD_INTEGER, /* its address */
    BLAS_WORD_INTEGER_VALUE,
    BLAS_WORD_REAL,   /* the address of a real scalar */
    BLAS_WORD_COMPLEX /* of a complex one */
};

/* Lists the words of a routine's call, `most` at most; returns how many there are. */
int blas_words(enum blas_word word[], int most, enum accel_abi abi,
               const struct accel_routine *routine);

/* Returns the type in which a scalar argument is passed. */
enum accel_dtype blas_scalar_dtype(const struct accel_routine *routine, enum accel_kind kind);

/* Stores a scalar as its type at any address. */
void blas_store_scalar(void *p, struct accel_complex z, enum accel_dtype dtype);

/* Returns the caller's word for argument i; the routine must pass no scalar by value. */
uint64_t blas_word_of(const struct accel_passed *passed, int i);

/* Returns where a call has the value of an INTEGER argument. */
int64_t *blas_integer_of(struct accel_call *call, const struct accel_arg *arg);

/* Returns INTEGER number `index` of the array at address `word`; 0: of a single INTEGER. */
int64_t blas_load_integer(uint64_t word, int width, int64_t index);

#endif
