#include "svm.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/math/series.h"
#include "vectors.h"

static double hyperbolic_tangent(double x)
{
    const double e = series_exp(-2 * fabs(x)), t = (1 - e) / (1 + e);
    return x < 0 ? -t : t;
}

/* As libsvm multiplies. */
static double power_of(double base, int exponent)
{
    double product = 1;
    for (; exponent > 0; exponent /= 2, base *= base)
        if (exponent % 2)
            product *= base;
    return product;
}

/* ---- Kernels ---- */

/* One vector as a dense one: all others are multiplied with it. */
struct against {
    const struct svm_matrix *x;
    const struct svm_kernel *kernel;
    int64_t row;
    double *dense; /* of x->features */
    double square;
};

/* The product with a row. */
static double times_row(const struct against *a, int64_t row)
{
    const struct svm_matrix *x = a->x;
    double sum = 0;
    if (x->dense)
        for (int64_t i = 0; i < x->features; i++)
            sum += x->dense[row * x->features + i] * a->dense[i];
    else
        for (int64_t k = x->start[row]; k < x->start[row + 1]; k++)
            sum += x->value[k] * a->dense[x->column[k]];
    return sum;
}

static void set_against(struct against *a, int64_t row)
{
    const struct svm_matrix *x = a->x;
    const size_t bytes = (size_t)x->features * sizeof(double);
    if (x->dense) {
        memcpy(a->dense, x->dense + row * x->features, bytes);
    } else {
        memset(a->dense, 0, bytes);
        for (int64_t k = x->start[row]; k < x->start[row + 1]; k++)
            a->dense[x->column[k]] = x->value[k];
    }
    a->row = row;
    a->square = times_row(a, row);
}

/* squares: of each row, its product with itself. */
static double kernel_of(const struct against *a, int64_t row, const double *squares)
{
    const struct svm_kernel *kernel = a->kernel;
    if (kernel->type == SVM_PRECOMPUTED)
        return a->x->dense[a->row * a->x->features + row];
    const double product = times_row(a, row);
    switch (kernel->type) {
    case SVM_POLY:
        return power_of(kernel->gamma * product + kernel->coef0, kernel->degree);
    case SVM_RBF:
        return series_exp(-kernel->gamma * (a->square + squares[row] - 2 * product));
    case SVM_SIGMOID:
        return hyperbolic_tangent(kernel->gamma * product + kernel->coef0);
    default:
        return product;
    }
}

static double square_of(const struct svm_matrix *x, int64_t row)
{
    double sum = 0;
    if (x->dense)
        for (int64_t i = 0; i < x->features; i++)
            sum += x->dense[row * x->features + i] * x->dense[row * x->features + i];
    else
        for (int64_t k = x->start[row]; k < x->start[row + 1]; k++)
            sum += x->value[k] * x->value[k];
    return sum;
}

/* ---- Sums over the support vectors, for each row of the matrix ---- */

struct row_sums {
    double *coefficient;     /* the sum of y a of the row's variables */
    double *sum, *magnitude; /* of coefficient times kernel, and of their magnitudes */
    double *square, *dense;
    bool *member; /* a variable has this row */
};

static bool open_rows(struct row_sums *rows, const struct svm_matrix *x)
{
    const size_t n = (size_t)x->rows;
    double *block = calloc(4 * n + (size_t)x->features + 1, sizeof *block);
    *rows = (struct row_sums){block, block + n, block + 2 * n, block + 3 * n, block + 4 * n, NULL};
    rows->member = calloc(n + 1, 1);
    return block && rows->member;
}

static void close_rows(struct row_sums *rows)
{
    free(rows->coefficient);
    free(rows->member);
}

static void sum_kernel_rows(struct row_sums *rows, const struct svm_matrix *x,
                            const struct svm_kernel *kernel, const struct cpu_ref_svm *q)
{
    struct against against = {.x = x, .kernel = kernel, .dense = rows->dense};
    for (int64_t i = 0; i < q->n; i++) {
        rows->member[q->row[i]] = true;
        rows->coefficient[q->row[i]] += q->y[i] * q->alpha[i];
    }
    for (int64_t row = 0; row < x->rows; row++)
        if (rows->member[row])
            rows->square[row] = square_of(x, row);
    for (int64_t vector = 0; vector < x->rows; vector++) {
        const double coefficient = rows->coefficient[vector];
        if (coefficient == 0)
            continue;
        set_against(&against, vector);
        for (int64_t row = 0; row < x->rows; row++)
            if (rows->member[row]) {
                const double term = coefficient * kernel_of(&against, row, rows->square);
                rows->sum[row] += term;
                rows->magnitude[row] += fabs(term);
            }
    }
}

/* ---- The solution ---- */

/* Of the variables that are compared with each other. */
struct bounds {
    double most, least; /* of those that may grow, and of those that may shrink */
    double sum;         /* of those that may do both */
    int64_t free;
};

/* value: the one that the free variables share, or the middle between those at their limits. */
static void judge_value(double *worst, const struct bounds *b, double value, double bound,
                        bool capped)
{
    const double middle = b->free > 0 ? b->sum / (double)b->free : (b->most + b->least) / 2;
    if (!capped)
        note_error(worst, b->most > b->least ? b->most - b->least : 0, bound);
    if (isfinite(middle))
        note_error(worst, fabs(value - middle), bound);
}

