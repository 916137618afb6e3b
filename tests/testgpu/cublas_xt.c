/* cuBLASXt of one device, as far as scripts/gpu-proof times it: it computes in host memory, while
 * its caller waits. */
#include <string.h>
#include <cublasXt.h>
#include "cublas_compute.h"

struct cublasXtContext {
    struct testgpu_object object;
    bool selected;
};

static struct testgpu_pool handles = {.name = "xt_handles", .size = sizeof(struct cublasXtContext)};
static const struct routine plain = {.name = "xt"};

static bool is_alive(cublasXtHandle_t handle)
{
    testgpu_lock();
    const bool alive = testgpu_object_is_alive(&handles, handle, "xt_handle");
    testgpu_unlock();
    return alive;
}

cublasStatus_t CUBLASWINAPI cublasXtCreate(cublasXtHandle_t *handle)
{
    CUBLAS_ENTER(TESTGPU_UNSAFE | TESTGPU_ALLOCATES, "handle=%p", (void *)handle);
    if (handle == NULL)
        TESTGPU_RETURN(CUBLAS_STATUS_INVALID_VALUE);
    testgpu_lock();
    *handle = testgpu_object_new(&handles, testgpu_current());
    testgpu_unlock();
    TESTGPU_RETURN(*handle != NULL ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_ALLOC_FAILED);
}

cublasStatus_t CUBLASWINAPI cublasXtDestroy(cublasXtHandle_t handle)
{
    CUBLAS_ENTER(TESTGPU_UNSAFE, "handle=%p", (void *)handle);
    if (!is_alive(handle))
        TESTGPU_RETURN(CUBLAS_STATUS_NOT_INITIALIZED);
    handle->object.alive = false;
    TESTGPU_RETURN(CUBLAS_STATUS_SUCCESS);
}

cublasStatus_t CUBLASWINAPI cublasXtDeviceSelect(cublasXtHandle_t handle, int devices, int *device)
{
    CUBLAS_ENTER(TESTGPU_UNSAFE, "handle=%p devices=%d", (void *)handle, devices);
    if (!is_alive(handle))
        TESTGPU_RETURN(CUBLAS_STATUS_NOT_INITIALIZED);
    if (devices != 1 || device[0] != 0)
        TESTGPU_RETURN(CUBLAS_STATUS_INVALID_VALUE);
    handle->selected = true;
    TESTGPU_RETURN(CUBLAS_STATUS_SUCCESS);
}

cublasStatus_t CUBLASWINAPI cublasXtSetBlockDim(cublasXtHandle_t handle, int order)
{
    CUBLAS_ENTER(TESTGPU_UNSAFE, "handle=%p order=%d", (void *)handle, order);
    if (!is_alive(handle))
        TESTGPU_RETURN(CUBLAS_STATUS_NOT_INITIALIZED);
    TESTGPU_RETURN(order > 0 ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_INVALID_VALUE);
}

static cublasStatus_t compute(cublasXtHandle_t handle, struct blas_call *x, const void *beta,
                              void (*routine)(const struct blas_call *, const void *, const void *,
                                              void *))
{
    if (!is_alive(handle) || !handle->selected)
        return CUBLAS_STATUS_NOT_INITIALIZED;
    if (x->m < 0 || x->n < 0 || x->k < 0)
        return CUBLAS_STATUS_INVALID_VALUE;
    memcpy(x->alpha, x->alpha_at, element_bytes(x->precision));
    if (beta != NULL)
        memcpy(x->beta, beta, element_bytes(x->precision));
    routine(x, (const void *)(uintptr_t)x->a.address, (const void *)(uintptr_t)x->b.address,
            (void *)(uintptr_t)x->c.address);
    return CUBLAS_STATUS_SUCCESS;
}

#define FIELDS(PRECISION)                                                                          \
    .routine = &plain, .precision = (PRECISION), .n = (int64_t)n, .a = MATRIX(a, (int64_t)lda),    \
    .alpha_at = alpha
#define ENTER CUBLAS_ENTER(TESTGPU_UNSAFE, "handle=%p n=%zu", (void *)handle, n)

#define GEMM(NAME, ELEMENT, PRECISION)                                                             \
    cublasStatus_t CUBLASWINAPI NAME(                                                              \
        cublasXtHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, size_t m,     \
        size_t n, size_t k, const ELEMENT *alpha, const ELEMENT *a, size_t lda, const ELEMENT *b,  \
        size_t ldb, const ELEMENT *beta, ELEMENT *c, size_t ldc)                                   \
    {                                                                                              \
        struct blas_call x = {FIELDS(PRECISION),                                                   \
                              .transa = transa,                                                    \
                              .transb = transb,                                                    \
                              .m = (int64_t)m,                                                     \
                              .k = (int64_t)k,                                                     \
                              .b = MATRIX(b, (int64_t)ldb),                                        \
                              .c = MATRIX(c, (int64_t)ldc)};                                       \
        ENTER;                                                                                     \
        TESTGPU_RETURN(compute(handle, &x, beta, compute_gemm));                                   \
    }

GEMM(cublasXtSgemm, float, SINGLE)
GEMM(cublasXtDgemm, double, DOUBLE)
GEMM(cublasXtZgemm, cuDoubleComplex, DOUBLE_COMPLEX)

cublasStatus_t CUBLASWINAPI cublasXtDsyrk(cublasXtHandle_t handle, cublasFillMode_t uplo,
                                          cublasOperation_t trans, size_t n, size_t k,
                                          const double *alpha, const double *a, size_t lda,
                                          const double *beta, double *c, size_t ldc)
{
    struct blas_call x = {FIELDS(DOUBLE), .uplo = uplo, .transa = trans, .k = (int64_t)k,
                          .c = MATRIX(c, (int64_t)ldc)};
    ENTER;
    TESTGPU_RETURN(compute(handle, &x, beta, compute_syrk));
}

cublasStatus_t CUBLASWINAPI cublasXtDtrsm(cublasXtHandle_t handle, cublasSideMode_t side,
                                          cublasFillMode_t uplo, cublasOperation_t trans,
                                          cublasDiagType_t diag, size_t m, size_t n,
                                          const double *alpha, const double *a, size_t lda,
                                          double *b, size_t ldb)
{
    struct blas_call x = {FIELDS(DOUBLE),
                          .side = side,
                          .uplo = uplo,
                          .transa = trans,
                          .diag = diag,
                          .m = (int64_t)m,
                          .c = MATRIX(b, (int64_t)ldb)};
    ENTER;
    TESTGPU_RETURN(compute(handle, &x, NULL, compute_trsm));
}
