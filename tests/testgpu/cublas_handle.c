/* Handles and their settings. */
#include "cublas.h"

enum { OWN_WORKSPACE = 4 << 20 };

const struct testgpu_library cublas_library = {
    .not_initialised = CUBLAS_STATUS_NOT_INITIALIZED,
    .deinitialised = CUBLAS_STATUS_NOT_INITIALIZED,
    .no_context = CUBLAS_STATUS_NOT_INITIALIZED,
    .context_failed = CUBLAS_STATUS_EXECUTION_FAILED,
    .capturing = CUBLAS_STATUS_EXECUTION_FAILED,
    .unknown = CUBLAS_STATUS_EXECUTION_FAILED,
    .out_of_memory = CUBLAS_STATUS_ALLOC_FAILED,
    .life = &cublas_life,
};

static struct testgpu_pool handles = {.name = "handles", .size = sizeof(struct cublasContext)};

/* With the lock. */
static cublasStatus_t check_handle(cublasHandle_t handle)
{
    if (!testgpu_object_is_alive(&handles, handle, "handle"))
        return CUBLAS_STATUS_NOT_INITIALIZED;
    if (handle->object.context != testgpu_current()) {
        testgpu_fault("handle_of_another_context", "handle=%p", (void *)handle);
        return CUBLAS_STATUS_EXECUTION_FAILED;
    }
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t handle_take(cublasHandle_t handle)
{
    testgpu_lock();
    cublasStatus_t status = check_handle(handle);
    if (status == CUBLAS_STATUS_SUCCESS && handle->users++ > 0)
        testgpu_fault("handle_in_two_threads", "handle=%p", (void *)handle);
    testgpu_unlock();
    if (status == CUBLAS_STATUS_SUCCESS)
        testgpu_linger();
    return status;
}

void handle_give(cublasHandle_t handle)
{
    testgpu_lock();
    handle->users--;
    testgpu_unlock();
}

cublasStatus_t CUBLASWINAPI cublasCreate_v2(cublasHandle_t *handle)
{
    CUBLAS_ENTER(TESTGPU_CONTEXT | TESTGPU_UNSAFE | TESTGPU_ALLOCATES, "handle=%p", (void *)handle);
    if (handle == NULL)
        TESTGPU_RETURN(CUBLAS_STATUS_INVALID_VALUE);
    CUcontext context = testgpu_current();
    testgpu_lock();
    bool taken = testgpu_take_memory(context, OWN_WORKSPACE);
    cublasHandle_t new = taken ? testgpu_object_new(&handles, context) : NULL;
    if (taken && new == NULL)
        testgpu_return_memory(context, OWN_WORKSPACE);
    testgpu_unlock();
    if (new == NULL)
        TESTGPU_RETURN(CUBLAS_STATUS_ALLOC_FAILED);
    *handle = new;
    TESTGPU_RETURN(CUBLAS_STATUS_SUCCESS);
}

/* Like the real one, waits for the whole device. */
cublasStatus_t CUBLASWINAPI cublasDestroy_v2(cublasHandle_t handle)
{
    CUBLAS_ENTER(TESTGPU_CONTEXT | TESTGPU_UNSAFE, "handle=%p", (void *)handle);
    cublasStatus_t status = handle_take(handle);
    if (status != CUBLAS_STATUS_SUCCESS)
        TESTGPU_RETURN(status);
    if (testgpu_synchronise(handle->object.context) != CUDA_SUCCESS)
        status = CUBLAS_STATUS_EXECUTION_FAILED;
    handle_give(handle);
    testgpu_lock();
    if (handle->object.alive)
        testgpu_return_memory(handle->object.context, OWN_WORKSPACE);
    handle->object.alive = false;
    testgpu_unlock();
    TESTGPU_RETURN(status);
}

cublasStatus_t CUBLASWINAPI cublasSetStream_v2(cublasHandle_t handle, cudaStream_t stream)
{
    CUBLAS_ENTER(TESTGPU_CONTEXT, "handle=%p stream=%p", (void *)handle, (void *)stream);
    cublasStatus_t status = handle_take(handle);
    if (status != CUBLAS_STATUS_SUCCESS)
        TESTGPU_RETURN(status);
    testgpu_lock();
    if (testgpu_check_stream(stream) == CUDA_SUCCESS) {
        handle->stream = stream;
        /* Documented: setting the stream goes back to the handle's own workspace. */
        handle->workspace = 0;
        handle->workspace_bytes = 0;
    } else {
        status = CUBLAS_STATUS_INVALID_VALUE;
    }
    testgpu_unlock();
    handle_give(handle);
    TESTGPU_RETURN(status);
}

cublasStatus_t CUBLASWINAPI cublasGetStream_v2(cublasHandle_t handle, cudaStream_t *stream)
{
    CUBLAS_ENTER(TESTGPU_CONTEXT, "handle=%p", (void *)handle);
    if (stream == NULL)
        TESTGPU_RETURN(CUBLAS_STATUS_INVALID_VALUE);
    cublasStatus_t status = handle_take(handle);
    if (status != CUBLAS_STATUS_SUCCESS)
        TESTGPU_RETURN(status);
    *stream = handle->stream;
    handle_give(handle);
    TESTGPU_RETURN(status);
}

#if TESTGPU_CUBLAS_MAJOR >= 13
cublasStatus_t CUBLASWINAPI cublasSetWorkspace_v2(cublasHandle_t handle, void *workspace,
                                                  size_t bytes)
{
    CUBLAS_ENTER(TESTGPU_CONTEXT, "handle=%p workspace=%p bytes=%zu", (void *)handle, workspace,
                 bytes);
    if ((uintptr_t)workspace % 256 != 0)
        TESTGPU_RETURN(CUBLAS_STATUS_INVALID_VALUE);
    cublasStatus_t status = handle_take(handle);
    if (status != CUBLAS_STATUS_SUCCESS)
        TESTGPU_RETURN(status);
    handle->workspace = (CUdeviceptr)(uintptr_t)workspace;
    handle->workspace_bytes = workspace != NULL ? bytes : 0;
    handle_give(handle);
    TESTGPU_RETURN(status);
}

/* Older headers have no prototype. */
cublasStatus_t CUBLASWINAPI
cublasSetFixedPointEmulationMantissaBitCountPointer(cublasHandle_t handle, int *bits);
cublasStatus_t CUBLASWINAPI
cublasSetFixedPointEmulationMantissaBitCountPointer(cublasHandle_t handle, int *bits)
{
    CUBLAS_ENTER(TESTGPU_CONTEXT, "handle=%p bits=%p", (void *)handle, (void *)bits);
    cublasStatus_t status = handle_take(handle);
    if (status != CUBLAS_STATUS_SUCCESS)
        TESTGPU_RETURN(status);
    handle->bits_at = (CUdeviceptr)(uintptr_t)bits;
    handle_give(handle);
    TESTGPU_RETURN(status);
}
#endif

/* Settings that are kept and given back. */
#define SETTING(TYPE, FIELD, SET, GET, LAST)                                                       \
    cublasStatus_t CUBLASWINAPI SET(cublasHandle_t handle, TYPE value)                             \
    {                                                                                              \
        CUBLAS_ENTER(TESTGPU_CONTEXT, "handle=%p value=%d", (void *)handle, (int)value);           \
        if ((unsigned)value > (LAST))                                                              \
            TESTGPU_RETURN(CUBLAS_STATUS_INVALID_VALUE);                                           \
        cublasStatus_t status = handle_take(handle);                                               \
        if (status != CUBLAS_STATUS_SUCCESS)                                                       \
            TESTGPU_RETURN(status);                                                                \
        handle->FIELD = value;                                                                     \
        handle_give(handle);                                                                       \
        TESTGPU_RETURN(status);                                                                    \
    }                                                                                              \
    cublasStatus_t CUBLASWINAPI GET(cublasHandle_t handle, TYPE *value)                            \
    {                                                                                              \
        CUBLAS_ENTER(TESTGPU_CONTEXT, "handle=%p", (void *)handle);                                \
        if (value == NULL)                                                                         \
            TESTGPU_RETURN(CUBLAS_STATUS_INVALID_VALUE);                                           \
        cublasStatus_t status = handle_take(handle);                                               \
        if (status != CUBLAS_STATUS_SUCCESS)                                                       \
            TESTGPU_RETURN(status);                                                                \
        *value = handle->FIELD;                                                                    \
        handle_give(handle);                                                                       \
        TESTGPU_RETURN(status);                                                                    \
    }

SETTING(cublasMath_t, math, cublasSetMathMode, cublasGetMathMode, 0xffu)
SETTING(cublasPointerMode_t, pointers, cublasSetPointerMode_v2, cublasGetPointerMode_v2, 1u)
SETTING(cublasAtomicsMode_t, atomics, cublasSetAtomicsMode, cublasGetAtomicsMode, 1u)
