/* Streams: each has a thread that runs its operations in order, and late. */
#include <fenv.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include "driver.h"

struct testgpu_pool streams = {.name = "streams", .size = sizeof(struct CUstream_st)};

struct operation *operation_new(const char *name, testgpu_run_function *run, const void *argument,
                                size_t bytes)
{
    struct operation *operation = calloc(1, sizeof *operation);
    if (operation == NULL)
        return NULL;
    operation->name = name;
    operation->run = run;
    operation->references = 1;
    if (bytes > 0) {
        operation->argument = malloc(bytes);
        if (operation->argument == NULL) {
            free(operation);
            return NULL;
        }
        memcpy(operation->argument, argument, bytes);
    }
    return operation;
}

/* With the lock. */
void operation_release(struct operation *operation)
{
    if (operation == NULL || --operation->references > 0)
        return;
    for (size_t i = 0; i < operation->awaited_count; i++)
        operation_release(operation->awaited[i]);
    free(operation->awaited);
    free(operation->argument);
    free(operation);
}

/* With the lock. */
void operation_await(struct operation *operation, struct operation *awaited)
{
    if (awaited == NULL)
        return;
    order_join(operation->clock, awaited->clock);
    if (awaited->finished)
        return;
    struct operation **grown =
        realloc(operation->awaited, (operation->awaited_count + 1) * sizeof *operation->awaited);
    if (grown == NULL)
        abort();
    operation->awaited = grown;
    operation->awaited[operation->awaited_count++] = awaited;
    awaited->references++;
}

/* With the lock, as is everything below that does not say otherwise. */
static bool ready(const struct operation *operation)
{
    for (size_t i = 0; i < operation->awaited_count; i++)
        if (!operation->awaited[i]->finished)
            return false;
    return true;
}

static void finish(CUstream stream, struct operation *operation)
{
    clock_gettime(CLOCK_MONOTONIC, &operation->finished_at);
    operation->finished = true;
    stream->first = operation->next;
    if (stream->first == NULL)
        stream->last = NULL;
    /* Long chains of finished operations would otherwise keep each other. */
    for (size_t i = 0; i < operation->awaited_count; i++)
        operation_release(operation->awaited[i]);
    operation->awaited_count = 0;
    operation_release(operation);
    progress_made();
}

static void execute(CUstream stream, struct operation *operation, int64_t start)
{
    CUcontext context = stream->object.context;
    struct testgpu_run run = {.context = context, .operation = operation};
    CUresult code = CUDA_SUCCESS;
    if (operation->counted && injection_for_operation(&code)) {
        context_fail(context, code);
        return;
    }
    if (operation->run == NULL)
        return;
    if (operation->kernel && driver.no_kernels)
        return;
    if (operation->kernel)
        report_kernel(operation->name);
    driver.kernels += operation->kernel;
    context->running += operation->counted;
    testgpu_unlock();
    set_where(operation->name);
    if (settings.trace != NULL)
        trace_line("run %s stream=%p", operation->name, (void *)stream);
    code = operation->run(&run, operation->argument);
    testgpu_lock();
    driver.kernels -= operation->kernel;
    if (run.moved > 0)
        speed_of_kernel(context->device, operation, &(struct testgpu_cost){.bytes = run.moved});
    speed_end(stream, operation, start);
    context->running -= operation->counted;
    for (size_t i = 0; i < run.pins; i++)
        run.pinned[i]->pins--;
    free(run.pinned);
    if (code != CUDA_SUCCESS)
        context_fail(context, code);
}

/* Work for one stream is no news for the threads of the others, of which a program may have many:
 * they sleep on. */
static void work_await(CUstream stream)
{
    if (speed_is_set())
        progress_await();
    else
        pthread_cond_wait(&stream->arrived, &driver.lock);
}

static void work_arrived(CUstream stream)
{
    if (speed_is_set())
        progress_made();
    else
        pthread_cond_signal(&stream->arrived);
}

void streams_wake(void)
{
    for (size_t i = 0; i < streams.used; i++)
        pthread_cond_signal(&((CUstream)testgpu_object_at(&streams, i))->arrived);
}

void streams_forked(void)
{
    for (size_t i = 0; i < streams.used; i++)
        pthread_cond_init(&((CUstream)testgpu_object_at(&streams, i))->arrived, NULL);
}