/* Whether a variable is at its upper limit; nu-SVC's have been scaled and scaled back. */
static bool is_full(const struct cpu_ref_svm *q, int64_t i)
{
    return q->alpha[i] >= q->c[i] * (1 - 1e-12);
}

static double verify_optimum(const struct row_sums *rows, const struct cpu_ref_svm *q)
{
    const struct bounds none = {.most = -INFINITY, .least = INFINITY};
    struct bounds bounds[2] = {none, none}; /* of a nu problem, of each sign */
    double worst = 0, sum = 0, sum_y = 0, objective = 0, rounding = 0;
    for (int64_t i = 0; i < q->n; i++) {
        const double gradient = q->y[i] * rows->sum[q->row[i]] + q->p[i], a = q->alpha[i];
        struct bounds *b = &bounds[q->nu && q->y[i] < 0];
        /* Of a nu problem a sign's variables are compared among themselves: their gradients as they
         * are. */
        const double value = q->nu ? -gradient : -q->y[i] * gradient;
        const bool grows = q->nu || q->y[i] > 0 ? !is_full(q, i) : a > 0,
                   shrinks = q->nu || q->y[i] > 0 ? a > 0 : !is_full(q, i);
        if (grows && value > b->most)
            b->most = value;
        if (shrinks && value < b->least)
            b->least = value;
        if (grows && shrinks) {
            b->sum += value;
            b->free++;
        }
        if (!(value - value == 0))
            return INFINITY;
        note_error(&worst, a < 0 ? -a : a > q->c[i] ? a - q->c[i] : 0, 1e-9 * q->c[i]);
        sum += a;
        sum_y += q->y[i] * a;
        objective += a * (gradient + q->p[i]) / 2;
        if (rows->magnitude[q->row[i]] > rounding)
            rounding = rows->magnitude[q->row[i]];
    }
    rounding *= 0x1p-22;
    if (q->nu) {
        judge_value(&worst, &bounds[0], -(q->r + q->rho), q->eps + rounding, q->capped);
        judge_value(&worst, &bounds[1], -(q->r - q->rho), q->eps + rounding, q->capped);
        note_error(&worst, fabs(sum - q->sum), 1e-9 * sum);
    } else {
        judge_value(&worst, &bounds[0], -q->rho, q->eps + rounding, q->capped);
    }
    note_error(&worst, fabs(sum_y - q->sum_y), 1e-9 * sum);
    note_error(&worst, fabs(objective - q->objective), 1e-6 * fabs(objective) + rounding * sum);
    return worst;
}

double cpu_ref_svm(const struct svm_matrix *x, const struct svm_kernel *kernel,
                   const struct cpu_ref_svm *q)
{
    struct row_sums rows;
    double worst = CPU_REF_NOT_JUDGED;
    if (open_rows(&rows, x)) {
        sum_kernel_rows(&rows, x, kernel, q);
        worst = verify_optimum(&rows, q);
    }
    close_rows(&rows);
    return worst;
}

/* ---- One vector ---- */

/* What a row and a vector make together: the product, or the square of the distance; and the sum of
 * its terms' magnitudes. */
struct kernel_input {
    double value, magnitude;
};

static void meet(struct kernel_input *m, bool distance, bool sparse, double u, double v)
{
    const double term = !distance ? u * v : sparse ? u * (u - 2 * v) : (u - v) * (u - v);
    m->value += term;
    m->magnitude += sparse && distance ? fabs(u) * (fabs(u) + 2 * fabs(v)) : fabs(term);
}

static struct kernel_input meeting_of(const struct svm_matrix *x, int64_t row, bool distance,
                                      const double *v, double rest)
{
    struct kernel_input m = {distance ? rest : 0, distance ? rest : 0};
    if (x->dense)
        for (int64_t i = 0; i < x->features; i++)
            meet(&m, distance, false, x->dense[row * x->features + i], v[i]);
    else
        for (int64_t k = x->start[row]; k < x->start[row + 1]; k++)
            meet(&m, distance, true, x->value[k], v[x->column[k]]);
    return m;
}

void cpu_ref_svm_vector(const struct svm_matrix *x, const struct svm_kernel *kernel,
                        const double *v, double rest, double *values, double *errors)
{
    const double share = 0x1p-52 * ((double)x->features + 32), gamma = fabs(kernel->gamma);
    for (int64_t row = 0; row < x->rows; row++) {
        const struct kernel_input m = meeting_of(x, row, kernel->type == SVM_RBF, v, rest);
        double value = m.value, error = m.magnitude;
        if (kernel->type == SVM_POLY) {
            value = power_of(kernel->gamma * m.value + kernel->coef0, kernel->degree);
            error = abs(kernel->degree) *
                    (1 + power_of(gamma * m.magnitude + fabs(kernel->coef0), kernel->degree));
        } else if (kernel->type == SVM_RBF) {
            value = series_exp(-kernel->gamma * (m.value > 0 ? m.value : 0));
            error = value * (1 + gamma * m.magnitude);
        } else if (kernel->type == SVM_SIGMOID) {
            value = hyperbolic_tangent(kernel->gamma * m.value + kernel->coef0);
            error = 1 + gamma * m.magnitude;
        }
        values[row] = value;
        errors[row] = share * error;
    }
}
