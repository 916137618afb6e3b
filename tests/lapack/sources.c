#include "sources.h"

#include <stdlib.h>

#include "cpu_ref/judge.h"

const char *const kind_names[KINDS] = {"uniform",  "well",       "bad",   "worse",
                                       "singular", "indefinite", "small", "large",
                                       "zero",     "identity",   "nan",   "inf"};

long double kind_scale(enum kind kind, enum accel_dtype dtype)
{
    if (kind != KIND_SMALL && kind != KIND_LARGE)
        return 1;
    long double large = accel_is_double(dtype) ? 0x1p960L : 0x1p100L;
    return kind == KIND_LARGE ? large : 1 / large;
}

static long double least_value(enum kind kind, enum accel_dtype dtype)
{
    return kind == KIND_BAD ? 1e-3L : kind == KIND_WORSE ? 10 * cpu_ref_epsilon(dtype) : 0.1L;
}

static int descending(const void *x, const void *y)
{
    long double a = *(const long double *)x, b = *(const long double *)y;
    return a < b ? 1 : a > b ? -1 : 0;
}

void kind_values(enum kind kind, enum accel_dtype dtype, int64_t n, long double *values,
                 struct random *random)
{
    long double least = least_value(kind, dtype), scale = kind_scale(kind, dtype);
    for (int64_t i = 0; i < n; i++) {
        long double part = n > 1 ? (long double)i / (long double)(n - 1) : 0;
        if (kind == KIND_BAD || kind == KIND_WORSE)
            values[i] = powl(least, part);
        else if (kind == KIND_ZERO)
            values[i] = 0;
        else if (kind == KIND_IDENTITY)
            values[i] = 1;
        else
            values[i] = scale * (i == 0 ? 1 : least + (1 - least) * fabsl(random_uniform(random)));
    }
    qsort(values, (size_t)n, sizeof *values, descending);
}

/* ---- Matrices ---- */

struct source source_new(int64_t rows, int64_t cols)
{
    struct source x = {rows, cols, calloc((size_t)(rows * cols + 1), sizeof(value))};
    if (!x.at)
        abort();
    return x;
}

void source_free(struct source *x)
{
    free(x->at);
    x->at = NULL;
}

value *source_at(const struct source *x, int64_t row, int64_t col)
{
    return &x->at[col * x->rows + row];
}

static value random_element(enum accel_dtype dtype, struct random *random)
{
    long double re = random_uniform(random), im = random_uniform(random);
    return accel_is_complex(dtype) ? re + im * (value)_Complex_I : re;
}

struct source source_uniform(enum accel_dtype dtype, int64_t rows, int64_t cols, long double scale,
                             struct random *random)
{
    struct source x = source_new(rows, cols);
    for (int64_t i = 0; i < rows * cols; i++)
        x.at[i] = scale * random_element(dtype, random);
    return x;
}

/* x := x (I - 2 v v^H), v random of length 1. */
static void reflect_columns(struct source *x, enum accel_dtype dtype, struct random *random)
{
    struct source v = source_uniform(dtype, x->cols, 1, 1, random);
    long double square = 0;
    for (int64_t i = 0; i < x->cols; i++)
        square += creall(v.at[i] * conjl(v.at[i]));
    for (int64_t row = 0; square > 0 && row < x->rows; row++) {
        value sum = 0;
        for (int64_t i = 0; i < x->cols; i++)
            sum += *source_at(x, row, i) * v.at[i];
        sum *= 2 / square;
        for (int64_t i = 0; i < x->cols; i++)
            *source_at(x, row, i) -= sum * conjl(v.at[i]);
    }
    source_free(&v);
}

static struct source random_orthogonal(enum accel_dtype dtype, int64_t n, struct random *random)
{
    struct source q = source_new(n, n);
    for (int64_t i = 0; i < n; i++)
        *source_at(&q, i, i) = 1;
    for (int64_t i = 0; i < n && i < 6; i++)
        reflect_columns(&q, dtype, random);
    return q;
}

