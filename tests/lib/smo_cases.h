/*
 * Quadratic problems of support vector machines (gpu/exec/ml/smo.h) for unit tests: random data,
 * problems as libsvm starts them, and what a solution must be.
 */
#ifndef ACCEL_TEST_SMO_CASES_H
#define ACCEL_TEST_SMO_CASES_H

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/exec/ml/smo_steps.h"
#include "tests/lib/device_work.h"
#include "tests/lib/smo_reference.h"

static inline int begin(void **state)
{
    srand(1);
    return begin_work(state);
}

/* ---- Problems ---- */

static inline double number(double from, double to)
{
    return from + (to - from) * rand() / RAND_MAX;
}

enum { MOST = 512 };

/* A problem with memory of its own. */
struct made {
    struct smo_problem p;
    int32_t row[MOST];
    signed char y[MOST];
    double linear[MOST], c[MOST], alpha[MOST];
};

static inline struct made *make(int64_t n)
{
    struct made *m = calloc(1, sizeof *m);
    m->p = (struct smo_problem){.n = n,
                                .row = m->row,
                                .y = m->y,
                                .p = m->linear,
                                .c = m->c,
                                .alpha = m->alpha,
                                .eps = 1e-6,
                                .max_iterations = -1};
    return m;
}

enum kind { C_SVC, NU_SVC, ONE_CLASS, EPSILON_SVR, NU_SVR, KINDS };

static inline double clipped(double value, double most)
{
    return value < most ? value : most;
}

static inline void set(struct made *m, int64_t i, int64_t row, int y, double linear, double c,
                       double alpha)
{
    m->row[i] = (int32_t)row;
    m->y[i] = (signed char)y;
    m->linear[i] = linear;
    m->c[i] = c;
    m->alpha[i] = alpha;
}

/* As libsvm starts. label: of rows, -1 or 1, or a number for regression. */
static inline struct made *make_kind(enum kind kind, int64_t first, int64_t rows,
                                     const double *label, double c)
{
    const bool regression = kind == EPSILON_SVR || kind == NU_SVR;
    struct made *m = make(regression ? 2 * rows : rows);
    const double nu = 0.3;
    double left = kind == ONE_CLASS ? nu * (double)rows : nu * (double)rows / 2, right = left;
    double half = c * nu * (double)rows / 2;
    m->p.nu = kind == NU_SVC || kind == NU_SVR;
    for (int64_t i = 0; i < rows; i++) {
        const int sign = label[first + i] > 0 ? 1 : -1;
        if (kind == C_SVC) {
            set(m, i, first + i, sign, -1, sign > 0 ? c : 0.5 * c, 0);
        } else if (kind == NU_SVC) {
            double *rest = sign > 0 ? &left : &right;
            set(m, i, first + i, sign, 0, 1, clipped(*rest, 1));
            *rest -= m->alpha[i];
        } else if (kind == ONE_CLASS) {
            set(m, i, first + i, 1, 0, 1, clipped(left, 1));
            left -= m->alpha[i];
        } else {
            const double start = kind == NU_SVR ? clipped(half, c) : 0;
            const double epsilon = kind == NU_SVR ? 0 : 0.1;
            half -= start;
            set(m, i, first + i, 1, epsilon - label[first + i], c, start);
            set(m, i + rows, first + i, -1, epsilon + label[first + i], c, start);
        }
    }
    return m;
}

struct data {
    struct reference_vectors x;
    double *values, label[MOST];
};

/* Random vectors with some zeros; every seventh is a duplicate of another, some are zero. */
static inline struct data *make_data(int64_t rows, int64_t features)
{
    struct data *d = calloc(1, sizeof *d);
    d->values = calloc((size_t)(rows * features), sizeof(double));
    d->x = (struct reference_vectors){rows, features, d->values};
    for (int64_t i = 0; i < rows; i++) {
        double *row = d->values + i * features;
        for (int64_t f = 0; f < features; f++)
            row[f] = rand() % 3 ? number(-1, 1) : 0;
        if (i % 7 == 6)
            memcpy(row, d->values + rand() % i * features, (size_t)features * sizeof *row);
        if (i % 50 == 49)
            memset(row, 0, (size_t)features * sizeof *row);
        d->label[i] = row[0] + (features > 1 ? row[1] : 0) + number(-0.4, 0.4);
    }
    return d;
}

