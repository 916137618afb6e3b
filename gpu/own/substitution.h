/*
 * What gpu/exec/blas/triangle_solve.c and the kernels of gpu/own/substitution.cu tell each other.
 */
#ifndef ACCEL_OWN_SUBSTITUTION_H
#define ACCEL_OWN_SUBSTITUTION_H

#include <stdint.h>

/* A kernel's block has at most so many threads, with a right-hand side each; blocks of the triangle
 * have so many rows and columns. */
#define SUBSTITUTION_THREADS 128
#define SUBSTITUTION_BLOCK   64

/* X := alpha inv(T) B, in place of B, of a lower triangle T. Steps are in elements, and may be
 * negative: an upper triangle is a lower one whose rows and columns are counted from the last
 * one. */
struct substitution_task {
    const void *t; /* device memory: element (0, 0) */
    int64_t t_row, t_col;
    void *b;               /* device memory: the first element of the first right-hand side */
    int64_t b_row, b_next; /* to its next element; to the next right-hand side */
    int64_t order, nrhs;   /* order: from 1 to 2^30; nrhs: right-hand sides */
    double alpha;
    int32_t unit; /* T's diagonal counts as ones, and is not read */
};

#endif
