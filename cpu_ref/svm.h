/*
 * Judges a trained support vector machine on the CPU: the conditions of optimality, the objective
 * and rho, recomputed in double precision from the vectors. Pure functions, thread-safe.
 */
#ifndef ACCEL_CPU_REF_SVM_H
#define ACCEL_CPU_REF_SVM_H

#include "call/svm.h"

/* min 1/2 a'Qa + p'a,  y'a = sum_y,  0 <= a_i <= c_i,  Q_ij = y_i y_j K(row of i, row of j), and
 * its solution. */
struct cpu_ref_svm {
    int64_t n;
    const int32_t *row;   /* of each variable, its row of the matrix */
    const signed char *y; /* 1 or -1 */
    const double *p, *c, *alpha;
    double sum_y; /* y'a */
    bool nu;      /* the sum of a is kept, too: */
    double sum;
    double eps;  /* of the gap of the conditions (libsvm's -e) */
    bool capped; /* ended before the gap was that small: it is not judged */
    double objective, rho, r;
};

/*
 * Returns the worst error divided by its bound: above 1, or infinite, the solution is wrong.
 * Bounds, s being what the kernel's rounding to float makes of a gradient, as libsvm rounds it:
 *     gap of the conditions, rho and r   eps + s
 *     objective                          10^-6 of it, + s times the sum of a
 *     sum of a, y'a                      10^-9 of the sum of a
 *     limits of a                        10^-9 of c
 * CPU_REF_NOT_JUDGED (verify.h) without memory. Takes a kernel for each row of the problem with
 * each support vector.
 */
double cpu_ref_svm(const struct svm_matrix *x, const struct svm_kernel *kernel,
                   const struct cpu_ref_svm *q);

/* values[i] := K(row i, v) for a dense v of x->features elements, and errors[i] := how much another
 * computation in double may differ. rest: of RBF, the sum of the squares of what v has beyond the
 * columns of a row's elements: of all its elements, if x is in CSR. Not precomputed. */
void cpu_ref_svm_vector(const struct svm_matrix *x, const struct svm_kernel *kernel,
                        const double *v, double rest, double *values, double *errors);

#endif
