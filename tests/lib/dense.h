/*
 * For the sources of the residuals: matrices in long double, their norms, and the scaled ratios of
 * LAPACK's tests. The caller frees `at`. If memory is short, the test program ends.
 */
#ifndef ACCEL_DENSE_H
#define ACCEL_DENSE_H

#include <stdlib.h>

#include "cpu_ref/equation.h"
#include "cpu_ref/judge.h"
#include "residual.h"

struct dense {
    int64_t rows, cols;
    value *at;
};

static inline value *at(const struct dense *x, int64_t row, int64_t col)
{
    return &x->at[col * x->rows + row];
}

static inline struct dense dense_new(int64_t rows, int64_t cols)
{
    struct dense x = {rows, cols, calloc((size_t)(rows * cols + 1), sizeof(value))};
    if (!x.at)
        abort();
    return x;
}

static inline value element(const struct view *x, int64_t row, int64_t col)
{
    return load_value(x->ptr, col * x->ld + row, x->dtype);
}

/* Returns op(x), with the elements that its structure implies. */
static inline struct dense dense_op(const struct view *x, char op)
{
    const struct factor factor = {*x, op};
    struct dense y = op == 'N' ? dense_new(x->rows, x->cols) : dense_new(x->cols, x->rows);
    for (int64_t col = 0; col < y.cols; col++)
        for (int64_t row = 0; row < y.rows; row++)
            *at(&y, row, col) = factor_element(&factor, row, col);
    return y;
}

static inline struct dense dense_of(const struct view *x)
{
    return dense_op(x, 'N');
}

static inline struct dense identity(int64_t rows, int64_t cols)
{
    struct dense x = dense_new(rows, cols);
    for (int64_t i = 0; i < accel_min(rows, cols); i++)
        *at(&x, i, i) = 1;
    return x;
}

static inline struct dense adjoint(const struct dense *x)
{
    struct dense y = dense_new(x->cols, x->rows);
    for (int64_t col = 0; col < y.cols; col++)
        for (int64_t row = 0; row < y.rows; row++)
            *at(&y, row, col) = conjl(*at(x, col, row));
    return y;
}

/* Zeros at the ends of columns, as triangles have them, are passed over; a real number takes half
 * the work of a complex one. */
static inline struct dense multiply(const struct dense *x, const struct dense *y)
{
    struct dense z = dense_new(x->rows, y->cols);
    for (int64_t p = 0; p < x->cols; p++) {
        int64_t from = 0, to = x->rows;
        while (from < to && *at(x, from, p) == 0)
            from++;
        while (from < to && *at(x, to - 1, p) == 0)
            to--;
        for (int64_t col = 0; col < z.cols; col++) {
            const value factor = *at(y, p, col);
            const long double real = creall(factor);
            if (factor == 0)
                continue;
            if (cimagl(factor) == 0)
                for (int64_t row = from; row < to; row++)
                    *at(&z, row, col) += *at(x, row, p) * real;
            else
                for (int64_t row = from; row < to; row++)
                    *at(&z, row, col) += *at(x, row, p) * factor;
        }
    }
    return z;
}

/* x := x - y */
static inline void subtract(struct dense *x, const struct dense *y)
{
    for (int64_t i = 0; i < x->rows * x->cols; i++)
        x->at[i] -= y->at[i];
}

static inline struct dense first_columns(const struct dense *x, int64_t cols)
{
    struct dense y = dense_new(x->rows, cols);
    memcpy(y.at, x->at, (size_t)(x->rows * cols) * sizeof(value));
    return y;
}

static inline void swap_rows(struct dense *x, int64_t one, int64_t other)
{
    for (int64_t col = 0; col < x->cols; col++) {
        value old = *at(x, one, col);
        *at(x, one, col) = *at(x, other, col);
        *at(x, other, col) = old;
    }
}

/* ---- Norms and ratios ---- */

/* No overflow: the squares of doubles are well within a long double's range. */
static inline long double length(value z)
{
    return sqrtl(creall(z) * creall(z) + cimagl(z) * cimagl(z));
}

static inline long double column_norm(const struct dense *x, int64_t col)
{
    long double sum = 0;
    for (int64_t row = 0; row < x->rows; row++)
        sum += length(*at(x, row, col));
    return sum;
}

/* Returns the maximum; NaN counts as the greatest. */
static inline long double greater(long double x, long double y)
{
    return x > y || isnan(x) ? x : y;
}

static inline long double norm(const struct dense *x)
{
    long double worst = 0;
    for (int64_t col = 0; col < x->cols; col++)
        worst = greater(worst, column_norm(x, col));
    return worst;
}

static inline double ratio(long double error, long double scale, enum accel_dtype dtype)
{
    if (error == 0)
        return 0;
    double r = (double)(error / (cpu_ref_epsilon(dtype) / 2 * scale));
    return isnan(r) ? INFINITY : r;
}

static inline double worse(double x, double y)
{
    return x > y ? x : y;
}

/* Returns |x - y| / (eps scale); overwrites x. */
static inline double distance(struct dense *x, const struct dense *y, long double scale,
                              enum accel_dtype dtype)
{
    subtract(x, y);
    return ratio(norm(x), scale, dtype);
}

static inline long double count(int64_t n)
{
    return (long double)accel_max(n, 1);
}

static inline double orthogonality(const struct dense *q, enum accel_dtype dtype)
{
    struct dense h = adjoint(q), product = multiply(&h, q), one = identity(q->cols, q->cols);
    double r = distance(&product, &one, count(q->rows), dtype);
    free(h.at);
    free(product.at);
    free(one.at);
    return r;
}

#endif
