/*
 * Random Level 3 calls through a program's own BLAS, each checked against cpu_ref: the result
 * within the bound, everything else in memory untouched, nothing read that must not be.
 */
#ifndef ACCEL_TEST_CALLS_H
#define ACCEL_TEST_CALLS_H

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
    int count;            /* calls of each routine */
    int max_size;         /* of m, n, k */
    const char *routines; /* which: a pattern for their names, as the shell has them */
};

/* Where operands come from; NULL members: plain host memory. */
struct test_memory {
    void *(*put)(const void *bytes, size_t size); /* a copy somewhere */
    void (*get)(void *bytes, const void *from, size_t size);
    void (*release)(void *where);
};

/* How many calls test_calls() makes. Thread-safe. */
int test_calls_count(const struct test_options *options);

/* Returns the number of calls that went wrong; each is described on stderr in a line, with the seed
 * that makes it the first call (-s SEED -r NAME, and the same interface and size). memory: for A, B
 * and C, NULL for host memory. Thread-safe. */
int test_calls(const struct test_options *options, const struct test_memory *memory[3]);

/* Parses "-i interface -s seed -c count -n size -r routines"; ends the program on anything else,
 * and where no routine is left. Returns the index of what follows. */
int test_options_read(struct test_options *options, int argc, char **argv);

#endif
