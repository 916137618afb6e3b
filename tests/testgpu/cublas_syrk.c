/* syrk, herk, syr2k and her2k. */
#include "cublas_compute.h"
#include "cublas_cost.h"

/* What the complex ones have of the two transpositions is the one that keeps the result's kind. */
static bool is_known(const struct blas_call *x)
{
    bool complex_type = x->precision == COMPLEX || x->precision == DOUBLE_COMPLEX;
    bool hermitian = (x->routine->traits & HERMITIAN) != 0;
    return !complex_type || x->transa != (hermitian ? CUBLAS_OP_T : CUBLAS_OP_C);
}

static bool describe(struct blas_call *x)
{
    bool a = is_transposed(x->transa);
    set_shape(&x->a, a ? x->k : x->n, a ? x->n : x->k, WHOLE);
    set_shape(&x->b, x->a.rows, x->a.columns, WHOLE);
    set_shape(&x->c, x->n, x->n, part_of(x->uplo));
    return is_known(x);
}

static bool describe_one(struct blas_call *x)
{
    bool known = describe(x);
    set_shape(&x->b, 0, 0, WHOLE);
    return known;
}

static const struct routine syrk = {"syrk", HAS_BETA, describe_one, compute_syrk,
                                    operations_of_syrk};
static const struct routine herk = {"herk", HAS_BETA | HERMITIAN | REAL_ALPHA | REAL_BETA,
                                    describe_one, compute_syrk, operations_of_syrk};
static const struct routine syr2k = {"syr2k", HAS_B | HAS_BETA, describe, compute_syr2k,
                                     operations_of_syr2k};
static const struct routine her2k = {"her2k", HAS_B | HAS_BETA | HERMITIAN | REAL_BETA, describe,
                                     compute_syr2k, operations_of_syr2k};

#define FIRST_FIELDS(PRECISION, ROUTINE)                                                           \
    .routine = &(ROUTINE), .precision = (PRECISION), .uplo = uplo, .transa = trans, .n = n,        \
    .k = k, .a = MATRIX(a, lda), .c = MATRIX(c, ldc), .alpha_at = alpha, .beta_at = beta

#define RANK_K(NAME, INTEGER, ELEMENT, SCALAR, PRECISION, ROUTINE)                                 \
    cublasStatus_t CUBLASWINAPI NAME(cublasHandle_t handle, cublasFillMode_t uplo,                 \
                                     cublasOperation_t trans, INTEGER n, INTEGER k,                \
                                     const SCALAR *alpha, const ELEMENT *a, INTEGER lda,           \
                                     const SCALAR *beta, ELEMENT *c, INTEGER ldc)                  \
    {                                                                                              \
        struct blas_call x = {FIRST_FIELDS(PRECISION, ROUTINE)};                                   \
        BLAS_CALL(handle, x);                                                                      \
    }

#define RANK_2K(NAME, INTEGER, ELEMENT, BETA, PRECISION, ROUTINE)                                  \
    cublasStatus_t CUBLASWINAPI NAME(                                                              \
        cublasHandle_t handle, cublasFillMode_t uplo, cublasOperation_t trans, INTEGER n,          \
        INTEGER k, const ELEMENT *alpha, const ELEMENT *a, INTEGER lda, const ELEMENT *b,          \
        INTEGER ldb, const BETA *beta, ELEMENT *c, INTEGER ldc)                                    \
    {                                                                                              \
        struct blas_call x = {FIRST_FIELDS(PRECISION, ROUTINE), .b = MATRIX(b, ldb)};              \
        BLAS_CALL(handle, x);                                                                      \
    }

#define SYRK(NAME, INTEGER, ELEMENT, REAL, PRECISION, ROUTINE)                                     \
    RANK_K(NAME, INTEGER, ELEMENT, ELEMENT, PRECISION, ROUTINE)
#define HERK(NAME, INTEGER, ELEMENT, REAL, PRECISION, ROUTINE)                                     \
    RANK_K(NAME, INTEGER, ELEMENT, REAL, PRECISION, ROUTINE)
#define SYR2K(NAME, INTEGER, ELEMENT, REAL, PRECISION, ROUTINE)                                    \
    RANK_2K(NAME, INTEGER, ELEMENT, ELEMENT, PRECISION, ROUTINE)
#define HER2K(NAME, INTEGER, ELEMENT, REAL, PRECISION, ROUTINE)                                    \
    RANK_2K(NAME, INTEGER, ELEMENT, REAL, PRECISION, ROUTINE)

ALL_TYPES(SYRK, syrk, _v2, syrk)
ALL_TYPES(SYR2K, syr2k, _v2, syr2k)
COMPLEX_TYPES(HERK, herk, _v2, herk)
COMPLEX_TYPES(HER2K, her2k, _v2, her2k)
