/*
 * Random calls of the table's routines through a program's own BLAS, each checked against cpu_ref:
 * the result within the bound, everything else in memory untouched, nothing read that must not be.
 */
#ifndef ACCEL_TEST_CALLS_H
#define ACCEL_TEST_CALLS_H

#include "matrices.h"
#include "provider.h"

struct test_options {
    enum test_interface interface;
    unsigned seed;
    int count;            /* calls of each routine */
    int max_size;         /* of m, n, k */
    const char *routines; /* which: a pattern for their names, as bash's extglob has them */
    struct provider provider;
    const char *faults; /* what the provider gets wrong: see calls.c */
};

/* How many calls test_calls() makes. Thread-safe. */
int test_calls_count(const struct test_options *options);

/* Returns the number of calls that went wrong; each is described on stderr in a line, with the seed
 * that makes it the first call (-s SEED -r NAME, and the same interface and size). memory: for each
 * operand, NULL for host memory. Thread-safe. */
int test_calls(const struct test_options *options,
               const struct test_memory *const memory[ACCEL_MATRICES]);

/* Says on stdout which of the wanted routines the provider lacks, if any: "lacks: NAME NAME". */
void test_calls_say_lacking(const struct test_options *options);

/* Parses "-i interface -s seed -c count -n size -r routines -l library -p prefix -x suffix -f
 * faults" and opens the provider; ends the program on anything else, and where no routine is left. Returns the
 * index of what follows. */
int test_options_read(struct test_options *options, int argc, char **argv);

#endif
