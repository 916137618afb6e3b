/*
 * Random matrices and vectors with room around and between their elements, which must stay as it is.
 */
#ifndef ACCEL_TEST_MATRICES_H
#define ACCEL_TEST_MATRICES_H

#include "ops/call.h"

/* Where operands come from; NULL instead: plain host memory. */
struct test_memory {
    void *(*put)(const void *bytes, size_t size); /* a copy somewhere */
    void (*get)(void *bytes, const void *from, size_t size);
    void (*release)(void *where);
};

/* One or more matrices of one shape in one piece of memory. */
struct matrix {
    /* For matrix_make(): */
    int64_t rows, cols;
    int64_t inc; /* vectors: rows is 1; else 0 */
    int64_t count;
    enum accel_dtype dtype;
    bool row_major;
    char uplo; /* the triangle that counts; 0: all of it */
    bool unit; /* not even its diagonal */
    bool nan;  /* its elements, too, must not be read */
    bool output, real_diagonal, solvable;
    const struct test_memory *kind;
    /* Made: */
    int64_t ld, stride; /* of elements */
    size_t bytes;       /* with the room before and behind */
    char *memory;       /* on the host */
    char *copy;         /* as it was */
    char *where;        /* what the routine gets */
};

void matrix_make(struct matrix *x, unsigned *seed);

/* Puts NaN or Inf into an element that counts, if there is one. Before matrix_place(). */
void matrix_spoil(struct matrix *x, unsigned *seed);

/* Puts the matrices where they are wanted. From here on they belong to the routine. */
void matrix_place(struct matrix *x);

/* Bytes from `memory` or `where` to the first element of matrix i. */
size_t matrix_offset(const struct matrix *x, int64_t i);

/* Brings back what the routine left. Whether every byte is as it was; of the output, every byte
 * outside the elements that count. */
bool matrix_is_untouched(struct matrix *x);

/* The elements of matrix i as they were, in the order in which they are stored, without gaps. */
void matrix_pack(const struct matrix *x, int64_t i, char *packed);

void matrix_release(struct matrix *x);

double random_uniform(unsigned *seed); /* -1 to 1 */
int64_t random_below(unsigned *seed, int64_t n);

#endif