static void *work(void *argument)
{
    CUstream stream = argument;
    fesetenv(FE_DFL_ENV); /* as a device computes, whatever the thread does that has begun this */
    prctl(PR_SET_NAME, "cuda-stream"); /* else it has that of the thread that has made the stream */
    if (speed_is_set())
        prctl(PR_SET_TIMERSLACK, 1ul); /* else it sleeps 50 microseconds longer */
    testgpu_lock();
    while (!driver.exiting) {
        struct operation *operation = stream->first;
        if (operation == NULL) {
            if (!stream->object.alive)
                break;
            work_await(stream);
            continue;
        }
        if (!ready(operation)) {
            progress_await();
            continue;
        }
        if (operation->counted) {
            testgpu_unlock();
            random_pause(&stream->random, settings.delay_us);
            testgpu_lock();
        }
        int64_t start = speed_begin(stream, operation);
        if (driver.exiting)
            break;
        if (stream->object.context->error == CUDA_SUCCESS)
            execute(stream, operation, start);
        finish(stream, operation);
    }
    stream->working = false;
    testgpu_unlock();
    return NULL;
}

/* The program's signals are not for this thread. */
static bool start_working(CUstream stream)
{
    sigset_t all, before;
    pthread_attr_t attributes;
    pthread_t thread;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    stream->working = pthread_create(&thread, &attributes, work, stream) == 0;
    pthread_attr_destroy(&attributes);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return stream->working;
}

/* The legacy stream and the blocking streams of its context wait for each other. */
static void await_legacy(CUstream stream, struct operation *operation)
{
    CUcontext context = stream->object.context;
    if (!stream->legacy) {
        if (!(stream->flags & CU_STREAM_NON_BLOCKING))
            operation_await(operation, context->legacy->latest);
        return;
    }
    for (size_t i = 0; i < streams.used; i++) {
        CUstream other = testgpu_object_at(&streams, i);
        if (other->object.context == context && other != stream &&
            !(other->flags & CU_STREAM_NON_BLOCKING))
            operation_await(operation, other->latest);
    }
}

CUresult stream_put(CUstream stream, struct operation *operation, struct operation **kept)
{
    CUresult code = CUDA_SUCCESS;
    if (kept != NULL)
        *kept = NULL;
    if (stream->legacy && capture_spoil_blocking(stream->object.context))
        code = CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
    else if (stream->object.context->error != CUDA_SUCCESS)
        code = context_error(stream->object.context);
    else if (!stream->working && !start_working(stream))
        code = CUDA_ERROR_OUT_OF_MEMORY;
    if (code != CUDA_SUCCESS) {
        operation_release(operation);
        return code;
    }
    await_legacy(stream, operation);
    order_put(stream, operation);
    if (stream->last != NULL)
        stream->last->next = operation;
    else
        stream->first = operation;
    stream->last = operation;
    operation_release(stream->latest);
    stream->latest = operation;
    stream->settled = false;
    operation->references++;
    if (kept != NULL) {
        *kept = operation;
        operation->references++;
    }
    work_arrived(stream);
    return CUDA_SUCCESS;
}

CUresult operation_wait(struct operation *operation, CUcontext context)
{
    while (operation != NULL && !operation->finished && !driver.exiting)
        progress_await();
    order_host_waited(operation);
    mempools_release();
    wake_up_late();
    return driver.exiting ? CUDA_ERROR_DEINITIALIZED : context_error(context);
}

static void await_latest(CUstream stream)
{
    struct operation *latest = stream->latest;
    stream->settled = true;
    if (latest == NULL)
        return;
    latest->references++;
    operation_wait(latest, stream->object.context);
    operation_release(latest);
}

void streams_await(CUcontext context)
{
    for (size_t i = 0; i < streams.used; i++) {
        CUstream stream = testgpu_object_at(&streams, i);
        if (stream->object.context == context)
            await_latest(stream);
    }
}

static bool uses_host(const struct operation *operation, uintptr_t address, uintptr_t end)
{
    for (int side = 0; side < 2; side++)
        if (operation->host[side] < end && address < operation->host_end[side])
            return true;
    return false;
}

bool streams_use_host(uintptr_t address, uintptr_t end)
{
    for (size_t i = 0; i < streams.used; i++)
        for (struct operation *o = ((CUstream)testgpu_object_at(&streams, i))->first; o != NULL;
             o = o->next)
            if (uses_host(o, address, end))
                return true;
    return false;
}

/* Waits for the queued copies that use a host range; whether there were any. */
bool streams_await_host(uintptr_t address, uintptr_t end)
{
    bool used = false;
    for (size_t i = 0; i < streams.used; i++) {
        CUstream stream = testgpu_object_at(&streams, i);
        struct operation *operation = stream->first;
        while (operation != NULL) {
            if (!uses_host(operation, address, end)) {
                operation = operation->next;
                continue;
            }
            used = true;
            operation->references++;
            operation_wait(operation, stream->object.context);
            operation_release(operation);
            if (driver.exiting)
                return used;
            operation = stream->first;
        }
    }
    return used;
}

