/*
 * liblinear's two methods for a loss. Their steps, when they end, and the lines that they print are those of the library. Products with
 * rows are the device's, those of vectors of the columns' length the host's.
 */
#ifndef ACCEL_LIBLINEAR_SOLVE_H
#define ACCEL_LIBLINEAR_SOLVE_H

#include "loss.h"

enum { LINEAR_SOLVE_VECTORS = 8 };

struct linear_solve {
    const struct linear_training *training;
    struct linear_loss *loss; /* of the problem; its failure ends a method */
    int64_t n;                /* columns */
    double eps;               /* ends when the gradient's norm is this share of that at 0 */
    double *w;                /* the start, and the result */
    int64_t lines;            /* printed so far */
    double *memory;           /* LINEAR_SOLVE_VECTORS of n elements */
};

__attribute__((format(printf, 2, 3))) void linear_line(struct linear_solve *s, const char *format,
                                                       ...);

/* The whole objective's parts from the losses' and w. The bias, the last weight, may be free. */
double linear_square(const struct linear_solve *s, const double *v, const double *w);
void linear_gradient(struct linear_solve *s, const double *w, double *g);
void linear_hessian(struct linear_solve *s, const double *v, double *hv);
/* The preconditioner of conjugate gradients. */
void linear_precondition(struct linear_solve *s, double *m);

/* Newton's method in a trust region, of 2.30 and scikit-learn. Returns the iterations. */
int linear_trust_region(struct linear_solve *s);
/* Newton's method with line search, from 2.40 on. */
int linear_newton(struct linear_solve *s);

#endif
