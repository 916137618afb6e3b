/* Sums of A, which is the result, and products of vectors: x is A, y is B. */
#include "cublas_compute.h"

static bool describe_ger(struct blas_call *x)
{
    set_vector(&x->a, x->m);
    set_vector(&x->b, x->n);
    set_shape(&x->c, x->m, x->n, WHOLE);
    return true;
}

static bool describe_syr2(struct blas_call *x)
{
    set_vector(&x->a, x->n);
    set_vector(&x->b, x->n);
    set_shape(&x->c, x->n, x->n, part_of(x->uplo));
    return true;
}

static bool describe_syr(struct blas_call *x)
{
    describe_syr2(x);
    set_shape(&x->b, 0, 0, WHOLE);
    return true;
}

static const struct routine ger = {"ger", HAS_B, describe_ger, compute_ger, NULL};
static const struct routine geru = {"geru", HAS_B, describe_ger, compute_ger, NULL};
static const struct routine gerc = {"gerc", HAS_B, describe_ger, compute_gerc, NULL};
static const struct routine syr = {"syr", 0, describe_syr, compute_syr, NULL};
static const struct routine her = {"her", HERMITIAN | REAL_ALPHA, describe_syr, compute_syr, NULL};
static const struct routine syr2 = {"syr2", HAS_B, describe_syr2, compute_syr2, NULL};
static const struct routine her2 = {"her2", HAS_B | HERMITIAN, describe_syr2, compute_syr2, NULL};

#define COMMON_FIELDS(PRECISION, ROUTINE)                                                          \
    .routine = &(ROUTINE), .precision = (PRECISION), .n = n, .a = MATRIX(x, incx),                 \
    .c = MATRIX(a, lda), .alpha_at = alpha

#define GER(NAME, INTEGER, ELEMENT, REAL, PRECISION, ROUTINE)                                      \
    cublasStatus_t CUBLASWINAPI NAME(cublasHandle_t handle, INTEGER m, INTEGER n,                  \
                                     const ELEMENT *alpha, const ELEMENT *x, INTEGER incx,         \
                                     const ELEMENT *y, INTEGER incy, ELEMENT *a, INTEGER lda)      \
    {                                                                                              \
        struct blas_call call = {COMMON_FIELDS(PRECISION, ROUTINE), .m = m, .b = MATRIX(y, incy)}; \
        BLAS_CALL(handle, call);                                                                   \
    }

#define SYR2(NAME, INTEGER, ELEMENT, REAL, PRECISION, ROUTINE)                                     \
    cublasStatus_t CUBLASWINAPI NAME(cublasHandle_t handle, cublasFillMode_t uplo, INTEGER n,      \
                                     const ELEMENT *alpha, const ELEMENT *x, INTEGER incx,         \
                                     const ELEMENT *y, INTEGER incy, ELEMENT *a, INTEGER lda)      \
    {                                                                                              \
        struct blas_call call = {COMMON_FIELDS(PRECISION, ROUTINE), .uplo = uplo,                  \
                                 .b = MATRIX(y, incy)};                                            \
        BLAS_CALL(handle, call);                                                                   \
    }

#define RANK_ONE(NAME, INTEGER, ELEMENT, SCALAR, PRECISION, ROUTINE)                               \
    cublasStatus_t CUBLASWINAPI NAME(cublasHandle_t handle, cublasFillMode_t uplo, INTEGER n,      \
                                     const SCALAR *alpha, const ELEMENT *x, INTEGER incx,          \
                                     ELEMENT *a, INTEGER lda)                                      \
    {                                                                                              \
        struct blas_call call = {COMMON_FIELDS(PRECISION, ROUTINE), .uplo = uplo};                 \
        BLAS_CALL(handle, call);                                                                   \
    }
#define SYR(NAME, INTEGER, ELEMENT, REAL, PRECISION, ROUTINE)                                      \
    RANK_ONE(NAME, INTEGER, ELEMENT, ELEMENT, PRECISION, ROUTINE)
#define HER(NAME, INTEGER, ELEMENT, REAL, PRECISION, ROUTINE)                                      \
    RANK_ONE(NAME, INTEGER, ELEMENT, REAL, PRECISION, ROUTINE)

REAL_TYPES(GER, ger, _v2, ger)
COMPLEX_TYPES(GER, geru, _v2, geru)
COMPLEX_TYPES(GER, gerc, _v2, gerc)
ALL_TYPES(SYR, syr, _v2, syr)
COMPLEX_TYPES(HER, her, _v2, her)
ALL_TYPES(SYR2, syr2, _v2, syr2)
COMPLEX_TYPES(SYR2, her2, _v2, her2)
