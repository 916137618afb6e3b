/*
 * The liblinears whose train() is known: liblinear's own versions, and the copy within
 * scikit-learn. Their structs, which one a program has, and what it does differently.
 */
#ifndef ACCEL_LIBLINEAR_LIBRARY_H
#define ACCEL_LIBLINEAR_LIBRARY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "call/linear.h"
#include "call/passing.h"

/* Directions that a program's training is expected to try, rather too few and rather too many. */
enum { LINEAR_DIRECTIONS = 20, LINEAR_DIRECTIONS_MOST = 100 };

struct linear_problem {
    int rows, columns; /* columns: the bias's, too, which is in the rows */
    double *target;    /* or label */
    struct linear_node **x;
    double bias;    /* < 0: none */
    double *weight; /* scikit-learn: of each row; those with 0 or less do not count */
};

/* What all layouts of struct parameter begin with. */
struct linear_parameter {
    int solver;
    double eps, c;
    int class_weights;
    int *weight_label;
    double *weight;
};

struct linear_parameter_230 {
    struct linear_parameter common;
    double p, *init_sol;
};

struct linear_parameter_243 {
    struct linear_parameter common;
    double p, nu, *init_sol;
    int regularize_bias;
    bool w_recalc; /* from 2.48 on; before it is padding */
};

struct linear_parameter_sklearn {
    struct linear_parameter common;
    int max_iter;
    double p;
};

/* What all layouts of struct model have behind their parameter. */
struct linear_model {
    int classes, features;
    /* Of column j and class k: w[j * classes + k]; of two classes only the first is there */
    double *w;
    int *label; /* of each class; NULL: regression */
    double bias;
};

struct linear_model_230 {
    struct linear_parameter_230 parameter;
    struct linear_model model;
};

struct linear_model_243 {
    struct linear_parameter_243 parameter;
    struct linear_model model;
    double rho; /* of one-class problems */
};

struct linear_model_sklearn {
    struct linear_parameter_sklearn parameter;
    struct linear_model model;
    int *iterations; /* of each problem */
};

enum linear_layout {
    LINEAR_230 = 1, /* trust region, preconditioned */
    LINEAR_243,     /* Newton with line search; the bias may be left out of the regularization */
    LINEAR_SKLEARN  /* trust region; weights of rows; sorted classes; of two, the second is the
                       positive one */
};

typedef void linear_print_function(const char *text);

typedef double linear_predict_function(const void *model, const struct linear_node *row);

/* A liblinear that the program has. Constant once made; stays. */
struct linear_library {
    const void *train;
    linear_predict_function *predict;
    enum linear_layout layout;
    /* Where it keeps the function that prints its lines */
    linear_print_function *const volatile *print;
};

/* Returns 1 + the number of the library that defines provider->function; 0 if it is another one, or
 * another version. */
int linear_library_of(const struct accel_provider *provider);
/* The same of a function that trains by the library's own train(): 0 also for a layout other than
 * LINEAR_243. Negative: it calls train() through the dynamic linker, so that each of its trainings
 * is decided. */
int linear_library_around(const struct accel_provider *provider);
const struct linear_library *linear_library_numbered(int number);

/* Runs the original without its first `lines` lines in this thread. Lines of other threads are
 * printed. */
bool linear_skip_lines(const struct linear_library *library, int64_t lines,
                       bool (*original)(void *context), void *context);

/* A call of train(), in whichever library's structs it came. */
struct linear_training {
    const struct linear_library *library;
    const struct linear_problem *problem;
    const struct linear_parameter *parameter;
    double p;
    const double *init_sol; /* NULL: 0 */
    bool free_bias;         /* the last weight is not regularized */
    int max_iterations;
};

/* Reads the arguments of a call, which must be valid. */
struct linear_training linear_training_of(const struct linear_library *library,
                                          const struct linear_problem *problem,
                                          const struct linear_parameter *parameter);

/* Returns the model as train() makes it, with arrays for so many weights, labels and problems, all
 * zeros: labels = 0: none. The library's own functions free it. *common: its part that all layouts
 * have; *iterations: NULL if the layout has none. Returns NULL if memory is short. */
void *linear_model_make(const struct linear_training *training, size_t weights, int labels,
                        int problems, struct linear_model **common, int **iterations);
void linear_model_free(void *model, struct linear_model *common, int *iterations);

#endif
