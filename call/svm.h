/*
 * A support vector machine's problem and its solution, for libsvm's structs (libsvm.c) and for
 * scikit-learn's. Numbers of types and kernels are libsvm's. Plain data.
 */
#ifndef ACCEL_CALL_SVM_H
#define ACCEL_CALL_SVM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum svm_kind { SVM_C_SVC, SVM_NU_SVC, SVM_ONE_CLASS, SVM_EPSILON_SVR, SVM_NU_SVR };

enum svm_kernel_kind {
    SVM_LINEAR,  /* u.v */
    SVM_POLY,    /* (gamma u.v + coef0)^degree */
    SVM_RBF,     /* exp(-gamma |u - v|^2) */
    SVM_SIGMOID, /* tanh(gamma u.v + coef0) */
    SVM_PRECOMPUTED
};

struct svm_kernel {
    int type; /* enum svm_kernel_kind */
    int degree;
    double gamma, coef0;
};

/* Vectors, one a row. Dense and row-major, or in CSR: row i has the elements start[i] to start[i +
 * 1] - 1, whose columns ascend. Precomputed: dense, and element (i, j) is the kernel of row i and
 * row j. */
struct svm_matrix {
    int64_t rows, features;
    const double *dense;   /* rows * features; NULL: CSR */
    const int64_t *start;  /* rows + 1 */
    const int32_t *column; /* from 0 */
    const double *value;
};

/* The rows in the order in which the library groups them: those of class c are row[start[c]] to
 * row[start[c] + number[c] - 1]. One group of all rows: one-class and regression. */
struct svm_classes {
    int count;
    int *label, *start, *number; /* of each class */
    int *row;                    /* of each place, its row of the matrix */
};

struct svm_training {
    int type; /* enum svm_kind */
    struct svm_kernel kernel;
    const double *target;   /* of each row, for regression */
    const double *weight;   /* of each row, for scikit-learn; NULL: 1 */
    double *class_c;        /* of classification: C of each class */
    double c, nu, p, eps;   /* c: of regression */
    int64_t max_iterations; /* -1: libsvm's own cap, max(10^7, 100 n) */
    bool shrinking;
};

/* The solution of one problem: of two classes i < j, in the order (0,1), (0,2), ..., (1,2), ...;
 * else the only one. */
struct svm_function {
    int rows;            /* of the groups: those of class i, then those of class j */
    double *coefficient; /* of each row, as sv_coef has it, with its sign; 0: no support vector */
    double rho, objective;
    double r;             /* nu problems: what nu-SVC has divided by; nu-SVR's -epsilon */
    double sum;           /* of the variables; of regression: of the coefficients' magnitudes */
    int support, bounded; /* libsvm's nSV and nBSV */
    int64_t iterations;
    /* Of a training that the caller's cap has ended: the problem's variables, of regression two for
     * each row, which the coefficients do not tell. NULL: it has converged. */
    double *variables;
};

/* Problems of more classes are the library's own: their functions are counted by an int. */
enum { SVM_MOST_CLASSES = 1 << 15 };

/* Returns the number of functions. */
static inline int svm_function_count(int type, int classes)
{
    return type == SVM_C_SVC || type == SVM_NU_SVC ? classes * (classes - 1) / 2 : 1;
}

#endif
