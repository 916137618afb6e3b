/* Events: each stands for the operation that recorded it last. */
#include "driver.h"

struct CUevent_st {
    struct testgpu_object object;
    unsigned flags;
    struct operation *recorded;
    CUcontext recorded_in;
    bool captured; /* last recorded in a stream capture */
};

struct testgpu_pool events = {.name = "events", .size = sizeof(struct CUevent_st)};

/* With the lock, as everything here but the entries. */
static void end(CUevent event)
{
    event->object.alive = false;
    operation_release(event->recorded);
    event->recorded = NULL;
}

void events_end_of_context(CUcontext context)
{
    for (size_t i = 0; i < events.used; i++) {
        CUevent event = testgpu_object_at(&events, i);
        if (event->object.context == context && event->object.alive)
            end(event);
    }
}

static CUresult check_alive(CUevent event)
{
    return testgpu_object_is_alive(&events, event, "event") ? CUDA_SUCCESS
                                                            : CUDA_ERROR_INVALID_HANDLE;
}

/* Where the error of an event's work shows. */
static CUresult error_of(CUevent event)
{
    return event->recorded != NULL ? context_error(event->recorded_in) : CUDA_SUCCESS;
}

CUresult CUDAAPI cuEventCreate(CUevent *event, unsigned int flags)
{
    DRIVER_ENTER(TESTGPU_CONTEXT, "flags=%u", flags);
    if (event == NULL || flags > 7 ||
        ((flags & CU_EVENT_INTERPROCESS) && !(flags & CU_EVENT_DISABLE_TIMING)))
        TESTGPU_RETURN(CUDA_ERROR_INVALID_VALUE);
    testgpu_lock();
    CUevent new = testgpu_object_new(&events, testgpu_current());
    if (new != NULL)
        new->flags = flags;
    testgpu_unlock();
    if (new == NULL)
        TESTGPU_RETURN(CUDA_ERROR_OUT_OF_MEMORY);
    *event = new;
    TESTGPU_RETURN(CUDA_SUCCESS);
}

CUresult CUDAAPI cuEventDestroy(CUevent event)
{
    DRIVER_ENTER(TESTGPU_CONTEXT, "event=%p", (void *)event);
    testgpu_lock();
    CUresult code = check_alive(event);
    if (code == CUDA_SUCCESS)
        end(event);
    testgpu_unlock();
    TESTGPU_RETURN(code);
}

