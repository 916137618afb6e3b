/*
 * The libsvm within scikit-learn: sklearn/svm/_libsvm*.so and _libsvm_sparse*.so of PyPI's wheels. Each of the two defines
 * svm_train() for dense vectors and svm_csr_train() for sparse ones. From 1.3 to 1.9 structs and functions are alike
 * (sklearn/svm/src/libsvm/svm.h).
 */
#ifndef ACCEL_SVM_SKLEARN_H
#define ACCEL_SVM_SKLEARN_H

#include "fit.h"
#include "libsvm.h"
#include "ops/passing.h"
#include "problem.h"

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
    struct libsvm lines; /* prints */
};

/* Returns 1 + the number of the scikit-learn that defines provider->function; 0 if that is another library, or a version that is not
 * known. */
int sklearn_of(const struct accel_provider *provider);
const struct sklearn *sklearn_numbered(int number);

/* A call of svm_train() or svm_csr_train(), and what is made of it. */
struct sklearn_fit {
    const struct sklearn *library;
    const struct sklearn_problem *problem;
    const struct sklearn_parameter *parameter;
    struct svm_training training;
    struct svm_classes classes; /* in the order of their labels */
    int64_t stored;             /* elements of all vectors */
    int *kept;                  /* of each row of training.x, its row in *problem */
    void *owned[12];
    int owned_count;
};

/* Fills in all but the first three members. Returns false if memory is short, or if scikit-learn's own function must see the call;
 * sklearn_release() follows in any case. vectors: wants training.x's elements, not only their number. */
bool sklearn_read(struct sklearn_fit *fit, bool vectors);
void sklearn_release(struct sklearn_fit *fit);

/* Whether any two classes weigh enough for nu. */
bool sklearn_is_feasible(const struct svm_training *training, const struct svm_classes *classes);

/* ---- Probabilities ---- */

enum { SKLEARN_RANDOM_WORDS = 624, SKLEARN_FOLDS = 5 };

struct sklearn_random {
    uint32_t word[SKLEARN_RANDOM_WORDS];
    int next;
};
void sklearn_seed(struct sklearn_random *random, uint32_t seed);
/* Sets place[] to 0, 1, ..., and shuffles it. */
void sklearn_shuffle(struct sklearn_random *random, int *place, int count);

/* Two classes, or all rows of a regression, in SKLEARN_FOLDS folds. */
struct sklearn_group {
    int count;
    int *row,
        *place; /* rows of the matrix; their places, shuffled: those of a fold beside each other */
    double *label; /* of each row: 1, -1; of a regression 1 */
    int sign
        [SKLEARN_FOLDS]; /* what is decided if rows outside of the fold are of one class: 1, -1 */
    double a, b;         /* the sigmoid; of a regression, a is Laplace's sigma */
    const char *message; /* what scikit-learn prints of it */
};

/* Draws the folds, and makes SKLEARN_FOLDS jobs for each group; one without functions has nothing to train. The groups and jobs are
 * empty before, and are freed by the caller in any case. Returns false if scikit-learn itself must answer. */
bool sklearn_make_groups(const struct sklearn_fit *fit, struct sklearn_group *groups,
                         struct svm_job *jobs);
/* Sets a, b and message. values: what the jobs' functions decide on the rows of the matrix, `functions` to a row. Returns false
 * without memory. */
bool sklearn_estimate(const struct sklearn_fit *fit, struct sklearn_group *groups, int count,
                      const struct svm_job *jobs, const double *values, int functions);
void sklearn_groups_free(struct sklearn_group *groups, int count);

/* Returns the model that scikit-learn's function makes, each array in memory of its own; NULL if memory is short. group_count: 0: no
 * probabilities. */
struct sklearn_model *sklearn_model_of(const struct sklearn_fit *fit,
                                       const struct svm_function *functions,
                                       const struct sklearn_group *groups, int group_count);
void sklearn_free_model(struct sklearn_model *model);

#endif