bool stream_idle(const struct CUstream_st *stream)
{
    return stream->first == NULL;
}

size_t streams_pending(void)
{
    size_t pending = 0;
    for (size_t i = 0; i < streams.used; i++)
        for (struct operation *o = ((CUstream)testgpu_object_at(&streams, i))->first; o != NULL;
             o = o->next)
            pending++;
    return pending;
}

CUstream stream_new(CUcontext context, unsigned flags, int priority, bool legacy)
{
    CUstream stream = testgpu_object_new(&streams, context);
    if (stream == NULL)
        return NULL;
    stream->flags = flags;
    stream->number = streams.used - 1;
    stream->priority = priority > 0 ? 0 : priority < -5 ? -5 : priority;
    stream->legacy = legacy;
    stream->random = settings.seed * 0x9e3779b97f4a7c15ull + streams.used;
    if (stream->random == 0)
        stream->random = 1;
    return stream;
}

/* Its thread ends once its work is done. */
void stream_end(CUstream stream)
{
    capture_abandon(stream);
    stream->object.alive = false;
    work_arrived(stream);
}

static CUresult check_alive(CUstream stream)
{
    return testgpu_object_is_alive(&streams, stream, "stream") ? CUDA_SUCCESS
                                                               : CUDA_ERROR_INVALID_HANDLE;
}

/* For calls that ask about a stream: one of another context will do. */
static CUstream any_stream(CUstream handle, CUresult *code)
{
    *code = CUDA_SUCCESS;
    if (handle == NULL || handle == CU_STREAM_LEGACY)
        return testgpu_current()->legacy;
    if (handle == CU_STREAM_PER_THREAD) {
        testgpu_fault("per_thread_stream", "the test GPU has no per-thread streams");
        *code = CUDA_ERROR_NOT_SUPPORTED;
        return NULL;
    }
    *code = check_alive(handle);
    return *code == CUDA_SUCCESS ? handle : NULL;
}

CUstream stream_of(CUstream handle, CUresult *code)
{
    CUstream stream = any_stream(handle, code);
    if (stream != NULL && stream->object.context != testgpu_current()) {
        testgpu_fault("stream_of_another_context", "stream=%p", (void *)handle);
        *code = CUDA_ERROR_INVALID_HANDLE;
        return NULL;
    }
    return stream;
}

CUresult testgpu_check_stream(CUstream handle)
{
    CUresult code;
    stream_of(handle, &code);
    return code;
}

