/*
 * The quadratic problems of gpu/exec/ml/smo.h solved on the CPU, one variable pair after the other,
 * as libsvm does without shrinking.
 */
#ifndef ACCEL_TEST_SMO_REFERENCE_H
#define ACCEL_TEST_SMO_REFERENCE_H

#include "gpu/exec/ml/smo.h"

/* Vectors in host memory, dense and row-major. */
struct reference_vectors {
    int64_t rows, features;
    const double *values;
};

/* Returns K(row i, row j) in double. */
double reference_kernel(const struct smo_kernel *kernel, const struct reference_vectors *x,
                        int64_t i, int64_t j);

/* Solves a problem, and fills in its results; p->gap is that of float kernel values. */
void reference_solve(const struct smo_kernel *kernel, const struct reference_vectors *x,
                     struct smo_problem *p);

/* Returns the gap of the KKT conditions at p->alpha, with kernel values in double. */
double reference_gap(const struct smo_kernel *kernel, const struct reference_vectors *x,
                     const struct smo_problem *p);

/* Returns the objective at p->alpha, with kernel values in double. */
double reference_objective(const struct smo_kernel *kernel, const struct reference_vectors *x,
                           const struct smo_problem *p);

#endif
