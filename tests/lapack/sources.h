/*
 * The matrices that routines are given, in long double before they are rounded, and what is known.
 */
#ifndef ACCEL_TEST_LAPACK_SOURCES_H
#define ACCEL_TEST_LAPACK_SOURCES_H

#include "arrays.h"

enum kind {
    KIND_UNIFORM,    /* random elements */
    KIND_WELL,       /* singular values from 0.1 to 1 */
    KIND_BAD,        /* down to 1e-3, evenly by their logarithms */
    KIND_WORSE,      /* down to 10 eps */
    KIND_SINGULAR,   /* exactly: see each routine's case */
    KIND_INDEFINITE, /* a leading minor that is not positive, the same */
    KIND_SMALL,      /* as WELL, near underflow */
    KIND_LARGE,      /* as WELL, near overflow */
    KIND_ZERO,
    KIND_IDENTITY,
    KIND_NAN, /* one element */
    KIND_INF,
    KINDS
};

extern const char *const kind_names[KINDS];

static inline bool is_spoilt(enum kind kind)
{
    return kind == KIND_NAN || kind == KIND_INF;
}

struct source {
    int64_t rows, cols;
    value *at; /* column-major */
};

/* What a kind's elements are multiplied with. */
long double kind_scale(enum kind kind, enum accel_dtype dtype);

/* n values as the kind has them, 1 the greatest but for ZERO and the scale. In descending order. */
void kind_values(enum kind kind, enum accel_dtype dtype, int64_t n, long double *values,
                 struct random *random);

struct source source_new(int64_t rows, int64_t cols);
void source_free(struct source *x);
value *source_at(const struct source *x, int64_t row, int64_t col);

/* Random elements, times scale. */
struct source source_uniform(enum accel_dtype dtype, int64_t rows, int64_t cols, long double scale,
                             struct random *random);

/* U S V^H with random orthogonal U and V: these singular values, min(rows, cols) of them. */
struct source source_with_values(enum accel_dtype dtype, int64_t rows, int64_t cols,
                                 const long double *values, struct random *random);

/* Q W Q^H: these eigenvalues. For a symmetric one Q W Q^T. */
struct source source_hermitian(enum accel_dtype dtype, int64_t n, const long double *values,
                               bool symmetric, struct random *random);

/* x y and x^H y */
struct source source_product(const struct source *x, const struct source *y);
struct source source_adjoint_product(const struct source *x, const struct source *y);

/* A matrix of a kind but for SINGULAR and INDEFINITE, which are as WELL. NaN and Inf are put in as
 * well. */
struct source source_of_kind(enum kind kind, enum accel_dtype dtype, int64_t rows, int64_t cols,
                             struct random *random);

/* NaN or Inf into an element, of a triangle where uplo is 'U' or 'L'. */
void source_spoil(struct source *x, enum kind kind, enum accel_dtype dtype, char uplo,
                  struct random *random);

/* Rounds to x's type, all of it or a triangle (U, L; u, l without the diagonal). */
void source_store(const struct source *source, struct array *x, char uplo);

#endif
