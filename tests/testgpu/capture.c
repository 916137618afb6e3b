/* Stream capture, as far as others can break one. What is captured is counted and never runs. */
#include "driver.h"

struct CUgraph_st {
    struct testgpu_object object;
    size_t nodes;
};

struct testgpu_pool graphs = {.name = "graphs", .size = sizeof(struct CUgraph_st)};

static size_t capturing;
static _Thread_local CUstreamCaptureMode thread_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;

/* With the lock, as everything here but the entries. */
bool capture_active(const struct CUstream_st *stream)
{
    return stream->capture != CU_STREAM_CAPTURE_STATUS_NONE;
}

void capture_spoil(CUstream stream)
{
    stream->capture = CU_STREAM_CAPTURE_STATUS_INVALIDATED;
}

void capture_dropped(CUstream stream)
{
    stream->captured++;
}

void capture_abandon(CUstream stream)
{
    if (capture_active(stream))
        capturing--;
    stream->capture = CU_STREAM_CAPTURE_STATUS_NONE;
}

/* The rules of cuThreadExchangeStreamCaptureMode. */
static bool forbids(const struct CUstream_st *stream)
{
    bool own = pthread_equal(stream->capture_thread, pthread_self());
    if (own)
        return stream->capture_mode != CU_STREAM_CAPTURE_MODE_RELAXED;
    return thread_mode == CU_STREAM_CAPTURE_MODE_GLOBAL &&
           stream->capture_mode == CU_STREAM_CAPTURE_MODE_GLOBAL;
}

bool capture_forbids(void)
{
    bool forbidden = false;
    if (capturing == 0 || thread_mode == CU_STREAM_CAPTURE_MODE_RELAXED)
        return false;
    for (size_t i = 0; i < streams.used; i++) {
        CUstream stream = testgpu_object_at(&streams, i);
        if (capture_active(stream) && forbids(stream)) {
            capture_spoil(stream);
            forbidden = true;
        }
    }
    return forbidden;
}

/* The next blocking stream of the context, from *at on, that is being captured: work on the legacy
 * stream would be ordered with it. */
static CUstream captured_blocking(CUcontext context, size_t *at)
{
    while (capturing > 0 && *at < streams.used) {
        CUstream stream = testgpu_object_at(&streams, (*at)++);
        if (stream->object.context == context && capture_active(stream) &&
            !(stream->flags & CU_STREAM_NON_BLOCKING))
            return stream;
    }
    return NULL;
}

bool capture_spoil_blocking(CUcontext context)
{
    bool spoiled = false;
    CUstream stream;
    size_t at = 0;
    while ((stream = captured_blocking(context, &at)) != NULL) {
        testgpu_fault("legacy_in_capture", "stream=%p is being captured", (void *)stream);
        capture_spoil(stream);
        spoiled = true;
    }
    return spoiled;
}

CUresult CUDAAPI cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode)
{
    DRIVER_ENTER(0, "mode=%d", mode != NULL ? (int)*mode : -1);
    if (mode == NULL || (unsigned)*mode > CU_STREAM_CAPTURE_MODE_RELAXED)
        TESTGPU_RETURN(CUDA_ERROR_INVALID_VALUE);
    CUstreamCaptureMode before = thread_mode;
    thread_mode = *mode;
    *mode = before;
    TESTGPU_RETURN(CUDA_SUCCESS);
}

CUresult CUDAAPI cuStreamBeginCapture(CUstream handle, CUstreamCaptureMode mode)
{
    DRIVER_ENTER(TESTGPU_CONTEXT, "stream=%p mode=%d", (void *)handle, (int)mode);
    if ((unsigned)mode > CU_STREAM_CAPTURE_MODE_RELAXED)
        TESTGPU_RETURN(CUDA_ERROR_INVALID_VALUE);
    testgpu_lock();
    CUresult code;
    CUstream stream = stream_of(handle, &code);
    if (stream != NULL && stream->legacy) {
        code = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    } else if (stream != NULL && capture_active(stream)) {
        code = CUDA_ERROR_ILLEGAL_STATE;
    } else if (stream != NULL) {
        stream->capture = CU_STREAM_CAPTURE_STATUS_ACTIVE;
        stream->capture_mode = mode;
        stream->capture_thread = pthread_self();
        stream->captured = 0;
        capturing++;
    }
    testgpu_unlock();
    TESTGPU_RETURN(code);
}

static CUresult end_capture(CUstream stream, CUgraph *graph)
{
    *graph = NULL;
    if (!capture_active(stream))
        return CUDA_ERROR_ILLEGAL_STATE;
    if (stream->capture_mode != CU_STREAM_CAPTURE_MODE_RELAXED &&
        !pthread_equal(stream->capture_thread, pthread_self()))
        return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
    bool spoiled = stream->capture == CU_STREAM_CAPTURE_STATUS_INVALIDATED;
    capture_abandon(stream);
    if (spoiled)
        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    *graph = testgpu_object_new(&graphs, stream->object.context);
    if (*graph == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    (*graph)->nodes = stream->captured;
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuStreamEndCapture(CUstream handle, CUgraph *graph)
{
    DRIVER_ENTER(TESTGPU_CONTEXT, "stream=%p", (void *)handle);
    if (graph == NULL)
        TESTGPU_RETURN(CUDA_ERROR_INVALID_VALUE);
    testgpu_lock();
    CUresult code;
    CUstream stream = stream_of(handle, &code);
    if (stream != NULL)
        code = end_capture(stream, graph);
    testgpu_unlock();
    TESTGPU_RETURN(code);
}

CUresult CUDAAPI cuStreamIsCapturing(CUstream handle, CUstreamCaptureStatus *status)
{
    DRIVER_ENTER(TESTGPU_CONTEXT, "stream=%p", (void *)handle);
    if (status == NULL)
        TESTGPU_RETURN(CUDA_ERROR_INVALID_VALUE);
    testgpu_lock();
    CUresult code;
    CUstream stream = stream_of(handle, &code);
    /* The question alone does not break the capture, as the driver's documentation has it. */
    size_t at = 0;
    if (stream != NULL && stream->legacy && captured_blocking(stream->object.context, &at))
        code = CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
    else if (stream != NULL)
        *status = stream->capture;
    testgpu_unlock();
    TESTGPU_RETURN(code);
}

CUresult CUDAAPI cuGraphDestroy(CUgraph graph)
{
    DRIVER_ENTER(0, "graph=%p", (void *)graph);
    testgpu_lock();
    CUresult code = CUDA_SUCCESS;
    if (testgpu_object_state(&graphs, graph) == TESTGPU_ALIVE) {
        graph->object.alive = false;
    } else {
        testgpu_fault("unknown_graph", "graph=%p", (void *)graph);
        code = CUDA_ERROR_INVALID_VALUE;
    }
    testgpu_unlock();
    TESTGPU_RETURN(code);
}
