/*
 * The libsvm within scikit-learn: sklearn/svm/_libsvm*.so and _libsvm_sparse*.so of PyPI's wheels.
 * Each of the two defines svm_train() for dense vectors and svm_csr_train() for sparse ones. From
 * 1.3 to 1.9 structs and functions are alike (sklearn/svm/src/libsvm/svm.h).
 */
#ifndef ACCEL_SVM_SKLEARN_H
#define ACCEL_SVM_SKLEARN_H

#include "fit.h"
#include "libsvm.h"
#include "call/passing.h"
#include "call/svm.h"

struct sklearn_node {
    int features;
    int row; /* of a precomputed kernel: the vector's column in all rows */
    const double *values;
};

struct sklearn_problem {
    int rows;
    const double *target; /* or label */
    union {
        const struct sklearn_node *dense;
        const struct libsvm_node *const *csr; /* indices from 1 */
    } x;
    const double *weight; /* rows with 0 or less do not count */
};

struct sklearn_parameter {
    struct libsvm_parameter libsvm;
    int max_iterations; /* -1: no limit */
    int seed;           /* -1: none */
};

/* What svm_train() returns. */
struct sklearn_model {
    struct sklearn_parameter parameter;
    int classes, support; /* classes: 2 if there are none */
    void *vectors;        /* dense: nodes; else their addresses */
    double **coefficient; /* classes - 1 arrays */
    int *iterations;      /* of each function */
    int *index;           /* of each support vector, among the rows that count */
    double *rho, *prob_a, *prob_b;
    int *label, *support_of; /* of each class; NULL: none */
    int frees_vectors;
};

/* One object of a scikit-learn that the program has. Constant once made; stays. */
struct sklearn {
    const void *train; /* svm_train() or svm_csr_train() */
    bool csr;          /* the latter */
    void (*set_seed)(unsigned seed);
    struct libsvm libsvm; /* how it groups classes, shuffles and prints; no model */
};

/* Returns 1 + the number of the scikit-learn that defines provider->function; 0 if that is another
 * library, or a version that is not known. */
int sklearn_of(const struct accel_provider *provider);
const struct sklearn *sklearn_numbered(int number);

/* A call of svm_train() or svm_csr_train(), and what is made of it. */
struct sklearn_fit {
    const struct sklearn *library;
    const struct sklearn_problem *problem;
    const struct sklearn_parameter *parameter;
    struct libsvm_source source; /* the rows that count */
    struct svm_matrix x;
    int64_t stored; /* elements of all vectors */
    int *kept;      /* of each row of x, its row in *problem */
    void *owned[8];
    int owned_count;
};

/* Fills in all but the first three members, and the call's job. Returns false if memory is short,
 * or if scikit-learn's own function must see the call; then there is no job. sklearn_release()
 * follows in any case. vectors: wants x's elements, not only their number. */
bool sklearn_read(struct sklearn_fit *fit, bool vectors, struct svm_job *job);
void sklearn_release(struct sklearn_fit *fit);

/* Shuffles by the numbers that follow the seed. */
void sklearn_shuffle(int *place, int count, int seed);

/* Returns the model that scikit-learn's function makes, each array in memory of its own; NULL if
 * memory is short. */
struct sklearn_model *sklearn_model_of(const struct sklearn_fit *fit,
                                       const struct libsvm_trainings *trainings);
void sklearn_free_model(struct sklearn_model *model);

#endif
