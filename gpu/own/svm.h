/*
 * What gpu/exec/ml/smo.c and the kernels of gpu/own/svm*.cu and smo*.cu tell each other: plain data
 * in device memory.
 */
#ifndef ACCEL_OWN_SVM_H
#define ACCEL_OWN_SVM_H

#include <stdint.h>

#ifdef __cplusplus
#    define ON_DEVICE(type) type *
#else
#    define ON_DEVICE(type) unsigned long long
#endif

/* Numbers are libsvm's. */
enum smo_kernel_type { SMO_LINEAR, SMO_POLY, SMO_RBF, SMO_SIGMOID, SMO_PRECOMPUTED };

struct smo_kernel {
    int type; /* enum smo_kernel_type */
    int degree;
    double gamma, coef0;
};

/* Vectors with the squares of their norms. Dense: row i from values[i * ld] on; or CSR, where
 * columns ascend in a row. */
struct svm_rows {
    int64_t rows, features, ld;
    ON_DEVICE(const double) values;
    ON_DEVICE(const int64_t) start; /* NULL: dense */
    ON_DEVICE(const int32_t) column;
    ON_DEVICE(double) square;
};

/* Rows of the kernel matrix that are computed at once. */
#define SVM_BATCH 16
/* The features of a batch in shared memory: SVM_BATCH * SVM_WINDOW doubles. */
#define SVM_WINDOW 64

/* The most threads of a block that sums a row's elements. */
#define SVM_VECTOR_THREADS 128

/* A variable that a block or all blocks pick. */
struct smo_pick {
    double value;     /* by which the best is found */
    double violation; /* the largest among the variables that were looked at */
    double alpha, c, diagonal, gradient;
    double k;   /* of the second variable: its kernel value with the first */
    int32_t at; /* the variable; -1: none */
    int32_t column, sign;
};

/* The variables that blocks pick for a step: SMO_UP is the first of the pair, and SMO_LOW the
 * second. In a nu problem both have the same sign y: SMO_UP is then the first variable for y = 1,
 * and SMO_UP_NEGATIVE the one for y = -1. */
enum smo_role { SMO_UP, SMO_UP_NEGATIVE, SMO_LOW, SMO_ROLES };

enum smo_end { SMO_GOES_ON, SMO_OPTIMAL, SMO_CAPPED, SMO_NOT_FINITE };

/* The rows that a block would like to have computed for the variables of one side: I_up, or
 * I_low. */
#define SMO_WISHES (SVM_BATCH / 2)

/* Rows to compute, and where to. */
struct smo_batch {
    int32_t count, column[SVM_BATCH], slot[SVM_BATCH];
};

/* One problem. Each of its columns is a row of the matrix, which one or more of its variables have;
 * a kernel row has a value for each column. */
struct smo_task {
    int64_t n, columns;
    ON_DEVICE(const int32_t) column; /* of each variable */
    ON_DEVICE(const int32_t) row;    /* of each column; NULL: the column itself */
    ON_DEVICE(const signed char) y;
    ON_DEVICE(const double) p;
    ON_DEVICE(const double) c;
    ON_DEVICE(double) alpha;
    ON_DEVICE(double) gradient;
    ON_DEVICE(double) diagonal;
    ON_DEVICE(unsigned char) state; /* of each variable: SMO_POSITIVE and others of smo_block.cuh */
    ON_DEVICE(const int32_t) started; /* the variables whose alpha is not 0 at the start */
    int64_t starts;
    double eps;
    int64_t most; /* iterations */
    int nu;

    /* The kernel matrix: row i from k[i * ld] on. If it does not fit: `slots` of its rows. */
    ON_DEVICE(float) k;
    int64_t ld, slots;
    ON_DEVICE(int32_t) slot;   /* of each column; -1: none */
    ON_DEVICE(int32_t) holder; /* of each slot, its column */
    /* Of each slot, when it was used last; negative: computed then, not used yet */
    ON_DEVICE(int64_t) used;
    ON_DEVICE(struct smo_pick) pick; /* SMO_ROLES for each block */
    ON_DEVICE(struct smo_batch) batch;
    /* Rows worth computing together with those that a step needs: SMO_WISHES of each side, of each
     * block. */
    ON_DEVICE(struct smo_pick) wish;

    /* How it goes: */
    int64_t iterations, now, filled, touched, computed;
    int begun, end; /* enum smo_end */
    int bad;        /* a value does not fit a float */
};

/* The most threads of a block. Where the whole kernel matrix is there, threads wait for memory:
 * twice as many of them are worth a few registers that are spilled. */
#define SMO_MATRIX_THREADS 1024
#define SMO_ROWS_THREADS   512

/* Shared memory for blocks of so many threads. */
#define SMO_SHARED_BYTES(threads)                                                                  \
    (SMO_ROLES * sizeof(struct smo_pick) + (threads)*24 + SVM_BATCH * SVM_WINDOW * 8 + 512)

/* The sums over a problem's support vectors that check its solution: see svm_sums. */
struct svm_sum {
    int64_t columns, support;
    ON_DEVICE(const int32_t) row;    /* of each column */
    ON_DEVICE(const int32_t) vector; /* of each support vector, its row */
    ON_DEVICE(const double) coefficient;
    ON_DEVICE(const double) mass;
    ON_DEVICE(double) sums; /* 2 for each column */
};

#endif
