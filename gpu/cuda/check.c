#include "check.h"

#include <stdio.h>

enum gpu_status gpu_check(CUresult result, const char *function)
{
    return result == CUDA_ERROR_OUT_OF_MEMORY ? GPU_NO_MEMORY : gpu_check_final(result, function);
}

enum gpu_status gpu_check_final(CUresult result, const char *function)
{
    const char *name = NULL;
    if (result == CUDA_SUCCESS)
        return GPU_OK;
    if (result == CUDA_ERROR_DEINITIALIZED)
        failure_of_unloaded_driver();
    CUDA(cuGetErrorName)(result, &name);
    failure_note(FAILURE_DEVICE, function, name);
    return GPU_ERROR;
}

enum gpu_status gpu_check_cublas(cublasStatus_t status, const char *function)
{
    if (status == CUBLAS_STATUS_SUCCESS)
        return GPU_OK;
    if (status == CUBLAS_STATUS_ALLOC_FAILED)
        return GPU_NO_MEMORY;
    if (status == CUBLAS_STATUS_NOT_SUPPORTED || status == CUBLAS_STATUS_ARCH_MISMATCH)
        return GPU_UNSUPPORTED;
    failure_note(FAILURE_LIBRARY, function,
                 CUDA(cublasGetStatusName) ? CUDA(cublasGetStatusName)(status) : "cuBLAS failed");
    return GPU_ERROR;
}

/* Returns the name of a status, for which cuSOLVER has no function, or NULL. */
static const char *cusolver_name(cusolverStatus_t status)
{
#define NAME(status)                                                                               \
    case status:                                                                                   \
        return #status
    switch (status) {
        NAME(CUSOLVER_STATUS_NOT_INITIALIZED);
        NAME(CUSOLVER_STATUS_MAPPING_ERROR);
        NAME(CUSOLVER_STATUS_EXECUTION_FAILED);
        NAME(CUSOLVER_STATUS_INTERNAL_ERROR);
    default:
        return NULL;
    }
#undef NAME
}

/* cuSOLVER leaves operands untouched if it does not take the arguments, such as sizes beyond 32
 * bits. */
enum gpu_status gpu_check_cusolver(cusolverStatus_t status, const char *function)
{
    char number[32];
    switch (status) {
    case CUSOLVER_STATUS_SUCCESS:
        return GPU_OK;
    case CUSOLVER_STATUS_ALLOC_FAILED:
        return GPU_NO_MEMORY;
    case CUSOLVER_STATUS_NOT_SUPPORTED:
    case CUSOLVER_STATUS_ARCH_MISMATCH:
    case CUSOLVER_STATUS_MATRIX_TYPE_NOT_SUPPORTED:
    case CUSOLVER_STATUS_INVALID_VALUE:
        return GPU_UNSUPPORTED;
    default:
        snprintf(number, sizeof number, "cuSOLVER status %d", (int)status);
        failure_note(FAILURE_LIBRARY, function,
                     cusolver_name(status) ? cusolver_name(status) : number);
        return GPU_ERROR;
    }
}
