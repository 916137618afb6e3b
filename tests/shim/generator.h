/*
 * A random call of a routine, as its caller means it: sizes with 0 and 1, every flag, room between
 * columns and between elements of vectors, the same matrix as both inputs, NaN and Inf, batches of
 * any number of products and groups.
 */
#ifndef ACCEL_TEST_GENERATOR_H
#define ACCEL_TEST_GENERATOR_H

#include "interfaces.h"
#include "matrices.h"

#define BATCH_MAX 4 /* products of a group */

struct random_call {
    const struct accel_routine *routine;
    bool row_major;
    int groups; /* GROUPS_MAX at most; 1 but for grouped batches */
    /* Each group as a call of its own: sizes, flags and operands are the caller's, also where the
     * layout is row-major. Operands point to where the routine finds them. */
    struct accel_call group[GROUPS_MAX];
    /* What there is of each operand; an operand that is the same as another has an empty one. */
    struct matrix matrix[GROUPS_MAX][ACCEL_MATRICES];
    /* Of batches with arrays: where the routine finds the matrices, one group's behind another's. */
    void *array[ACCEL_MATRICES][GROUPS_MAX * BATCH_MAX];
    /* Which of the matrices in memory an operand's i-th is. */
    int slot[GROUPS_MAX][ACCEL_MATRICES][BATCH_MAX];
    enum accel_matrix same_as[GROUPS_MAX][ACCEL_MATRICES]; /* usually itself */
};

struct random_limits {
    bool row_major;
    int max_size; /* of m, n, k */
    /* What a provider gets wrong, and is not asked for: */
    bool one_group;      /* of grouped batches */
    bool no_lower_ssymv; /* as it is stored by columns */
    bool no_conjugate;   /* of complex gemmt */
};

/* memory: for each operand, NULL for host memory. */
void random_call_make(struct random_call *x, const struct accel_routine *routine,
                      const struct random_limits *limits,
                      const struct test_memory *const memory[ACCEL_MATRICES], unsigned *seed);

/* The operands of group g, if the routine has such; else NULL. */
struct matrix *random_call_matrix(struct random_call *x, int g, enum accel_matrix which);

void random_call_release(struct random_call *x);

#endif
