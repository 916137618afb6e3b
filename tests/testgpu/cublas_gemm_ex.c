/* gemmEx, of bfloat16 inputs and a float result alone. */
#include <stdlib.h>
#include <string.h>
#include "cublas_gemm.h"
#include "cublas_cost.h"

/* A bfloat16 is the upper half of a float. */
static float *widen(const struct matrix *matrix, const uint16_t *from)
{
    size_t count = (size_t)(matrix->rows * matrix->columns);
    float *wide = malloc(count * sizeof *wide);
    if (wide == NULL)
        abort();
    for (int64_t j = 0; j < matrix->columns; j++)
        for (int64_t i = 0; i < matrix->rows; i++) {
            uint32_t bits = (uint32_t)from[j * matrix->ld + i] << 16;
            memcpy(&wide[j * matrix->rows + i], &bits, sizeof bits);
        }
    return wide;
}

static void compute(const struct blas_call *x, const void *a, const void *b, void *c)
{
    struct blas_call wide = *x;
    float *wide_a = a != NULL ? widen(&x->a, a) : NULL;
    float *wide_b = b != NULL ? widen(&x->b, b) : NULL;
    wide.a.ld = x->a.rows;
    wide.b.ld = x->b.rows;
    compute_gemm(&wide, wide_a, wide_b, c);
    free(wide_a);
    free(wide_b);
}

static const struct routine gemm_ex = {"gemm_ex", HAS_B | HAS_BETA | BFLOAT_INPUTS, describe_gemm,
                                       compute, operations_of_gemm};

#define GEMM_EX(NAME, INTEGER)                                                                     \
    cublasStatus_t CUBLASWINAPI NAME(                                                              \
        cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, INTEGER m,      \
        INTEGER n, INTEGER k, const void *alpha, const void *a, cudaDataType type_a, INTEGER lda,  \
        const void *b, cudaDataType type_b, INTEGER ldb, const void *beta, void *c,                \
        cudaDataType type_c, INTEGER ldc, cublasComputeType_t type, cublasGemmAlgo_t algorithm)    \
    {                                                                                              \
        struct blas_call x = {GEMM_FIELDS(SINGLE, gemm_ex)};                                       \
        (void)algorithm;                                                                           \
        ENTER_BLAS_CALL(handle, x);                                                                \
        if (type_a != CUDA_R_16BF || type_b != CUDA_R_16BF || type_c != CUDA_R_32F ||              \
            type != CUBLAS_COMPUTE_32F)                                                            \
            TESTGPU_RETURN(CUBLAS_STATUS_NOT_SUPPORTED);                                           \
        TESTGPU_RETURN(blas_call(handle, &x));                                                     \
    }

GEMM_EX(cublasGemmEx, int)
#if TESTGPU_CUBLAS_MAJOR >= 13
GEMM_EX(cublasGemmEx_64, int64_t)
#endif
