/*
 * Judges a trained linear model on the CPU: the objective, its gradient and whether the method was
 * right to end, recomputed in double precision from the rows. Pure functions, thread-safe.
 */
#ifndef ACCEL_CPU_REF_LINEAR_H
#define ACCEL_CPU_REF_LINEAR_H

#include <stdbool.h>
#include <stdint.h>

#include "call/linear.h"

/* min |w|^2 / 2 + the sum of c_i loss(y_i, w . x_i), w, and what the method says of w. */
struct cpu_ref_linear {
    int64_t rows, columns;
    struct linear_node *const *x; /* the rows */
    const double *y, *c;          /* of each row */
    int solver;                   /* liblinear's number, which says what the loss is */
    double p;                     /* of LINEAR_L2_SVR */
    bool free_bias;               /* the last weight is not regularized */
    const double *w;              /* of each column */
    double eps;                   /* the method ends when the gradient is this share of that at 0 */
    bool enough;                  /* it has ended so, and not because it could go no further */
    int iterations;
    double objective, norm; /* of the gradient */
};

/*
 * Returns the worst error divided by its bound: above 1, or infinite, the solution is wrong. The
 * bounds, on top of what rounding explains:
 *     objective                   10^-6 of it
 *     norm of the gradient        10^-6 of the norm at 0; where the method had enough, also eps of
 *                                 the norm at 0
 * CPU_REF_NOT_JUDGED (verify.h) without memory, for numbers beyond the range of a double, and for a
 * solution with which the method could go no further: its numbers are right, but how near the
 * optimum it is nobody has promised.
 */
double cpu_ref_linear(const struct cpu_ref_linear *q);

#endif
