/*
 * One training: its problems are solved one after the other, and make a model.
 */
#ifndef ACCEL_LIBLINEAR_FIT_H
#define ACCEL_LIBLINEAR_FIT_H

#include "classes.h"
#include "solve.h"

/* What a problem's method ended with. */
struct linear_end {
    int iterations;
    bool enough; /* as in struct linear_solve */
    double objective, norm;
};

/* The rows lie among others on the device, which cost nothing there. */
struct linear_spread {
    int64_t rows;     /* of all */
    const int *place; /* of each row that counts */
    double *y, *c;    /* of all */
};

struct linear_fit {
    struct linear_training training;
    struct linear_classes classes;
    int problems;
    struct linear_rows x;
    struct linear_loss loss;
    struct linear_solve solve;
    int rows;                           /* that count */
    struct linear_node **x_of;          /* of each of them */
    double *y, *c;                      /* of each of them, in the problem that is being solved */
    const struct linear_spread *spread; /* NULL: the device has just these rows */
    struct linear_end *ends;            /* of each problem */
    void *model;
    struct linear_model *common; /* of the model */
    int *iterations;             /* of the model; NULL: its layout has none */
};

/* Of two classes and in regression, one problem. */
static inline int linear_problems_of(int classes)
{
    return classes == 0 || classes == 2 ? 1 : classes;
}

/* Makes a fit with a model of zeros. Returns false if memory is short. The caller frees it,
 * whatever is returned. */
bool linear_fit_make(struct linear_fit *t, const struct linear_training *training);
/* Frees all but the model. */
void linear_fit_free(struct linear_fit *t);
/* Frees the model. */
void linear_fit_free_model(struct linear_fit *t);

/* Trains on the device. elements: those of all rows. After a failure t->solve.lines have been
 * printed, and the model is none. */
enum gpu_status linear_fit_train(struct linear_fit *t, struct gpu_work *work, int64_t elements);

/* Trains with rows that are on the device already, by f. */
enum gpu_status linear_fit_solve(struct linear_fit *t, struct linear_loss *f);

/* Judges the model: see cpu_ref_linear(). */
double linear_fit_judge(struct linear_fit *t);

#endif
