/* Plans: handles, what they are made for, and their work areas. */
#include "cufft_plan.h"

const struct testgpu_library cufft_library = {
    .not_initialised = CUFFT_SETUP_FAILED,
    .deinitialised = CUFFT_SETUP_FAILED,
    .no_context = CUFFT_SETUP_FAILED,
    .context_failed = CUFFT_EXEC_FAILED,
    .capturing = CUFFT_EXEC_FAILED,
    .unknown = CUFFT_INTERNAL_ERROR,
    .out_of_memory = CUFFT_ALLOC_FAILED,
    .life = &cufft_life,
};

static struct testgpu_pool plans = {.name = "handles", .size = sizeof(struct plan)};

/* A handle is a number, from 1: zeroed memory has none. With the lock. */
static struct plan *plan_of(cufftHandle handle)
{
    if (handle < 1 || (size_t)handle > plans.used) {
        testgpu_fault("unknown_plan", "plan=%d", handle);
        return NULL;
    }
    struct plan *plan = testgpu_object_at(&plans, (size_t)handle - 1);
    return testgpu_object_is_alive(&plans, plan, "plan") ? plan : NULL;
}

/* Threads may use different plans at once, says the documentation. */
static cufftResult take(cufftHandle handle, struct plan **taken)
{
    struct plan *plan = plan_of(handle);
    if (plan == NULL)
        return CUFFT_INVALID_PLAN;
    if (plan->object.context != testgpu_current()) {
        testgpu_fault("plan_of_another_context", "plan=%d", handle);
        return CUFFT_INVALID_DEVICE;
    }
    if (plan->users++ > 0)
        testgpu_fault("plan_in_two_threads", "plan=%d", handle);
    *taken = plan;
    return CUFFT_SUCCESS;
}

cufftResult plan_take(cufftHandle handle, struct plan **plan)
{
    testgpu_lock();
    cufftResult status = take(handle, plan);
    testgpu_unlock();
    if (status == CUFFT_SUCCESS)
        testgpu_linger();
    return status;
}

void plan_give(struct plan *plan)
{
    testgpu_lock();
    plan->users--;
    testgpu_unlock();
}

#define TAKE(HANDLE, PLAN)                                                                         \
    struct plan *PLAN = NULL;                                                                      \
    cufftResult status = plan_take(HANDLE, &(PLAN));                                               \
    if (status != CUFFT_SUCCESS)                                                                   \
    TESTGPU_RETURN(status)

cufftResult CUFFTAPI cufftCreate(cufftHandle *handle)
{
    CUFFT_ENTER(TESTGPU_CONTEXT | TESTGPU_UNSAFE | TESTGPU_ALLOCATES, "handle=%p", (void *)handle);
    if (handle == NULL)
        TESTGPU_RETURN(CUFFT_INVALID_VALUE);
    testgpu_lock();
    struct plan *new = testgpu_object_new(&plans, testgpu_current());
    const size_t number = plans.used;
    testgpu_unlock();
    if (new == NULL)
        TESTGPU_RETURN(CUFFT_ALLOC_FAILED);
    *handle = (cufftHandle)number;
    TESTGPU_RETURN(CUFFT_SUCCESS);
}

/* ---- Work areas ---- */

/* In device memory like any other: order.c sees who works there, and a plan that was not destroyed
 * leaks it. */
static cufftResult give_area(struct plan *plan)
{
    if (plan->without_area)
        return CUFFT_SUCCESS;
    if (cuMemAlloc(&plan->own_area, plan->area_bytes) != CUDA_SUCCESS)
        return CUFFT_ALLOC_FAILED;
    plan->area = plan->own_area;
    return CUFFT_SUCCESS;
}

static cufftResult free_area(struct plan *plan)
{
    const CUdeviceptr area = plan->own_area;
    if (area == 0)
        return CUFFT_SUCCESS;
    plan->own_area = plan->area = 0;
    return cuMemFree(area) == CUDA_SUCCESS ? CUFFT_SUCCESS : CUFFT_INTERNAL_ERROR;
}

/* Waits for the whole device, as freeing the plan's memory does. cufft.h says of CUFFT_PLAN_NULL
 * that it is safe here, not what is returned. */
cufftResult CUFFTAPI cufftDestroy(cufftHandle handle)
{
    CUFFT_ENTER(TESTGPU_CONTEXT | TESTGPU_UNSAFE, "plan=%d", handle);
    if (handle == CUFFT_PLAN_NULL)
        TESTGPU_RETURN(CUFFT_INVALID_PLAN);
    TAKE(handle, plan);
    if (testgpu_synchronise(plan->object.context) != CUDA_SUCCESS)
        status = CUFFT_EXEC_FAILED;
    const cufftResult freed = free_area(plan);
    testgpu_lock();
    plan->object.alive = false;
    testgpu_unlock();
    plan_give(plan);
    TESTGPU_RETURN(status != CUFFT_SUCCESS ? status : freed);
}

/* Only before the plan is made. */
cufftResult CUFFTAPI cufftSetAutoAllocation(cufftHandle handle, int on)
{
    CUFFT_ENTER(TESTGPU_CONTEXT, "plan=%d on=%d", handle, on);
    TAKE(handle, plan);
    if (plan->made)
        status = CUFFT_INVALID_PLAN;
    else
        plan->without_area = on == 0;
    plan_give(plan);
    TESTGPU_RETURN(status);
}

