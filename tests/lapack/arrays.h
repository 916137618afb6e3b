/*
 * A routine's arrays: memory with room around and between the columns, which must stay as it is.
 */
#ifndef ACCEL_TEST_LAPACK_ARRAYS_H
#define ACCEL_TEST_LAPACK_ARRAYS_H

#include "cpu_ref/residual.h"

#ifdef TEST_ILP64
typedef int64_t lapack_int;
#else
typedef int32_t lapack_int;
#endif

/* Everything random comes from here, and from nothing that a library returns: a case is the same
 * with any of them. */
struct random {
    uint64_t state;
};

int64_t random_below(struct random *random, int64_t n); /* 0 for n < 1 */
long double random_uniform(struct random *random);      /* -1 to 1 */

/* Which elements a routine may change. */
enum region {
    UNTOUCHED = 'N',
    WHOLE = 'A',
    UPPER = 'U',
    LOWER = 'L',
    STRICTLY_UPPER = 'u',
    STRICTLY_LOWER = 'l'
};

struct array {
    int64_t rows, cols, ld;
    bool integers; /* of lapack_int; else of dtype */
    enum accel_dtype dtype;
    size_t size, bytes;  /* of an element, of all the memory */
    char *memory, *copy; /* as it is, as it was before the last call */
};

/* Filled with NaN, or with numbers: a pattern of bytes. */
struct array array_new(enum accel_dtype dtype, int64_t rows, int64_t cols, struct random *random);
struct array array_vector(enum accel_dtype dtype, int64_t length, struct random *random);
struct array array_integers(int64_t length, struct random *random);
struct array array_clone(const struct array *x);
void array_free(struct array *x);

char *array_at(const struct array *x, int64_t row, int64_t col);
void array_put(struct array *x, int64_t row, int64_t col, value z);
value array_get(const struct array *x, int64_t row, int64_t col);
lapack_int *array_integer(const struct array *x, int64_t i);

/* Makes the copy. */
void array_keep(struct array *x);

/* Whether nothing outside the region differs from the copy. */
bool array_is_kept(const struct array *x, enum region region);

/* A view of the first rows and columns, as they are or as they were. */
struct view array_view(const struct array *x, int64_t rows, int64_t cols);
struct view array_view_before(const struct array *x, int64_t rows, int64_t cols);

/* The first element as it is or was. */
const void *array_data(const struct array *x);
const void *array_data_before(const struct array *x);

/* FNV-1a over all bytes, on from `hash`. */
uint64_t array_digest(const struct array *x, uint64_t hash);

#endif
