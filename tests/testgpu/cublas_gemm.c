/* gemm: checks at the call, then a kernel on the handle's stream. */
#include <limits.h>
#include <string.h>
#include "cublas.h"

static bool is_zero(const unsigned char *scalar, enum precision precision)
{
    float single[2];
    double twice[2];
    switch (precision) {
    case SINGLE:
        memcpy(single, scalar, sizeof *single);
        return single[0] == 0;
    case DOUBLE:
        memcpy(twice, scalar, sizeof *twice);
        return twice[0] == 0;
    case COMPLEX:
        memcpy(single, scalar, sizeof single);
        return single[0] == 0 && single[1] == 0;
    default:
        memcpy(twice, scalar, sizeof twice);
        return twice[0] == 0 && twice[1] == 0;
    }
}

static size_t extent(int rows, int columns, int ld, size_t element)
{
    return rows == 0 || columns == 0
               ? 0
               : ((size_t)(columns - 1) * (size_t)ld + (size_t)rows) * element;
}

static void add_one(const struct gemm *g, char *c)
{
    char *at = c + ((size_t)(g->n / 2) * (size_t)g->ldc + (size_t)(g->m / 2)) *
                       element_bytes(g->precision);
    float single;
    double twice;
    if (g->precision == SINGLE || g->precision == COMPLEX) {
        memcpy(&single, at, sizeof single);
        single += 1;
        memcpy(at, &single, sizeof single);
    } else {
        memcpy(&twice, at, sizeof twice);
        twice += 1;
        memcpy(at, &twice, sizeof twice);
    }
}

static CUresult read_scalars(struct testgpu_run *run, struct gemm *g)
{
    size_t element = element_bytes(g->precision);
    const void *alpha = testgpu_reach(run, g->alpha_address, element);
    const void *beta = testgpu_reach(run, g->beta_address, element);
    if (alpha == NULL || beta == NULL)
        return CUDA_ERROR_ILLEGAL_ADDRESS;
    memcpy(g->alpha, alpha, element);
    memcpy(g->beta, beta, element);
    return CUDA_SUCCESS;
}

/* A workspace holds whatever the library likes. */
static CUresult scribble(struct testgpu_run *run, const struct gemm *g)
{
    if (g->workspace == 0 || g->workspace_bytes == 0)
        return CUDA_SUCCESS;
    char *workspace = testgpu_reach(run, g->workspace, g->workspace_bytes);
    if (workspace == NULL)
        return CUDA_ERROR_ILLEGAL_ADDRESS;
    memset(workspace, 0xff, g->workspace_bytes < 65536 ? g->workspace_bytes : 65536);
    return CUDA_SUCCESS;
}

static CUresult run_gemm(struct testgpu_run *run, void *argument)
{
    struct gemm *g = argument;
    size_t element = element_bytes(g->precision);
    if (g->device_scalars && read_scalars(run, g) != CUDA_SUCCESS)
        return CUDA_ERROR_ILLEGAL_ADDRESS;
    if (scribble(run, g) != CUDA_SUCCESS)
        return CUDA_ERROR_ILLEGAL_ADDRESS;
    const void *a = NULL;
    const void *b = NULL;
    if (g->k != 0 && !is_zero(g->alpha, g->precision)) {
        bool plain_a = g->transa == 'N';
        bool plain_b = g->transb == 'N';
        a = testgpu_reach(run, g->a,
                          extent(plain_a ? g->m : g->k, plain_a ? g->k : g->m, g->lda, element));
        b = testgpu_reach(run, g->b,
                          extent(plain_b ? g->k : g->n, plain_b ? g->n : g->k, g->ldb, element));
        if (a == NULL || b == NULL)
            return CUDA_ERROR_ILLEGAL_ADDRESS;
    }
    char *c = testgpu_reach(run, g->c, extent(g->m, g->n, g->ldc, element));
    if (c == NULL)
        return CUDA_ERROR_ILLEGAL_ADDRESS;
    compute_gemm(g, a, b, c);
    if (testgpu_spoils_gemm())
        add_one(g, c);
    return CUDA_SUCCESS;
}

struct arguments {
    cublasOperation_t transa, transb;
    int64_t m, n, k, lda, ldb, ldc;
    const void *alpha, *a, *b, *beta;
    void *c;
};

static char letter(cublasOperation_t operation)
{
    return operation == CUBLAS_OP_N ? 'N' : operation == CUBLAS_OP_T ? 'T' : 'C';
}

static bool too_small(int64_t ld, int64_t rows)
{
    return ld < (rows > 1 ? rows : 1);
}

