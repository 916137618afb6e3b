/* Contexts, the stack of them that each thread has, and the devices' primary contexts. */
#include "driver.h"

enum { STACK_MAX = 64 };

struct testgpu_pool contexts = {.name = "contexts", .size = sizeof(struct CUctx_st)};

static _Thread_local CUcontext stack[STACK_MAX];
static _Thread_local int depth;

CUcontext testgpu_current(void)
{
    return depth > 0 ? stack[depth - 1] : NULL;
}

bool context_is(CUcontext context, enum testgpu_state state)
{
    return testgpu_object_state(&contexts, context) == state;
}

/* With the lock. The first error stays. */
void context_fail(CUcontext context, CUresult code)
{
    if (context->error == CUDA_SUCCESS)
        context->error = code;
    progress_made();
}

/* With the lock, which is let go while what runs ends. */
CUresult context_error(CUcontext context)
{
    while (context->error != CUDA_SUCCESS && context->running > 0 && !driver.exiting)
        progress_await();
    return context->error;
}

/* Why there can be no context on a device (CUDA driver API, cuDevicePrimaryCtxRetain,
 * CUDA_ERROR_DEVICE_UNAVAILABLE). */
static CUresult refused(int device)
{
    switch (card_of(device)->mode) {
    case MODE_TAKEN:
        return CUDA_ERROR_DEVICE_UNAVAILABLE;
    case MODE_PROHIBITED:
        return CUDA_ERROR_UNKNOWN;
    case MODE_FAILING:
        return CUDA_ERROR_ECC_UNCORRECTABLE;
    case MODE_FULL:
        return CUDA_ERROR_OUT_OF_MEMORY;
    default:
        return CUDA_SUCCESS;
    }
}

