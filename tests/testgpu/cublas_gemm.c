/* gemm. */
#include "cublas_level3.h"

static bool describe(struct level3 *x)
{
    bool a = is_transposed(x->transa);
    bool b = is_transposed(x->transb);
    set_shape(&x->a, a ? x->k : x->m, a ? x->m : x->k, WHOLE);
    set_shape(&x->b, b ? x->n : x->k, b ? x->k : x->n, WHOLE);
    set_shape(&x->c, x->m, x->n, WHOLE);
    return true;
}

static const struct routine gemm = {"gemm", HAS_B | HAS_BETA, describe, compute_gemm};

#define GEMM(NAME, INTEGER, ELEMENT, REAL, PRECISION, ROUTINE)                                     \
    cublasStatus_t CUBLASWINAPI NAME(                                                              \
        cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, INTEGER m,      \
        INTEGER n, INTEGER k, const ELEMENT *alpha, const ELEMENT *a, INTEGER lda,                 \
        const ELEMENT *b, INTEGER ldb, const ELEMENT *beta, ELEMENT *c, INTEGER ldc)               \
    {                                                                                              \
        struct level3 x = {                                                                        \
            .routine = &(ROUTINE),                                                                 \
            .precision = PRECISION,                                                                \
            .transa = transa,                                                                      \
            .transb = transb,                                                                      \
            .m = m,                                                                                \
            .n = n,                                                                                \
            .k = k,                                                                                \
            .a = MATRIX(a, lda),                                                                   \
            .b = MATRIX(b, ldb),                                                                   \
            .c = MATRIX(c, ldc),                                                                   \
            .alpha_at = alpha,                                                                     \
            .beta_at = beta,                                                                       \
        };                                                                                         \
        LEVEL3(handle, x);                                                                         \
    }

ALL_TYPES(GEMM, gemm, _v2, gemm)
