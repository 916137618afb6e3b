/* trmv and trsv, whose result is x. */
#include "cublas_compute.h"

static bool describe(struct blas_call *x)
{
    set_shape(&x->a, x->n, x->n, part_of(x->uplo));
    set_vector(&x->c, x->n);
    return true;
}

static const struct routine trmv = {"trmv", NO_ALPHA, describe, compute_trmv, NULL};
static const struct routine trsv = {"trsv", NO_ALPHA, describe, compute_trsv, NULL};

#define TRMV(NAME, INTEGER, ELEMENT, REAL, PRECISION, ROUTINE)                                     \
    cublasStatus_t CUBLASWINAPI NAME(cublasHandle_t handle, cublasFillMode_t uplo,                 \
                                     cublasOperation_t trans, cublasDiagType_t diag, INTEGER n,    \
                                     const ELEMENT *a, INTEGER lda, ELEMENT *x, INTEGER incx)      \
    {                                                                                              \
        struct blas_call call = {                                                                  \
            .routine = &(ROUTINE),                                                                 \
            .precision = PRECISION,                                                                \
            .uplo = uplo,                                                                          \
            .transa = trans,                                                                       \
            .diag = diag,                                                                          \
            .n = n,                                                                                \
            .a = MATRIX(a, lda),                                                                   \
            .c = MATRIX(x, incx),                                                                  \
        };                                                                                         \
        BLAS_CALL(handle, call);                                                                   \
    }

ALL_TYPES(TRMV, trmv, _v2, trmv)
ALL_TYPES(TRMV, trsv, _v2, trsv)