/* Takes the lock. */
CUresult testgpu_enqueue(CUstream handle, const char *kernel, const struct testgpu_cost *cost,
                         testgpu_run_function *function, const void *argument, size_t bytes)
{
    entry_load_kernels();
    struct operation *operation = operation_new(kernel, function, argument, bytes);
    if (operation == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    operation->counted = operation->kernel = true;
    speed_of_kernel(testgpu_current()->device, operation, cost);
    testgpu_lock();
    CUresult code;
    CUstream stream = stream_of(handle, &code);
    if (stream == NULL) {
        operation_release(operation);
    } else if (capture_active(stream)) {
        capture_dropped(stream);
        operation_release(operation);
    } else {
        code = stream_put(stream, operation, NULL);
    }
    testgpu_unlock();
    return code;
}

bool testgpu_is_settled(CUstream handle)
{
    testgpu_lock();
    CUresult code;
    CUstream stream = stream_of(handle, &code);
    const bool settled = stream == NULL || stream->latest == NULL || stream->settled;
    testgpu_unlock();
    return settled;
}

CUresult testgpu_await(CUstream handle)
{
    testgpu_lock();
    CUresult code;
    CUstream stream = stream_of(handle, &code);
    if (stream != NULL) {
        await_latest(stream);
        code = driver.exiting ? CUDA_ERROR_DEINITIALIZED : context_error(stream->object.context);
    }
    testgpu_unlock();
    return code;
}

static CUresult create(CUstream *stream, unsigned flags, int priority)
{
    if (stream == NULL || (flags != CU_STREAM_DEFAULT && flags != CU_STREAM_NON_BLOCKING))
        return CUDA_ERROR_INVALID_VALUE;
    testgpu_lock();
    CUstream new = stream_new(testgpu_current(), flags, priority, false);
    testgpu_unlock();
    if (new == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *stream = new;
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuStreamCreate(CUstream *stream, unsigned int flags)
{
    DRIVER_ENTER(TESTGPU_CONTEXT, "flags=%u", flags);
    TESTGPU_RETURN(create(stream, flags, 0));
}

CUresult CUDAAPI cuStreamCreateWithPriority(CUstream *stream, unsigned int flags, int priority)
{
    DRIVER_ENTER(TESTGPU_CONTEXT, "flags=%u priority=%d", flags, priority);
    TESTGPU_RETURN(create(stream, flags, priority));
}

CUresult CUDAAPI cuStreamDestroy(CUstream stream)
{
    DRIVER_ENTER(TESTGPU_CONTEXT, "stream=%p", (void *)stream);
    testgpu_lock();
    CUresult code = CUDA_ERROR_INVALID_HANDLE;
    if (stream == NULL || stream == CU_STREAM_LEGACY || stream == CU_STREAM_PER_THREAD)
        testgpu_fault("unknown_stream", "a default stream cannot be destroyed");
    else
        code = check_alive(stream);
    if (code == CUDA_SUCCESS) {
        if (!stream_idle(stream))
            testgpu_fault("work_on_destroyed_stream", "stream=%p: work was still queued",
                          (void *)stream);
        stream_end(stream);
    }
    testgpu_unlock();
    TESTGPU_RETURN(code);
}

CUresult CUDAAPI cuStreamSynchronize(CUstream handle)
{
    DRIVER_ENTER(TESTGPU_CONTEXT | TESTGPU_UNSAFE, "stream=%p", (void *)handle);
    testgpu_lock();
    CUresult code;
    CUstream stream = any_stream(handle, &code);
    if (stream != NULL && capture_active(stream)) {
        testgpu_fault("unsafe_in_capture", "the stream is being captured");
        capture_spoil(stream);
        code = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    } else if (stream != NULL) {
        await_latest(stream);
        code = driver.exiting ? CUDA_ERROR_DEINITIALIZED : context_error(stream->object.context);
    }
    testgpu_unlock();
    TESTGPU_RETURN(code);
}

CUresult CUDAAPI cuStreamQuery(CUstream handle)
{
    DRIVER_ENTER(TESTGPU_CONTEXT | TESTGPU_UNSAFE, "stream=%p", (void *)handle);
    testgpu_lock();
    CUresult code;
    CUstream stream = any_stream(handle, &code);
    if (stream != NULL && capture_active(stream)) {
        testgpu_fault("unsafe_in_capture", "the stream is being captured");
        capture_spoil(stream);
        code = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    } else if (stream != NULL) {
        code = context_error(stream->object.context);
        if (code == CUDA_SUCCESS && !stream_idle(stream))
            code = CUDA_ERROR_NOT_READY;
        if (code == CUDA_SUCCESS)
            order_host_waited(stream->latest);
    }
    testgpu_unlock();
    TESTGPU_RETURN(code);
}

CUresult CUDAAPI cuStreamGetCtx(CUstream handle, CUcontext *context)
{
    DRIVER_ENTER(TESTGPU_CONTEXT, "stream=%p", (void *)handle);
    if (context == NULL)
        TESTGPU_RETURN(CUDA_ERROR_INVALID_VALUE);
    testgpu_lock();
    CUresult code;
    CUstream stream = any_stream(handle, &code);
    if (stream != NULL)
        *context = stream->object.context;
    testgpu_unlock();
    TESTGPU_RETURN(code);
}

struct host_function {
    CUhostFn function;
    void *data;
};

static CUresult call_host(struct testgpu_run *run, void *argument)
{
    struct host_function *host = argument;
    (void)run;
    host->function(host->data);
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuLaunchHostFunc(CUstream handle, CUhostFn function, void *data)
{
    DRIVER_ENTER(TESTGPU_CONTEXT, "stream=%p", (void *)handle);
    struct host_function host = {.function = function, .data = data};
    struct operation *operation = operation_new("host_function", call_host, &host, sizeof host);
    if (operation == NULL)
        TESTGPU_RETURN(CUDA_ERROR_OUT_OF_MEMORY);
    testgpu_lock();
    CUresult code;
    CUstream stream = stream_of(handle, &code);
    if (stream == NULL) {
        operation_release(operation);
    } else if (capture_active(stream)) {
        capture_dropped(stream);
        operation_release(operation);
    } else {
        code = stream_put(stream, operation, NULL);
    }
    testgpu_unlock();
    TESTGPU_RETURN(code);
}
