/*
 * The cases: for each routine a function that makes one, with random arguments.
 */
#ifndef ACCEL_TEST_LAPACK_CASES_H
#define ACCEL_TEST_LAPACK_CASES_H

#include "test.h"

/* What a library gets wrong and is not asked for: letters of -f. */
enum fault {
    FAULT_NONE = '?',
    FAULT_TRTRS_LETTERS = 't', /* OpenBLAS 0.3.21: trtrs takes capital letters alone */
    FAULT_SSYMV =
        'y', /* OpenBLAS 0.3.21: ssymv of a lower triangle reads memory that it has not written */
    FAULT_GEEV_NAN =
        'v', /* LAPACK 3.11: geev goes on with what it has not set where it finds NaN */
    FAULT_GEEV_SCALE =
        'c',           /* OpenBLAS 0.3.31: geev loses the scale of very small and large matrices */
    FAULT_STOPS = 'g', /* the reference LAPACK 3.11: syevx, sygvx end the program for NaN or Inf */
    FAULT_SYEVR =
        'm', /* LAPACK 3.11: syevr's eigenvectors are less accurate than its tests ask for */
    FAULT_NO_SIDES = 's', /* LAPACK 3.11: without right sides, gelss writes one and gelsd fails */
    FAULT_ENDLESS =
        'e' /* LAPACK 3.11: gesvd, gesdd, gelss, gelsd, syevr may not end with NaN or Inf */
};

struct lapack_case {
    const char *routine; /* without type, as it is for real types */
    bool complex_only;
    void (*make)(struct test *test);
};

/* Each ends with a NULL. */
extern const struct lapack_case linear_cases[], orthogonal_cases[], spectral_cases[],
    singular_cases[];

/* A triangle of a symmetric or Hermitian matrix, or a triangular one. */
static inline struct view with_structure(struct view x, enum structure structure, char uplo)
{
    x.structure = structure;
    x.uplo = uplo;
    return x;
}

/* An exactly zero row or column; from 1, as INFO counts. */
static inline void clear_row(struct source *x, int64_t row)
{
    for (int64_t col = 0; col < x->cols; col++)
        *source_at(x, row - 1, col) = 0;
}

static inline void clear_column(struct source *x, int64_t col)
{
    for (int64_t row = 0; row < x->rows; row++)
        *source_at(x, row, col - 1) = 0;
}

#endif