/* The plan's own one is given back: a transform that is still to work in it is a fault, as of any
 * memory that is freed. */
cufftResult CUFFTAPI cufftSetWorkArea(cufftHandle handle, void *area)
{
    CUFFT_ENTER(TESTGPU_CONTEXT | TESTGPU_UNSAFE, "plan=%d area=%p", handle, area);
    TAKE(handle, plan);
    if (!plan->made) {
        status = CUFFT_INVALID_PLAN;
    } else {
        status = free_area(plan);
        plan->area = (CUdeviceptr)(uintptr_t)area;
    }
    plan_give(plan);
    TESTGPU_RETURN(status);
}

cufftResult CUFFTAPI cufftSetStream(cufftHandle handle, cudaStream_t stream)
{
    CUFFT_ENTER(TESTGPU_CONTEXT, "plan=%d stream=%p", handle, (void *)stream);
    TAKE(handle, plan);
    testgpu_lock();
    if (testgpu_check_stream(stream) == CUDA_SUCCESS)
        plan->stream = stream;
    else
        status = CUFFT_INVALID_VALUE;
    testgpu_unlock();
    plan_give(plan);
    TESTGPU_RETURN(status);
}

/* ---- What a plan is made for ---- */

/* Once for each handle. */
static cufftResult make(struct plan *plan, const struct parameters *parameters, size_t *bytes)
{
    if (plan->made)
        return CUFFT_INVALID_PLAN;
    if (bytes == NULL)
        return CUFFT_INVALID_VALUE;
    cufftResult status = describe(parameters, &plan->what);
    if (status != CUFFT_SUCCESS)
        return status;
    plan->area_bytes = area_needed(&plan->what);
    status = give_area(plan);
    plan->made = status == CUFFT_SUCCESS;
    if (plan->made)
        *bytes = plan->area_bytes;
    return status;
}

#define PARAMETERS(NARROW)                                                                         \
    {                                                                                              \
        rank, n, inembed, istride, idist, onembed, ostride, odist, type, batch, NARROW             \
    }
#define ENTER_MAKE                                                                                 \
    CUFFT_ENTER(TESTGPU_CONTEXT | TESTGPU_UNSAFE | TESTGPU_ALLOCATES,                              \
                "plan=%d rank=%d type=%#x batch=%lld", handle, rank, (unsigned)type,               \
                (long long)batch)

cufftResult CUFFTAPI cufftMakePlanMany64(cufftHandle handle, int rank, long long *n,
                                         long long *inembed, long long istride, long long idist,
                                         long long *onembed, long long ostride, long long odist,
                                         cufftType type, long long batch, size_t *bytes)
{
    ENTER_MAKE;
    const struct parameters parameters = PARAMETERS(false);
    TAKE(handle, plan);
    status = make(plan, &parameters, bytes);
    plan_give(plan);
    TESTGPU_RETURN(status);
}

static const long long *widened(const int *narrow, int rank, long long *wide)
{
    for (int i = 0; narrow != NULL && i < rank && i < DIMENSIONS; i++)
        wide[i] = narrow[i];
    return narrow != NULL ? wide : NULL;
}

cufftResult CUFFTAPI cufftMakePlanMany(cufftHandle handle, int rank, int *n, int *inembed,
                                       int istride, int idist, int *onembed, int ostride, int odist,
                                       cufftType type, int batch, size_t *bytes)
{
    ENTER_MAKE;
    long long sizes[DIMENSIONS], in[DIMENSIONS], out[DIMENSIONS];
    struct parameters parameters = {rank,
                                    widened(n, rank, sizes),
                                    widened(inembed, rank, in),
                                    istride,
                                    idist,
                                    widened(onembed, rank, out),
                                    ostride,
                                    odist,
                                    type,
                                    batch,
                                    true};
    TAKE(handle, plan);
    status = make(plan, &parameters, bytes);
    plan_give(plan);
    TESTGPU_RETURN(status);
}

/* Makes nothing, and a plan need not be of these parameters. */
cufftResult CUFFTAPI cufftGetSizeMany64(cufftHandle handle, int rank, long long *n,
                                        long long *inembed, long long istride, long long idist,
                                        long long *onembed, long long ostride, long long odist,
                                        cufftType type, long long batch, size_t *bytes)
{
    CUFFT_ENTER(TESTGPU_CONTEXT, "plan=%d rank=%d type=%#x batch=%lld", handle, rank,
                (unsigned)type, batch);
    const struct parameters parameters = PARAMETERS(false);
    struct description what;
    if (bytes == NULL)
        TESTGPU_RETURN(CUFFT_INVALID_VALUE);
    TAKE(handle, plan);
    status = describe(&parameters, &what);
    if (status == CUFFT_SUCCESS)
        *bytes = area_needed(&what);
    plan_give(plan);
    TESTGPU_RETURN(status);
}

cufftResult CUFFTAPI cufftGetSize(cufftHandle handle, size_t *bytes)
{
    CUFFT_ENTER(TESTGPU_CONTEXT, "plan=%d", handle);
    if (bytes == NULL)
        TESTGPU_RETURN(CUFFT_INVALID_VALUE);
    TAKE(handle, plan);
    if (plan->made)
        *bytes = plan->area_bytes;
    else
        status = CUFFT_INVALID_PLAN;
    plan_give(plan);
    TESTGPU_RETURN(status);
}
