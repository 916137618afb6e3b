/*
 * Random products through a program's own BLAS calls, each checked against cpu_ref: the result
 * within the bound, everything else in memory untouched.
 */
#ifndef ACCEL_TEST_PRODUCTS_H
#define ACCEL_TEST_PRODUCTS_H

#include "gpu/call.h"

#ifdef TEST_ILP64
typedef int64_t blas_int;
#else
typedef int32_t blas_int;
#endif

enum test_interface { TEST_FORTRAN, TEST_NO_LENGTHS, TEST_CBLAS_COLUMN, TEST_CBLAS_ROW };

struct test_options {
    enum test_interface interface;
    unsigned seed;
    int count;    /* products for each of the four types */
    int max_size; /* of m, n, k */
};

/* Where operands come from; NULL members: plain host memory. */
struct test_memory {
    void *(*put)(const void *bytes, size_t size); /* a copy somewhere */
    void (*get)(void *bytes, const void *from, size_t size);
    void (*release)(void *where);
};

/* Returns the number of products that went wrong; each is described on stderr. memory: for A, B and
 * C, NULL for host memory. Thread-safe. */
int test_products(const struct test_options *options, const struct test_memory *memory[3]);

/* Parses "-i interface -s seed -c count -n size"; ends the program on anything else. Returns what
 * is left. */
int test_options_read(struct test_options *options, int argc, char **argv);

#endif
