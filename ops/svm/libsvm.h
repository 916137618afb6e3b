/*
 * libsvm's own structs: those that are the same from 2.89 to 3.37, and where a version's model
 * differs. A provider's version is in its libsvm_version. Trainings, folds, probabilities and
 * lines, which scikit-learn's copy has, too.
 */
#ifndef ACCEL_SVM_LIBSVM_H
#define ACCEL_SVM_LIBSVM_H

#include <string.h>

#include "ops/folds.h"
#include "call/passing.h"
#include "fit.h"

struct libsvm_node {
    int index; /* -1: the end of a vector */
    double value;
};

struct libsvm_problem {
    int l;
    double *y;
    struct libsvm_node **x;
};

struct libsvm_parameter {
    int svm_type, kernel_type, degree;
    double gamma, coef0, cache_size, eps, C;
    int nr_weight;
    int *weight_label;
    double *weight;
    double nu, p;
    int shrinking, probability;
};

_Static_assert(sizeof(struct libsvm_node) == 16 && sizeof(struct libsvm_problem) == 24 &&
                   sizeof(struct libsvm_parameter) == 104,
               "as libsvm's header has them");

/* The model's members up to probB; the others' places differ. */
struct libsvm_model {
    struct libsvm_parameter param;
    int nr_class, l;
    struct libsvm_node **SV;
    double **sv_coef, *rho, *probA, *probB;
};

struct libsvm_model_layout {
    int first, last;                /* versions */
    uint8_t density_marks, indices; /* offsets of pointers in the model; 0: not in these versions */
    uint8_t label, counts, free_sv;
    uint8_t bytes;
};

/* Returns the pointer at an offset in a model. */
static inline const void *libsvm_pointer_at(const struct libsvm_model *model, size_t offset)
{
    const void *pointer;
    memcpy(&pointer, (const char *)model + offset, sizeof pointer);
    return pointer;
}

typedef void libsvm_print(const char *text);
typedef void libsvm_shuffle(int *place, int count, int seed);

/* A libsvm that the program has. Constant once asked; stays. */
struct libsvm {
    const void *train; /* its svm_train() */
    const struct libsvm_model_layout *model;
    libsvm_print *volatile *print; /* where it keeps the function that prints its lines */
    bool swaps;                    /* classes -1 and 1 are ordered 1, -1 */
    bool prints_nu;                /* of C-SVC and epsilon-SVR */
    bool sorts;                    /* classes are ordered by their labels */
    libsvm_shuffle *shuffle;       /* NULL: by random numbers that are not known */
};

/* Returns 1 + the number of the libsvm that defines provider->function; 0 if that is another
 * library or another version, or if nothing tells how it prints. */
int libsvm_of(const struct accel_provider *provider);
const struct libsvm *libsvm_numbered(int number);
/* Has it train two vectors, once: not before the program trains, because a libsvm with OpenMP
 * starts threads. Returns NULL if the model is not as expected. */
const struct libsvm *libsvm_asked(int number);

/* Returns where the provider keeps the function that prints its lines; NULL if that is not
 * found. */
libsvm_print *volatile *libsvm_print_of(const struct accel_provider *provider);

/* Whether svm_check_parameter() accepts the parameters, as far as classes do not matter, and no
 * number is NaN. Probabilities of one-class, which the function refuses in some versions, are
 * accepted. */
bool libsvm_is_valid(const struct libsvm_parameter *parameter);

bool libsvm_classifies(int type);

/* What jobs are made of: a problem's rows. */
struct libsvm_source {
    const struct libsvm *library;
    int l;
    const double *y, *weight; /* of each row; no weights: NULL */
    int max_iterations;       /* -1: no limit of the caller's */
    int seed;                 /* of library->shuffle, if it takes one */
};

static inline struct libsvm_source libsvm_source_of(const struct libsvm *library,
                                                    const struct libsvm_problem *problem)
{
    return (struct libsvm_source){
        .library = library, .l = problem->l, .y = problem->y, .max_iterations = -1};
}