static CUresult record(CUevent event, CUstream stream)
{
    event->captured = capture_active(stream);
    if (event->captured) {
        capture_dropped(stream);
        return CUDA_SUCCESS;
    }
    struct operation *operation = operation_new("event", NULL, NULL, 0);
    if (operation == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    struct operation *kept;
    CUresult code = stream_put(stream, operation, &kept);
    if (code != CUDA_SUCCESS)
        return code;
    operation_release(event->recorded);
    event->recorded = kept;
    event->recorded_in = stream->object.context;
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuEventRecord(CUevent event, CUstream handle)
{
    DRIVER_ENTER(TESTGPU_CONTEXT, "event=%p stream=%p", (void *)event, (void *)handle);
    testgpu_lock();
    CUresult code = check_alive(event);
    CUstream stream = code == CUDA_SUCCESS ? stream_of(handle, &code) : NULL;
    if (stream != NULL && event->object.context != stream->object.context) {
        testgpu_fault("event_of_another_context", "event=%p", (void *)event);
        code = CUDA_ERROR_INVALID_HANDLE;
    } else if (stream != NULL) {
        code = record(event, stream);
    }
    testgpu_unlock();
    TESTGPU_RETURN(code);
}

static CUresult wait_in_stream(CUstream stream, CUevent event)
{
    if (capture_active(stream)) {
        capture_dropped(stream);
        return CUDA_SUCCESS;
    }
    if (event->captured)
        return CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
    if (event->recorded == NULL)
        return CUDA_SUCCESS;
    order_join(stream->clock, event->recorded->clock);
    if (event->recorded->finished)
        return CUDA_SUCCESS;
    struct operation *operation = operation_new("wait", NULL, NULL, 0);
    if (operation == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    operation_await(operation, event->recorded);
    return stream_put(stream, operation, NULL);
}

CUresult CUDAAPI cuStreamWaitEvent(CUstream handle, CUevent event, unsigned int flags)
{
    DRIVER_ENTER(TESTGPU_CONTEXT, "stream=%p event=%p flags=%u", (void *)handle, (void *)event,
                 flags);
    testgpu_lock();
    CUresult code = check_alive(event);
    CUstream stream = code == CUDA_SUCCESS ? stream_of(handle, &code) : NULL;
    if (stream != NULL)
        code = wait_in_stream(stream, event);
    testgpu_unlock();
    TESTGPU_RETURN(code);
}

CUresult CUDAAPI cuEventSynchronize(CUevent event)
{
    DRIVER_ENTER(TESTGPU_CONTEXT | TESTGPU_UNSAFE, "event=%p", (void *)event);
    testgpu_lock();
    CUresult code = check_alive(event);
    if (code == CUDA_SUCCESS && event->captured) {
        code = CUDA_ERROR_CAPTURED_EVENT;
    } else if (code == CUDA_SUCCESS && event->recorded != NULL) {
        struct operation *recorded = event->recorded;
        CUcontext context = event->recorded_in;
        recorded->references++;
        code = operation_wait(recorded, context);
        operation_release(recorded);
    }
    testgpu_unlock();
    TESTGPU_RETURN(code);
}

CUresult CUDAAPI cuEventQuery(CUevent event)
{
    DRIVER_ENTER(TESTGPU_CONTEXT | TESTGPU_UNSAFE, "event=%p", (void *)event);
    testgpu_lock();
    CUresult code = check_alive(event);
    if (code == CUDA_SUCCESS && event->captured)
        code = CUDA_ERROR_CAPTURED_EVENT;
    else if (code == CUDA_SUCCESS)
        code = error_of(event);
    if (code == CUDA_SUCCESS && event->recorded != NULL && !event->recorded->finished)
        code = CUDA_ERROR_NOT_READY;
    if (code == CUDA_SUCCESS)
        order_host_waited(event->recorded);
    testgpu_unlock();
    TESTGPU_RETURN(code);
}

static CUresult elapsed(float *milliseconds, CUevent start, CUevent stop)
{
    if (milliseconds == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult code = check_alive(start);
    if (code == CUDA_SUCCESS)
        code = check_alive(stop);
    if (code != CUDA_SUCCESS)
        return code;
    if (((start->flags | stop->flags) & CU_EVENT_DISABLE_TIMING) || start->recorded == NULL ||
        stop->recorded == NULL || start->object.context != stop->object.context)
        return CUDA_ERROR_INVALID_HANDLE;
    code = error_of(start) != CUDA_SUCCESS ? error_of(start) : error_of(stop);
    if (code != CUDA_SUCCESS)
        return code;
    if (!start->recorded->finished || !stop->recorded->finished)
        return CUDA_ERROR_NOT_READY;
    const struct timespec *from = &start->recorded->finished_at;
    const struct timespec *to = &stop->recorded->finished_at;
    *milliseconds = (float)((double)(to->tv_sec - from->tv_sec) * 1e3 +
                            (double)(to->tv_nsec - from->tv_nsec) * 1e-6);
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuEventElapsedTime(float *milliseconds, CUevent start, CUevent stop)
{
    DRIVER_ENTER(TESTGPU_CONTEXT, "start=%p end=%p", (void *)start, (void *)stop);
    testgpu_lock();
    CUresult code = elapsed(milliseconds, start, stop);
    testgpu_unlock();
    TESTGPU_RETURN(code);
}

/* The name without a version that CUDA 12 programs bind to. */
#undef cuEventElapsedTime
CUresult CUDAAPI cuEventElapsedTime(float *milliseconds, CUevent start, CUevent stop);
CUresult CUDAAPI cuEventElapsedTime(float *milliseconds, CUevent start, CUevent stop)
{
    DRIVER_ENTER(TESTGPU_CONTEXT, "start=%p end=%p", (void *)start, (void *)stop);
    testgpu_lock();
    CUresult code = elapsed(milliseconds, start, stop);
    testgpu_unlock();
    TESTGPU_RETURN(code);
}
