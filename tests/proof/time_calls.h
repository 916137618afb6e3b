/*
 * What time_calls calls, and how it judges results.
 */
#ifndef ACCEL_PROOF_TIME_CALLS_H
#define ACCEL_PROOF_TIME_CALLS_H

#include <stdbool.h>
#include <stddef.h>

enum { VECTORS = 4 };

/* The matrices of one routine and order. */
struct data {
    const struct routine *routine;
    int n;
    size_t bytes; /* of a matrix */
    char *source; /* what x is made of before each call; NULL: the call leaves its inputs alone */
    char *x, *y, *z;   /* y and z where the routine has more */
    double *values;    /* n of them: tau, eigenvalues, singular values */
    int *pivots, info; /* pivots: n, and LAPACK's integer workspace */
    double *work;
    int lwork, liwork;
    double *vectors; /* VECTORS of 2 n numbers, to judge by */
    bool judged;     /* a result of these inputs, and it was right */
};

struct routine {
    const char *name;
    int item;                                 /* bytes of an element */
    int matrices;                             /* 1: x; 2: and y; 3: and z */
    double operations, elements_in, elements; /* times n cubed, n squared, n squared */
    bool (*prepare)(struct data *);           /* contents; false for no memory */
    void (*call)(struct data *);
    double (*figure)(const struct data *);
    double (*judge)(const struct data *);
};

/* Take memory for an operand, or return NULL; and give it back. By malloc(), unless cublasxt.c is
 * there, which pins it. */
char *new_operand(size_t bytes);
void free_operand(char *memory);

/*
 * How far the result of a call is off, by distance() of products.h: at most 1, where it is right.
 * From the inputs, or the source that is kept of what is overwritten, and all of the result.
 */
double judge_product(const struct data *);
double judge_square(const struct data *);
double judge_solution(const struct data *);
double judge_lu(const struct data *);
double judge_cholesky(const struct data *);
double judge_qr(const struct data *);
double judge_eigenvectors(const struct data *);
double judge_singular_vectors(const struct data *);

#endif