/* Whether each target is a number, and of classification one that is cast to int. */
bool libsvm_has_targets(const struct libsvm_source *source, int type);

/* The vectors of a problem. */
struct libsvm_size {
    int64_t features, stored; /* elements that are not 0 by absence */
    int base;                 /* the lowest index is at least this: 0 or 1 */
};

/* Returns false if the vectors are not what libsvm's documentation asks for: then only libsvm
 * itself knows what to do. */
bool libsvm_measure(const struct libsvm_problem *problem, bool precomputed,
                    struct libsvm_size *size);
/* Whether the matrix of so many vectors is dense. */
bool libsvm_is_dense(int64_t rows, const struct libsvm_size *size);
/* Copies the vectors. Returns false without memory; else the caller frees the matrix. */
bool libsvm_vectors(const struct libsvm_problem *problem, bool precomputed,
                    const struct libsvm_size *size, struct svm_matrix *x);

/* Rows of a problem, and their targets: what libsvm makes a problem of. */
struct libsvm_rows {
    int count;
    const int *row; /* NULL: all */
    const double *y;
};

/* Groups the rows by class, in the library's order; of regression and one-class makes one group.
 * Returns false without memory, or if there are too many classes; else the caller frees them. */
bool libsvm_group(const struct libsvm *library, const struct libsvm_rows *rows, bool classifies,
                  struct svm_classes *classes);

/* Whether svm_train() may be done here: if so, measures the vectors and makes the call's
 * training. */
bool libsvm_takes(const struct libsvm *library, const struct libsvm_problem *problem,
                  const struct libsvm_parameter *parameter, struct libsvm_size *size,
                  struct svm_job *job);

/* Reads the first two arguments of svm_train() and svm_cross_validation(): svm_dialect.parse. */
bool libsvm_parse(struct accel_call *call, const struct accel_passed *passed, int layout);

/* Judges trainings of the problem's vectors: see svm_judge_jobs(). */
double libsvm_judge(const struct libsvm_problem *problem, const struct svm_job *jobs, int count);

/* Makes a training of some rows, with empty functions. Returns false if libsvm itself must answer:
 * without memory, for one class or too many, a weight of a class that is not there, a nu that is
 * infeasible. Then there is nothing to free. */
bool libsvm_job_make(const struct libsvm_source *source, const struct libsvm_parameter *parameter,
                     const struct libsvm_rows *rows, struct svm_job *job);

/* malloc(), which returns NULL for 0 elements only without memory. */
void *libsvm_array(int64_t count, size_t size);
/* Makes the model that svm_train() returns, which svm_free_and_destroy_model() frees. NULL without
 * memory. */
struct libsvm_model *libsvm_model_of(const struct libsvm *library,
                                     const struct libsvm_problem *problem,
                                     const struct libsvm_parameter *parameter,
                                     const struct svm_job *job);
/* Fills a model's arrays: row: of each support vector; counts: support vectors of each class, of
 * all if there are no classes; coefficient: an array for each class except one; rho: of each
 * function. used: as svm_support_of() has marked it. */
void libsvm_fill(const struct svm_job *job, const bool *used, int *row, int *counts,
                 double **coefficient, double *rho);
/* Frees it; its arrays may be NULL. */
void libsvm_model_free(struct libsvm_model *model, const struct libsvm_model_layout *layout);

/* Dots that are printed while a device trains. */
struct svm_progress {
    const struct libsvm *library;
    double start;
    int64_t iterations, dots; /* of all functions so far, and the dots printed for them */
};
struct svm_progress svm_progress_of(const struct libsvm *library);
/* For struct smo. context: a struct svm_progress. */
void svm_note_progress(void *context, int64_t iterations);

/* Prints what svm_train() prints; of a job without functions, nothing. `dots`: so many have been
 * printed meanwhile; returns those that are left. */
int64_t libsvm_print_job(const struct libsvm *library, const struct svm_job *job, int64_t dots);
/* The lines of the classes i <= j, and any line. */
int64_t libsvm_print_function(const struct libsvm *library, const struct svm_training *training,
                              const struct svm_function *function, int i, int j, int64_t dots);
