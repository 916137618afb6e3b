/*
 * liblinear's two methods for a loss. Their steps, when they end, and the lines that they print are
 * those of the library. Products with rows are the device's, those of vectors of the columns'
 * length the host's.
 */
#ifndef ACCEL_LIBLINEAR_SOLVE_H
#define ACCEL_LIBLINEAR_SOLVE_H

#include "loss.h"

struct linear_solve {
    const struct linear_training *training;
    struct linear_loss *loss; /* of the problem; its failure ends a method */
    int64_t n;                /* columns */
    double eps;               /* ends when the gradient's norm is this share of that at 0 */
    bool silent;              /* prints no lines */
    int64_t lines;            /* printed so far */
    /* At the end: */
    bool enough;            /* the gradient is small enough */
    double objective, norm; /* of the gradient */
    double *memory;         /* of the vectors, n elements each: */
    double *w;              /* the start, and the result */
    double *w_new;          /* another place */
    double *g, *m;          /* gradient; diagonal preconditioner */
    double *s, *r;          /* step, and the residual after it */
    double *d, *hd, *z;     /* of conjugate gradients: direction, H d, r / m */
};

/* Makes the vectors; the caller frees s->memory. Returns false if memory is short. */
bool linear_solve_make(struct linear_solve *s, int64_t n);

__attribute__((format(printf, 2, 3))) void linear_line(struct linear_solve *s, const char *format,
                                                       ...);

/* Returns v'w without the bias, the last element, if that is not regularized. */
double linear_square(const struct linear_solve *s, const double *v, const double *w);
/* Returns the objective at w. */
double linear_objective(struct linear_solve *s, const double *w);
/* Sets g, at the w that the objective was asked for last; H is from now on the Hessian there. */
void linear_gradient(struct linear_solve *s, const double *w);
void linear_precondition(struct linear_solve *s);

/* Sets g and *f, the objective, at the start. Returns the norm of the gradient at 0. */
double linear_start(struct linear_solve *s, double *f);

/* Ends a method, with the objective and the norm of the gradient at w. */
void linear_end(struct linear_solve *s, double objective, double norm, double enough);

/* Sets s and r to a step of 0, and d to the first direction. Returns z'r. */
double linear_cg_begin(struct linear_solve *s);
/* Sets hd. Returns d'Hd. */
double linear_cg_bend(struct linear_solve *s);
/* Sets d to the next direction; zr: the last z'r. Returns the next one. */
double linear_cg_turn(struct linear_solve *s, double zr);

/* Newton's method in a trust region, of 2.30 and scikit-learn. Returns the iterations. */
int linear_trust_region(struct linear_solve *s);
/* Newton's method with line search, from 2.40 on. */
int linear_newton(struct linear_solve *s);

#endif
