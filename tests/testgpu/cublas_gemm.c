/* gemm, and gemm3m, which rounds otherwise on the device. */
#include "cublas_gemm.h"
#include "cublas_cost.h"

bool describe_gemm(struct blas_call *x)
{
    bool a = is_transposed(x->transa);
    bool b = is_transposed(x->transb);
    set_shape(&x->a, a ? x->k : x->m, a ? x->m : x->k, WHOLE);
    set_shape(&x->b, b ? x->n : x->k, b ? x->k : x->n, WHOLE);
    set_shape(&x->c, x->m, x->n, WHOLE);
    return true;
}

static const struct routine gemm = {"gemm", HAS_B | HAS_BETA, describe_gemm, compute_gemm,
                                    operations_of_gemm};
static const struct routine gemm3m = {"gemm3m", HAS_B | HAS_BETA, describe_gemm, compute_gemm,
                                      operations_of_gemm};

#define GEMM(NAME, INTEGER, ELEMENT, REAL, PRECISION, ROUTINE)                                     \
    cublasStatus_t CUBLASWINAPI NAME(                                                              \
        cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, INTEGER m,      \
        INTEGER n, INTEGER k, const ELEMENT *alpha, const ELEMENT *a, INTEGER lda,                 \
        const ELEMENT *b, INTEGER ldb, const ELEMENT *beta, ELEMENT *c, INTEGER ldc)               \
    {                                                                                              \
        struct blas_call x = {GEMM_FIELDS(PRECISION, ROUTINE)};                                    \
        BLAS_CALL(handle, x);                                                                      \
    }

ALL_TYPES(GEMM, gemm, _v2, gemm)
COMPLEX_TYPES(GEMM, gemm3m, , gemm3m)
