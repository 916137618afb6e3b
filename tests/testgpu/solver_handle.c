/* Handles, their settings, and parameters. */
#include "solver.h"

enum { OWN_WORKSPACE = 8 << 20 };

const struct testgpu_library solver_library = {
    .not_initialised = CUSOLVER_STATUS_NOT_INITIALIZED,
    .deinitialised = CUSOLVER_STATUS_NOT_INITIALIZED,
    .no_context = CUSOLVER_STATUS_NOT_INITIALIZED,
    .context_failed = CUSOLVER_STATUS_EXECUTION_FAILED,
    .capturing = CUSOLVER_STATUS_EXECUTION_FAILED,
    .unknown = CUSOLVER_STATUS_INTERNAL_ERROR,
    .out_of_memory = CUSOLVER_STATUS_ALLOC_FAILED,
    .life = &solver_life,
};

/* Reported as handles too. */
static struct testgpu_pool handles = {.name = "handles", .size = sizeof(struct cusolverDnContext)};
static struct testgpu_pool all_params = {.name = "handles",
                                         .size = sizeof(struct cusolverDnParams)};

/* With the lock. */
static cusolverStatus_t check_handle(cusolverDnHandle_t handle)
{
    if (!testgpu_object_is_alive(&handles, handle, "handle"))
        return CUSOLVER_STATUS_NOT_INITIALIZED;
    if (handle->object.context != testgpu_current()) {
        testgpu_fault("handle_of_another_context", "handle=%p", (void *)handle);
        return CUSOLVER_STATUS_EXECUTION_FAILED;
    }
    return CUSOLVER_STATUS_SUCCESS;
}

cusolverStatus_t solver_take(cusolverDnHandle_t handle)
{
    testgpu_lock();
    cusolverStatus_t status = check_handle(handle);
    if (status == CUSOLVER_STATUS_SUCCESS && handle->users++ > 0)
        testgpu_fault("handle_in_two_threads", "handle=%p", (void *)handle);
    testgpu_unlock();
    if (status == CUSOLVER_STATUS_SUCCESS)
        testgpu_linger();
    return status;
}

void solver_give(cusolverDnHandle_t handle)
{
    testgpu_lock();
    handle->users--;
    testgpu_unlock();
}

cusolverStatus_t CUSOLVERAPI cusolverDnCreate(cusolverDnHandle_t *handle)
{
    SOLVER_ENTER(TESTGPU_CONTEXT | TESTGPU_UNSAFE | TESTGPU_ALLOCATES, "handle=%p", (void *)handle);
    if (handle == NULL)
        TESTGPU_RETURN(CUSOLVER_STATUS_INVALID_VALUE);
    CUcontext context = testgpu_current();
    testgpu_lock();
    bool taken = testgpu_take_memory(context, OWN_WORKSPACE);
    cusolverDnHandle_t new = taken ? testgpu_object_new(&handles, context) : NULL;
    if (taken && new == NULL)
        testgpu_return_memory(context, OWN_WORKSPACE);
    testgpu_unlock();
    if (new == NULL) /* the real one does not say that it lacks memory */
        TESTGPU_RETURN(CUSOLVER_STATUS_INTERNAL_ERROR);
    new->determinism = CUSOLVER_DETERMINISTIC_RESULTS;
    *handle = new;
    TESTGPU_RETURN(CUSOLVER_STATUS_SUCCESS);
}

/* Waits for the whole device, as freeing the handle's memory would. */
cusolverStatus_t CUSOLVERAPI cusolverDnDestroy(cusolverDnHandle_t handle)
{
    SOLVER_ENTER(TESTGPU_CONTEXT | TESTGPU_UNSAFE, "handle=%p", (void *)handle);
    cusolverStatus_t status = solver_take(handle);
    if (status != CUSOLVER_STATUS_SUCCESS)
        TESTGPU_RETURN(status);
    if (testgpu_synchronise(handle->object.context) != CUDA_SUCCESS)
        status = CUSOLVER_STATUS_EXECUTION_FAILED;
    solver_give(handle);
    testgpu_lock();
    if (handle->object.alive)
        testgpu_return_memory(handle->object.context, OWN_WORKSPACE);
    handle->object.alive = false;
    testgpu_unlock();
    TESTGPU_RETURN(status);
}

cusolverStatus_t CUSOLVERAPI cusolverDnSetStream(cusolverDnHandle_t handle, cudaStream_t stream)
{
    SOLVER_ENTER(TESTGPU_CONTEXT, "handle=%p stream=%p", (void *)handle, (void *)stream);
    cusolverStatus_t status = solver_take(handle);
    if (status != CUSOLVER_STATUS_SUCCESS)
        TESTGPU_RETURN(status);
    testgpu_lock();
    if (testgpu_check_stream(stream) == CUDA_SUCCESS)
        handle->stream = stream;
    else
        status = CUSOLVER_STATUS_INVALID_VALUE;
    testgpu_unlock();
    solver_give(handle);
    TESTGPU_RETURN(status);
}