/* With the lock. */
CUresult context_new(CUcontext *context, int device, unsigned flags)
{
    CUresult code = refused(device);
    if (code != CUDA_SUCCESS)
        return code;
    CUcontext new = testgpu_object_new(&contexts, NULL);
    if (new == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    new->device = device;
    new->flags = flags;
    new->legacy = stream_new(new, 0, 0, true);
    if (new->legacy == NULL) {
        new->object.alive = false;
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *context = new;
    return CUDA_SUCCESS;
}

/* With the lock, which is let go while work ends. */
void context_end(CUcontext context)
{
    bool busy = false;
    for (size_t i = 0; i < streams.used; i++) {
        CUstream stream = testgpu_object_at(&streams, i);
        if (stream->object.context == context && !stream_idle(stream))
            busy = true;
    }
    if (busy && context->error == CUDA_SUCCESS)
        testgpu_fault("work_on_destroyed_context", "work was still queued in the context");
    streams_await(context);
    for (size_t i = 0; i < streams.used; i++) {
        CUstream stream = testgpu_object_at(&streams, i);
        if (stream->object.context == context && stream->object.alive)
            stream_end(stream);
    }
    events_end_of_context(context);
    for (size_t i = 0; i < graphs.used; i++) {
        struct testgpu_object *graph = testgpu_object_at(&graphs, i);
        if (graph->context == context)
            graph->alive = false;
    }
    memory_end_of_context(context);
    mempools_end_of_context(context);
    devices[context->device].used -= context->taken;
    context->taken = 0;
    context->object.alive = false;
}

/* With the lock. */
bool testgpu_take_memory(CUcontext context, size_t bytes)
{
    struct device *device = &devices[context->device];
    if (bytes > card_of(context->device)->memory - device->used)
        return false;
    device->used += bytes;
    context->taken += bytes;
    return true;
}

/* With the lock. */
void testgpu_return_memory(CUcontext context, size_t bytes)
{
    if (!context->object.alive)
        return; /* went with the context */
    devices[context->device].used -= bytes;
    context->taken -= bytes;
}

static CUresult push(CUcontext context)
{
    if (depth == STACK_MAX)
        return CUDA_ERROR_OUT_OF_MEMORY;
    stack[depth++] = context;
    return CUDA_SUCCESS;
}

/* With the lock. */
static CUresult check_handle(CUcontext context)
{
    switch (testgpu_object_state(&contexts, context)) {
    case TESTGPU_ALIVE:
        return CUDA_SUCCESS;
    case TESTGPU_ENDED:
        testgpu_fault("destroyed_context", "context=%p", (void *)context);
        return CUDA_ERROR_CONTEXT_IS_DESTROYED;
    default:
        testgpu_fault("unknown_context", "context=%p", (void *)context);
        return CUDA_ERROR_INVALID_CONTEXT;
    }
}

/* With the lock, which is let go meanwhile. */
static CUresult start(void)
{
    speed_await_file();
    return speed_start(&driver.has_started, 9) ? CUDA_SUCCESS : CUDA_ERROR_DEINITIALIZED;
}

static CUresult create(CUcontext *context, unsigned flags, CUdevice device)
{
    if (context == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    if (!device_is(device))
        return CUDA_ERROR_INVALID_DEVICE;
    testgpu_lock();
    CUresult code = start();
    if (code == CUDA_SUCCESS)
        code = context_new(context, device, flags);
    if (code == CUDA_SUCCESS)
        code = push(*context);
    testgpu_unlock();
    return code;
}

CUresult CUDAAPI cuCtxCreate_v2(CUcontext *context, unsigned int flags, CUdevice device);
CUresult CUDAAPI cuCtxCreate_v2(CUcontext *context, unsigned int flags, CUdevice device)
{
    DRIVER_ENTER(TESTGPU_UNSAFE, "flags=%u device=%d", flags, device);
    TESTGPU_RETURN(create(context, flags, device));
}

CUresult CUDAAPI cuCtxCreate(CUcontext *context, CUctxCreateParams *parameters, unsigned int flags,
                             CUdevice device)
{
    DRIVER_ENTER(TESTGPU_UNSAFE, "parameters=%p flags=%u device=%d", (void *)parameters, flags,
                 device);
    TESTGPU_RETURN(create(context, flags, device));
}

CUresult CUDAAPI cuCtxDestroy(CUcontext context)
{
    DRIVER_ENTER(TESTGPU_UNSAFE, "context=%p", (void *)context);
    testgpu_lock();
    CUresult code = check_handle(context);
    if (code == CUDA_SUCCESS && context->primary) {
        testgpu_fault("primary_context_destroyed", "a primary context is released, not destroyed");
        code = CUDA_ERROR_INVALID_CONTEXT;
    }
    if (code == CUDA_SUCCESS) {
        context_end(context);
        if (testgpu_current() == context)
            depth--;
    }
    testgpu_unlock();
    TESTGPU_RETURN(code);
}

CUresult CUDAAPI cuCtxPushCurrent(CUcontext context)
{
    DRIVER_ENTER(0, "context=%p", (void *)context);
    testgpu_lock();
    CUresult code = check_handle(context);
    if (code == CUDA_SUCCESS)
        code = push(context);
    testgpu_unlock();
    TESTGPU_RETURN(code);
}

CUresult CUDAAPI cuCtxPopCurrent(CUcontext *context)
{
    DRIVER_ENTER(0, "context=%p", (void *)context);
    if (depth == 0) {
        testgpu_fault("no_context", "the thread's stack of contexts is empty");
        TESTGPU_RETURN(CUDA_ERROR_INVALID_CONTEXT);
    }
    depth--;
    if (context != NULL)
        *context = stack[depth];
    TESTGPU_RETURN(CUDA_SUCCESS);
}

CUresult CUDAAPI cuCtxGetCurrent(CUcontext *context)
{
    DRIVER_ENTER(0, "context=%p", (void *)context);
    if (context == NULL)
        TESTGPU_RETURN(CUDA_ERROR_INVALID_VALUE);
    *context = testgpu_current();
    TESTGPU_RETURN(CUDA_SUCCESS);
}

CUresult CUDAAPI cuCtxSetCurrent(CUcontext context)
{
    DRIVER_ENTER(0, "context=%p", (void *)context);
    if (context == NULL) {
        if (depth > 0)
            depth--;
        TESTGPU_RETURN(CUDA_SUCCESS);
    }
    testgpu_lock();
    CUresult code = check_handle(context);
    testgpu_unlock();
    if (code == CUDA_SUCCESS) {
        if (depth > 0)
            stack[depth - 1] = context;
        else
            code = push(context);
    }
    TESTGPU_RETURN(code);
}

CUresult CUDAAPI cuCtxGetDevice(CUdevice *device)
{
    DRIVER_ENTER(TESTGPU_CONTEXT, "device=%p", (void *)device);
    if (device == NULL)
        TESTGPU_RETURN(CUDA_ERROR_INVALID_VALUE);
    *device = testgpu_current()->device;
    TESTGPU_RETURN(CUDA_SUCCESS);
}

CUresult testgpu_synchronise(CUcontext context)
{
    testgpu_lock();
    streams_await(context);
    CUresult code = driver.exiting ? CUDA_ERROR_DEINITIALIZED : context_error(context);
    testgpu_unlock();
    return code;
}

CUresult CUDAAPI cuCtxSynchronize(void)
{
    DRIVER_ENTER(TESTGPU_CONTEXT | TESTGPU_UNSAFE, "-");
    TESTGPU_RETURN(testgpu_synchronise(testgpu_current()));
}

CUresult CUDAAPI cuCtxGetStreamPriorityRange(int *least, int *greatest)
{
    DRIVER_ENTER(TESTGPU_CONTEXT, "least=%p greatest=%p", (void *)least, (void *)greatest);
    if (least != NULL)
        *least = 0;
    if (greatest != NULL)
        *greatest = -5;
    TESTGPU_RETURN(CUDA_SUCCESS);
}

CUresult CUDAAPI cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice number)
{
    DRIVER_ENTER(TESTGPU_UNSAFE, "context=%p device=%d", (void *)context, number);
    if (context == NULL)
        TESTGPU_RETURN(CUDA_ERROR_INVALID_VALUE);
    if (!device_is(number))
        TESTGPU_RETURN(CUDA_ERROR_INVALID_DEVICE);
    struct device *device = &devices[number];
    testgpu_lock();
    CUresult code = start();
    if (code == CUDA_SUCCESS && device->primary_uses == 0) {
        code = context_new(&device->primary, number, device->primary_flags);
        if (code == CUDA_SUCCESS)
            device->primary->primary = true;
    }
    if (code == CUDA_SUCCESS) {
        device->primary_uses++;
        *context = device->primary;
    }
    testgpu_unlock();
    TESTGPU_RETURN(code);
}

CUresult CUDAAPI cuDevicePrimaryCtxRelease(CUdevice number)
{
    DRIVER_ENTER(TESTGPU_UNSAFE, "device=%d", number);
    if (!device_is(number))
        TESTGPU_RETURN(CUDA_ERROR_INVALID_DEVICE);
    struct device *device = &devices[number];
    CUresult code = CUDA_SUCCESS;
    testgpu_lock();
    if (device->primary_uses == 0) {
        testgpu_fault("primary_context_over_released", "device=%d", number);
        code = CUDA_ERROR_INVALID_CONTEXT;
    } else if (--device->primary_uses == 0) {
        context_end(device->primary);
        device->primary = NULL;
    }
    testgpu_unlock();
    TESTGPU_RETURN(code);
}

CUresult CUDAAPI cuDevicePrimaryCtxSetFlags(CUdevice number, unsigned int flags)
{
    DRIVER_ENTER(0, "device=%d flags=%u", number, flags);
    if (!device_is(number))
        TESTGPU_RETURN(CUDA_ERROR_INVALID_DEVICE);
    testgpu_lock();
    devices[number].primary_flags = flags;
    testgpu_unlock();
    TESTGPU_RETURN(CUDA_SUCCESS);
}

CUresult CUDAAPI cuDevicePrimaryCtxGetState(CUdevice number, unsigned int *flags, int *active)
{
    DRIVER_ENTER(0, "device=%d", number);
    if (flags == NULL || active == NULL)
        TESTGPU_RETURN(CUDA_ERROR_INVALID_VALUE);
    if (!device_is(number))
        TESTGPU_RETURN(CUDA_ERROR_INVALID_DEVICE);
    testgpu_lock();
    *flags = devices[number].primary_flags;
    *active = devices[number].primary_uses > 0;
    testgpu_unlock();
    TESTGPU_RETURN(CUDA_SUCCESS);
}