struct source source_product(const struct source *x, const struct source *y)
{
    struct source z = source_new(x->rows, y->cols);
    for (int64_t col = 0; col < z.cols; col++)
        for (int64_t p = 0; p < x->cols; p++)
            for (int64_t row = 0; row < z.rows; row++)
                *source_at(&z, row, col) += *source_at(x, row, p) * *source_at(y, p, col);
    return z;
}

struct source source_adjoint_product(const struct source *x, const struct source *y)
{
    struct source z = source_new(x->cols, y->cols);
    for (int64_t col = 0; col < z.cols; col++)
        for (int64_t row = 0; row < z.rows; row++)
            for (int64_t p = 0; p < x->rows; p++)
                *source_at(&z, row, col) += conjl(*source_at(x, p, row)) * *source_at(y, p, col);
    return z;
}

struct source source_with_values(enum accel_dtype dtype, int64_t rows, int64_t cols,
                                 const long double *values, struct random *random)
{
    int64_t inner = rows < cols ? rows : cols;
    struct source u = random_orthogonal(dtype, rows, random),
                  v = random_orthogonal(dtype, cols, random), x = source_new(rows, cols);
    for (int64_t col = 0; col < cols; col++)
        for (int64_t p = 0; p < inner; p++)
            for (int64_t row = 0; row < rows; row++)
                *source_at(&x, row, col) +=
                    values[p] * *source_at(&u, row, p) * conjl(*source_at(&v, col, p));
    source_free(&u);
    source_free(&v);
    return x;
}

struct source source_hermitian(enum accel_dtype dtype, int64_t n, const long double *values,
                               bool symmetric, struct random *random)
{
    struct source q = random_orthogonal(dtype, n, random), x = source_new(n, n);
    for (int64_t col = 0; col < n; col++)
        for (int64_t p = 0; p < n; p++)
            for (int64_t row = 0; row < n; row++) {
                value other = *source_at(&q, col, p);
                *source_at(&x, row, col) +=
                    values[p] * *source_at(&q, row, p) * (symmetric ? other : conjl(other));
            }
    for (int64_t i = 0; i < n && !symmetric; i++)
        *source_at(&x, i, i) = creall(*source_at(&x, i, i));
    source_free(&q);
    return x;
}

struct source source_of_kind(enum kind kind, enum accel_dtype dtype, int64_t rows, int64_t cols,
                             struct random *random)
{
    int64_t inner = rows < cols ? rows : cols;
    if (kind == KIND_UNIFORM)
        return source_uniform(dtype, rows, cols, 1, random);
    if (kind == KIND_ZERO || kind == KIND_IDENTITY) {
        struct source x = source_new(rows, cols);
        for (int64_t i = 0; i < inner && kind == KIND_IDENTITY; i++)
            *source_at(&x, i, i) = 1;
        return x;
    }
    long double *values = calloc((size_t)inner + 1, sizeof *values);
    if (!values)
        abort();
    kind_values(kind, dtype, inner, values, random);
    struct source x = source_with_values(dtype, rows, cols, values, random);
    free(values);
    source_spoil(&x, kind, dtype, 'A', random);
    return x;
}

void source_spoil(struct source *x, enum kind kind, enum accel_dtype dtype, char uplo,
                  struct random *random)
{
    int64_t row = random_below(random, x->rows), col = random_below(random, x->cols);
    long double z = kind == KIND_NAN ? NAN : random_below(random, 2) ? INFINITY : -INFINITY;
    if (!is_spoilt(kind) || x->rows == 0 || x->cols == 0)
        return;
    if (uplo != 'A' && !in_triangle(uplo, row, col)) {
        int64_t old = row;
        row = col;
        col = old;
    }
    bool imaginary = accel_is_complex(dtype) && row != col && random_below(random, 2);
    *source_at(x, row, col) = z;
    if (imaginary)
        *source_at(x, row, col) = CMPLXL(0.5L, z);
}

void source_store(const struct source *source, struct array *x, char uplo)
{
    for (int64_t col = 0; col < source->cols; col++)
        for (int64_t row = 0; row < source->rows; row++)
            if (uplo == 'A' || (row == col && uplo != 'u' && uplo != 'l') ||
                (row != col && (uplo == 'U' || uplo == 'u') == (row < col)))
                array_put(x, row, col, *source_at(source, row, col));
}