cusolverStatus_t CUSOLVERAPI cusolverDnGetStream(cusolverDnHandle_t handle, cudaStream_t *stream)
{
    SOLVER_ENTER(TESTGPU_CONTEXT, "handle=%p", (void *)handle);
    if (stream == NULL)
        TESTGPU_RETURN(CUSOLVER_STATUS_INVALID_VALUE);
    cusolverStatus_t status = solver_take(handle);
    if (status != CUSOLVER_STATUS_SUCCESS)
        TESTGPU_RETURN(status);
    *stream = handle->stream;
    solver_give(handle);
    TESTGPU_RETURN(status);
}

cusolverStatus_t CUSOLVERAPI cusolverDnSetDeterministicMode(cusolverDnHandle_t handle,
                                                            cusolverDeterministicMode_t mode)
{
    SOLVER_ENTER(TESTGPU_CONTEXT, "handle=%p mode=%d", (void *)handle, (int)mode);
    if (mode != CUSOLVER_DETERMINISTIC_RESULTS && mode != CUSOLVER_ALLOW_NON_DETERMINISTIC_RESULTS)
        TESTGPU_RETURN(CUSOLVER_STATUS_INVALID_VALUE);
    cusolverStatus_t status = solver_take(handle);
    if (status != CUSOLVER_STATUS_SUCCESS)
        TESTGPU_RETURN(status);
    handle->determinism = mode;
    solver_give(handle);
    TESTGPU_RETURN(status);
}

cusolverStatus_t CUSOLVERAPI cusolverDnGetDeterministicMode(cusolverDnHandle_t handle,
                                                            cusolverDeterministicMode_t *mode)
{
    SOLVER_ENTER(TESTGPU_CONTEXT, "handle=%p", (void *)handle);
    if (mode == NULL)
        TESTGPU_RETURN(CUSOLVER_STATUS_INVALID_VALUE);
    cusolverStatus_t status = solver_take(handle);
    if (status != CUSOLVER_STATUS_SUCCESS)
        TESTGPU_RETURN(status);
    *mode = handle->determinism;
    solver_give(handle);
    TESTGPU_RETURN(status);
}

cusolverStatus_t solver_check_params(cusolverDnParams_t params)
{
    testgpu_lock();
    bool is_alive = testgpu_object_is_alive(&all_params, params, "params");
    testgpu_unlock();
    return is_alive ? CUSOLVER_STATUS_SUCCESS : CUSOLVER_STATUS_INVALID_VALUE;
}

cusolverStatus_t CUSOLVERAPI cusolverDnCreateParams(cusolverDnParams_t *params)
{
    SOLVER_ENTER(TESTGPU_CONTEXT | TESTGPU_ALLOCATES, "params=%p", (void *)params);
    if (params == NULL)
        TESTGPU_RETURN(CUSOLVER_STATUS_INVALID_VALUE);
    testgpu_lock();
    cusolverDnParams_t new = testgpu_object_new(&all_params, testgpu_current());
    testgpu_unlock();
    if (new == NULL)
        TESTGPU_RETURN(CUSOLVER_STATUS_ALLOC_FAILED);
    *params = new;
    TESTGPU_RETURN(CUSOLVER_STATUS_SUCCESS);
}

cusolverStatus_t CUSOLVERAPI cusolverDnDestroyParams(cusolverDnParams_t params)
{
    SOLVER_ENTER(TESTGPU_ANYTIME, "params=%p", (void *)params);
    cusolverStatus_t status = solver_check_params(params);
    if (status != CUSOLVER_STATUS_SUCCESS)
        TESTGPU_RETURN(status);
    testgpu_lock();
    params->object.alive = false;
    testgpu_unlock();
    TESTGPU_RETURN(status);
}

cusolverStatus_t CUSOLVERAPI cusolverGetProperty(libraryPropertyType type, int *value)
{
    static const int values[] = {
        [MAJOR_VERSION] = SOLVER_MAJOR, [MINOR_VERSION] = 0, [PATCH_LEVEL] = 0};
    SOLVER_ENTER(TESTGPU_ANYTIME, "type=%d", (int)type);
    if (value == NULL || (unsigned)type > PATCH_LEVEL)
        TESTGPU_RETURN(CUSOLVER_STATUS_INVALID_VALUE);
    *value = values[type];
    TESTGPU_RETURN(CUSOLVER_STATUS_SUCCESS);
}

cusolverStatus_t CUSOLVERAPI cusolverGetVersion(int *version)
{
    SOLVER_ENTER(TESTGPU_ANYTIME, "-");
    if (version == NULL)
        TESTGPU_RETURN(CUSOLVER_STATUS_INVALID_VALUE);
    *version = SOLVER_MAJOR * 1000;
    TESTGPU_RETURN(CUSOLVER_STATUS_SUCCESS);
}