void libsvm_say(const struct libsvm *library, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* The line of a regression with probabilities. */
void libsvm_say_sigma(const struct libsvm *library, double sigma);

/* ---- Folds: places are shuffled, and the places of each fold are left out once ---- */

struct libsvm_folds {
    int count;
    int *place, *start; /* those of a fold beside each other; count + 1 starts */
};

/* Shuffle as svm_cross_validation() does, classes apart if they are given. Return false without
 * memory. */
bool libsvm_fold_classes(const struct libsvm_source *source, const struct svm_classes *classes,
                         int count, struct libsvm_folds *folds);
bool libsvm_fold_all(const struct libsvm_source *source, int places, int count,
                     struct libsvm_folds *folds);
void libsvm_folds_free(struct libsvm_folds *folds);

/* Makes the training without a fold. Places are those of `rows`. Returns false if libsvm itself
 * must answer. */
bool libsvm_fold_job(const struct libsvm_source *source, const struct libsvm_parameter *parameter,
                     const struct libsvm_folds *folds, int fold, const struct libsvm_rows *rows,
                     struct svm_job *job);

/* ---- Probabilities ---- */

enum { LIBSVM_FOLDS = 5 };

/* Two classes, or all rows of a regression. */
struct libsvm_group {
    struct libsvm_rows rows; /* y: 1 or -1 */
    struct libsvm_folds folds;
    int sign[LIBSVM_FOLDS]; /* 1, -1: all rows outside of the fold are of that class; 0: of both */
    double a, b;            /* the sigmoid; of regression, a is Laplace's sigma */
    const char *message;    /* what libsvm prints of it */
};

/* Draws the folds, and makes LIBSVM_FOLDS jobs for each group; those with a sign have no functions.
 * jobs[-1] is the job of the call. Returns false if libsvm itself must answer. */
bool libsvm_make_groups(const struct libsvm_source *source,
                        const struct libsvm_parameter *parameter, struct svm_job *jobs,
                        struct libsvm_group *groups);
/* Sets a, b and message. values: of svm_decide_jobs() for the jobs from jobs[-1] on. Returns false
 * without memory. */
bool libsvm_estimate_groups(const struct libsvm_source *source, const struct svm_job *jobs,
                            const double *values, struct libsvm_group *groups);
void libsvm_groups_free(struct libsvm_group *groups, int count);

/* All trainings of a call. */
struct libsvm_trainings {
    struct libsvm_source source;
    struct svm_job *jobs; /* the call's, then LIBSVM_FOLDS for each group */
    struct libsvm_group *groups;
    int group_count; /* 0: no probabilities */
    struct svm_progress progress;
};
/* Whether the decisions of the call's job and of its folds' may be in memory at once. */
bool libsvm_may_estimate(const struct svm_job *job, int rows);
/* Takes the call's job, in any case. Returns false without memory; libsvm_trainings_free() follows
 * in any case. */
bool libsvm_trainings_take(struct libsvm_trainings *t, struct svm_job *job, bool estimates);
void libsvm_trainings_free(struct libsvm_trainings *t);
int libsvm_job_count(const struct libsvm_trainings *t);
/* Trains all jobs, and estimates from what they decide. */
enum gpu_status libsvm_trainings_run(struct libsvm_trainings *t, struct gpu_work *work,
                                     const struct svm_matrix *x);
/* Prints what svm_train() prints. folds_last: the folds of a regression are trained last. */
void libsvm_trainings_print(const struct libsvm_trainings *t, bool folds_last);
/* Copies the estimates into arrays of their own; *b: NULL of regression. Returns false without
 * memory; the caller frees both. */
bool libsvm_copy_estimates(const struct libsvm_trainings *t, double **a, double **b);

/* libsvm's sigmoid_train(): 1 / (1 + exp(a f + b)) for decision values f. Returns what it prints;
 * NULL without memory. */
const char *libsvm_sigmoid(int count, const double *decisions, const double *labels, double *a,
                           double *b);

#endif