static inline void free_data(struct data *d)
{
    free(d->values);
    free(d);
}

/* ---- On the device ---- */

static inline struct smo_matrix put(struct smo *s, const struct reference_vectors *x, bool sparse)
{
    if (!sparse)
        return smo_put_dense(s, x->values, x->rows, x->features);
    int64_t *start = calloc((size_t)x->rows + 1, sizeof *start), stored = 0;
    int32_t *column = calloc((size_t)(x->rows * x->features), sizeof *column);
    double *values = calloc((size_t)(x->rows * x->features), sizeof *values);
    for (int64_t i = 0; i < x->rows; i++) {
        for (int64_t f = 0; f < x->features; f++)
            if (x->values[i * x->features + f] != 0) {
                column[stored] = (int32_t)f;
                values[stored++] = x->values[i * x->features + f];
            }
        start[i + 1] = stored;
    }
    const struct smo_matrix matrix = smo_put_csr(s, start, column, values, x->rows, x->features);
    free(start);
    free(column);
    free(values);
    return matrix;
}

/* Device memory that a call finds beside its matrix; 0: all there is. */
static int64_t memory_left;

static inline enum gpu_status solve(struct smo_kernel kernel, const struct reference_vectors *x,
                                    bool sparse, struct smo_problem *problems, int64_t count)
{
    struct smo s = {.work = &work, .kernel = kernel};
    const struct smo_matrix matrix = put(&s, x, sparse);
    const int64_t budget = device->budget;
    gpu_memory(&work)->trim(&work);
    if (memory_left > 0)
        device->budget -= gpu_memory(&work)->available(&work) - memory_left;
    smo_solve(&s, &matrix, problems, count);
    device->budget = budget;
    assert_int_equal(gpu_work_give_back(&work), GPU_OK);
    return s.status;
}

/* Asserts that a solution is as good as the CPU's, whose problem starts as this one did. */
static inline void is_as_good(struct smo_kernel kernel, const struct reference_vectors *x,
                              const struct smo_problem *p, struct smo_problem *reference)
{
    reference_solve(&kernel, x, reference);
    assert_true(p->converged && reference->converged);
    const double gap = reference_gap(&kernel, x, p);
    const double ours = reference_objective(&kernel, x, p);
    const double theirs = reference_objective(&kernel, x, reference);
    double largest = 0, mass = 0;
    for (int64_t i = 0; i < p->n; i++) {
        largest = fmax(largest, fabs(reference_kernel(&kernel, x, p->row[i], p->row[i])));
        mass += p->alpha[i];
    }
    /* Kernel values are rounded to float. */
    const double most =
        fmax(p->eps, reference_gap(&kernel, x, reference)) + 2 * mass * largest / (1 << 24);
    assert_true(fabs(gap - p->gap) <= 1e-7 * (1 + fabs(theirs)));
    assert_true(gap < 1.01 * most);
    assert_true(fabs(p->objective - reference->objective) <= 1e-6 * fabs(reference->objective));
    /* A device rounds a product and its sum once. Linear one-class problems have an objective of 0,
     * and rounding is more than 1e-6 of that: here is what sums of n products may differ by. */
    const double rounding = is_real_gpu() ? DBL_EPSILON * (double)p->n * mass * mass * largest : 0;
    assert_true(fabs(ours - theirs) <= 1e-6 * fabs(theirs) + rounding);
    assert_true(fabs(p->rho - reference->rho) <= 3 * most);
    assert_true(fabs(p->r - reference->r) <= 3 * most);
    double sum = 0, before = 0;
    for (int64_t i = 0; i < p->n; i++) {
        assert_true(p->alpha[i] >= 0 && p->alpha[i] <= p->c[i]);
        sum += p->y[i] * p->alpha[i];
        before += p->y[i] * reference->alpha[i];
    }
    assert_true(fabs(sum - before) <= 1e-9 * (1 + fabs(p->c[0]) * (double)p->n));
}

static const struct smo_kernel kernels[] = {{SMO_LINEAR, 0, 0, 0},
                                            {SMO_POLY, 3, 0.5, 1},
                                            {SMO_RBF, 0, 0.7, 0},
                                            {SMO_SIGMOID, 0, 0.05, 0.1}};
enum { KERNELS = sizeof kernels / sizeof *kernels };

#endif
