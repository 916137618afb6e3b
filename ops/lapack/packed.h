/*
 * Matrices of our own in host memory, and passes over them: column-major, of one of BLAS's four
 * types. Functions of their arguments, thread-safe.
 */
#ifndef ACCEL_LAPACK_PACKED_H
#define ACCEL_LAPACK_PACKED_H

#include "call/matrix.h"

/* Memory that packed_free() frees. */
struct packed_memory {
    char *ptr; /* NULL: there is none */
    int64_t bytes;
    bool untouchable;
};

/* Takes memory; untouchable: addresses alone, for calls that are only estimated. */
struct packed_memory packed_take(int64_t bytes, bool untouchable);
void packed_free(struct packed_memory *memory);

/* Returns the matrix of this shape at ptr, without gaps. */
struct matrix packed_at(char *ptr, int64_t rows, int64_t cols, enum accel_dtype dtype);

/* Returns `cols` columns from `col` on. */
struct matrix packed_columns(struct matrix x, int64_t col, int64_t cols);

/* Returns the real part of diagonal element i; adds to that of each, and makes their imaginary
 * parts 0. */
double packed_diagonal(struct matrix x, int64_t i);
void packed_shift_diagonal(struct matrix x, double shift);

double packed_trace(struct matrix x);

/* Makes `to`, which may be `from`, the whole Hermitian matrix whose triangle uplo is in `from`,
 * minus `shift` on the diagonal, times `factor`. LAPACK ignores the imaginary parts of the
 * diagonal. */
void packed_mirror(struct matrix to, struct matrix from, char uplo, double shift, double factor);

/* What is in a triangle. */
struct packed_norms {
    /* Of the Frobenius norm of the whole Hermitian matrix, minus `shift` on the diagonal */
    double square;
    double largest; /* magnitude of a real or imaginary part, without the shift */
    bool finite;
};
struct packed_norms packed_norms_of(struct matrix x, char uplo, double shift);

/* The square of the Frobenius norm of all elements. */
double packed_square(struct matrix x);

/* Copies a matrix of the same shape. */
void packed_copy(struct matrix to, struct matrix from);

/* Makes it the identity; fills it with random numbers in [-most, most], both parts of complex
 * ones. */
void packed_identity(struct matrix x);
void packed_random(struct matrix x, double most, uint64_t *state);

/* Exchanges two columns. */
void packed_swap_columns(struct matrix x, int64_t i, int64_t j);

#endif