static cublasStatus_t check(const struct arguments *x)
{
    if ((unsigned)x->transa > CUBLAS_OP_C || (unsigned)x->transb > CUBLAS_OP_C || x->m < 0 ||
        x->n < 0 || x->k < 0)
        return CUBLAS_STATUS_INVALID_VALUE;
    if (too_small(x->lda, x->transa == CUBLAS_OP_N ? x->m : x->k) ||
        too_small(x->ldb, x->transb == CUBLAS_OP_N ? x->k : x->n) || too_small(x->ldc, x->m))
        return CUBLAS_STATUS_INVALID_VALUE;
    if (x->alpha == NULL || x->beta == NULL)
        return CUBLAS_STATUS_INVALID_VALUE;
    if (x->m > INT_MAX || x->n > INT_MAX || x->k > INT_MAX || x->lda > INT_MAX ||
        x->ldb > INT_MAX || x->ldc > INT_MAX) {
        testgpu_fault("beyond_the_test_gpu", "a size beyond 32 bits");
        return CUBLAS_STATUS_NOT_SUPPORTED;
    }
    return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t put_scalars(struct gemm *g, const struct arguments *x,
                                  cublasPointerMode_t mode)
{
    if (mode == CUBLAS_POINTER_MODE_DEVICE) {
        g->device_scalars = true;
        g->alpha_address = (CUdeviceptr)(uintptr_t)x->alpha;
        g->beta_address = (CUdeviceptr)(uintptr_t)x->beta;
        return CUBLAS_STATUS_SUCCESS;
    }
    if (testgpu_is_device_address(x->alpha) || testgpu_is_device_address(x->beta)) {
        testgpu_fault("device_pointer_as_host", "alpha=%p beta=%p", x->alpha, x->beta);
        return CUBLAS_STATUS_INVALID_VALUE;
    }
    memcpy(g->alpha, x->alpha, element_bytes(g->precision));
    memcpy(g->beta, x->beta, element_bytes(g->precision));
    return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t put_gemm(cublasHandle_t handle, enum precision precision,
                               const struct arguments *x)
{
    cublasStatus_t status = check(x);
    if (status != CUBLAS_STATUS_SUCCESS || x->m == 0 || x->n == 0)
        return status;
    struct gemm g = {
        .precision = precision,
        .transa = letter(x->transa),
        .transb = letter(x->transb),
        .m = (int)x->m,
        .n = (int)x->n,
        .k = (int)x->k,
        .lda = (int)x->lda,
        .ldb = (int)x->ldb,
        .ldc = (int)x->ldc,
        .a = (CUdeviceptr)(uintptr_t)x->a,
        .b = (CUdeviceptr)(uintptr_t)x->b,
        .c = (CUdeviceptr)(uintptr_t)x->c,
        .workspace = handle->workspace,
        .workspace_bytes = handle->workspace_bytes,
    };
    status = put_scalars(&g, x, handle->pointers);
    if (status != CUBLAS_STATUS_SUCCESS)
        return status;
    if (testgpu_enqueue(handle->stream, "gemm", run_gemm, &g, sizeof g) != CUDA_SUCCESS)
        return CUBLAS_STATUS_EXECUTION_FAILED;
    return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t gemm(cublasHandle_t handle, enum precision precision,
                           const struct arguments *arguments)
{
    cublasStatus_t status = handle_take(handle);
    if (status != CUBLAS_STATUS_SUCCESS)
        return status;
    status = put_gemm(handle, precision, arguments);
    handle_give(handle);
    return status;
}

#define GEMM(NAME, INTEGER, ELEMENT, PRECISION)                                                    \
    cublasStatus_t CUBLASWINAPI NAME(                                                              \
        cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, INTEGER m,      \
        INTEGER n, INTEGER k, const ELEMENT *alpha, const ELEMENT *a, INTEGER lda,                 \
        const ELEMENT *b, INTEGER ldb, const ELEMENT *beta, ELEMENT *c, INTEGER ldc)               \
    {                                                                                              \
        CUBLAS_ENTER(TESTGPU_CONTEXT,                                                              \
                     "handle=%p trans=%d,%d m=%lld n=%lld k=%lld a=%p lda=%lld b=%p ldb=%lld "     \
                     "c=%p ldc=%lld",                                                              \
                     (void *)handle, (int)transa, (int)transb, (long long)m, (long long)n,         \
                     (long long)k, (const void *)a, (long long)lda, (const void *)b,               \
                     (long long)ldb, (void *)c, (long long)ldc);                                   \
        struct arguments x = {                                                                     \
            .transa = transa,                                                                      \
            .transb = transb,                                                                      \
            .m = m,                                                                                \
            .n = n,                                                                                \
            .k = k,                                                                                \
            .lda = lda,                                                                            \
            .ldb = ldb,                                                                            \
            .ldc = ldc,                                                                            \
            .alpha = alpha,                                                                        \
            .a = a,                                                                                \
            .b = b,                                                                                \
            .beta = beta,                                                                          \
            .c = c,                                                                                \
        };                                                                                         \
        TESTGPU_RETURN(gemm(handle, PRECISION, &x));                                               \
    }

GEMM(cublasSgemm_v2, int, float, SINGLE)
GEMM(cublasDgemm_v2, int, double, DOUBLE)
GEMM(cublasCgemm_v2, int, cuComplex, COMPLEX)
GEMM(cublasZgemm_v2, int, cuDoubleComplex, DOUBLE_COMPLEX)
#if TESTGPU_CUBLAS_MAJOR >= 13
GEMM(cublasSgemm_v2_64, int64_t, float, SINGLE)
GEMM(cublasDgemm_v2_64, int64_t, double, DOUBLE)
GEMM(cublasCgemm_v2_64, int64_t, cuComplex, COMPLEX)
GEMM(cublasZgemm_v2_64, int64_t, cuDoubleComplex, DOUBLE_COMPLEX)
#endif
