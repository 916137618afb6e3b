/*
 * Quadratic problems of support vector machines on the device, by libsvm's algorithm: sequential
 * minimal optimization with the working set of second order (Fan, Chen, Lin, JMLR 6, 2005). Of n
 * variables a with signs y, it finds
 *
 *     min 1/2 a'Qa + p'a,  y'a as at the start,  0 <= a_i <= C_i,  Q_ij = y_i y_j K(row of i, row
 *                          of j),
 *
 * and in a nu problem keeps the sum of a, too. As in libsvm: a kernel value is computed in double
 * and stored as float, the diagonal and the gradient are double, ties go to the higher index.
 *
 * A solver keeps the first failure as its status; after one, all functions do nothing. Device
 * memory is the call's.
 */
#ifndef ACCEL_SMO_H
#define ACCEL_SMO_H

#include "gpu/device/kernels.h"
#include "gpu/own/svm.h"

/* Vectors on the device, one a row: dense, row i from values[i * ld] on, or in CSR, where columns
 * ascend in a row. Of a precomputed kernel, element (i, j) is K(i, j), and the matrix is dense. */
struct smo_matrix {
    int64_t rows, features;
    gpu_address values; /* double */
    int64_t ld;         /* dense */
    gpu_address start;  /* CSR: int64, rows + 1; 0: dense */
    gpu_address column; /* CSR: int32, from 0 */
    int64_t stored;     /* CSR: elements */
};

struct smo_problem {
    int64_t n;
    const int32_t *row;   /* of each variable, its row of the matrix; several may have the same */
    const signed char *y; /* 1 or -1 */
    const double *p, *c;
    /* The start, and then the solution, which is libsvm's before it multiplies by y */
    double *alpha;
    double eps;
    bool nu;
    int64_t max_iterations; /* -1: none beside libsvm's own cap, max(10^7, 100 n) */

    /* The result; alpha, too, is valid only if the solver is well. */
    double rho, objective;
    double r; /* nu problems: libsvm divides by it */
    int64_t iterations;
    bool converged; /* false: a cap was reached; the result is what libsvm would give then */
    double gap;     /* of the KKT conditions, recomputed in double from the matrix */
    int64_t rows_touched, rows_computed; /* of the kernel matrix, if it does not fit; else 0 */
};

struct smo {
    struct gpu_work *work;
    enum gpu_status status;
    struct smo_kernel kernel;
    /* Called when problems have gone on; `iterations` counts those since the last call. NULL:
     * nobody wants to know. */
    void (*progress)(void *context, int64_t iterations);
    void *context;
};

/* Copy vectors from host memory to the device. */
struct smo_matrix smo_put_dense(struct smo *s, const double *values, int64_t rows,
                                int64_t features);
struct smo_matrix smo_put_csr(struct smo *s, const int64_t *start, const int32_t *column,
                              const double *values, int64_t rows, int64_t features);
/* Copies bytes from host memory to device memory that it takes. */
gpu_address smo_put(struct smo *s, const void *from, int64_t bytes);

/* Solves problems over one matrix, side by side. The status becomes GPU_UNSUPPORTED if a kernel
 * value is not finite or too large for a float, if the recomputed gap of one is at least its eps
 * and rounding to float does not explain that, or if the recomputed objective of one that a cap has
 * ended is another one: then libsvm's own answer is asked for. */
void smo_solve(struct smo *s, const struct smo_matrix *x, struct smo_problem *problems,
               int64_t count);

/* values[i * outputs + j] := sum over k of K(vector i, support vector k) * coefficient[j *
 * support->rows + k]. Coefficients and values are in host memory. Of a precomputed kernel,
 * `vectors` has K(vector, support vector) itself, a column for each support vector. */
void smo_decide(struct smo *s, const struct smo_matrix *vectors, const struct smo_matrix *support,
                const double *coefficient, int64_t outputs, double *values);

/* Cache vectors for later calls, under a key that tells their contents, and find them again.
 * smo_find() is told the shape in *x, and `sparse` for CSR; returns false if they are not there, or
 * not any more. */
void smo_cache(struct smo *s, const struct gpu_key *key, const struct smo_matrix *x);
bool smo_find(struct smo *s, const struct gpu_key *key, bool sparse, struct smo_matrix *x);

/* values[i] := K(row i, v) for a dense vector v of x->features elements; the values are in host
 * memory. rest: of RBF, the sum of the squares of all elements that v has beyond the rows' columns;
 * of CSR the sum of all squares. Not precomputed. */
void smo_vector(struct smo *s, const struct smo_matrix *x, gpu_address v, double rest,
                double *values);

#endif
