/*
 * What gpu/triangle_solve.c and the kernels of gpu/own/substitution.cu tell each other.
 */
#ifndef ACCEL_OWN_SUBSTITUTION_H
#define ACCEL_OWN_SUBSTITUTION_H

#include <stdint.h>

/* The most rows of a triangle, and threads of a block, each with a right-hand side. */
#define SUBSTITUTION_ORDER   64
#define SUBSTITUTION_THREADS 64

/* X := alpha inv(T) B, in place of B, of a lower triangle T. Steps are in elements, and may be negative: an upper triangle is a lower one
 * whose rows and columns are counted from the last one. */
struct substitution_task {
    const void *t; /* device memory: element (0, 0) */
    int64_t t_row, t_col;
    void *b;               /* device memory: the first element of the first right-hand side */
    int64_t b_row, b_side; /* to its next element; to the next right-hand side */
    int64_t order, sides;  /* order: from 1 to SUBSTITUTION_ORDER */
    double alpha;
    int32_t unit; /* T's diagonal counts as ones, and is not read */
};

#endif
