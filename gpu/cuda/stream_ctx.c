#include "stream_ctx.h"

#include "device.h"

#include <stdio.h>
#include <string.h>

void stream_ctxs_begin(struct cuda_device *device)
{
    pthread_mutex_init(&device->ctxs.lock, NULL);
    pthread_cond_init(&device->ctxs.released, NULL);
}

void stream_ctxs_end(struct cuda_device *device)
{
    pthread_cond_destroy(&device->ctxs.released);
    pthread_mutex_destroy(&device->ctxs.lock);
}

/* ---- Life ---- */

static void destroy_stream(CUstream stream)
{
    if (stream)
        CUDA(cuStreamDestroy)(stream);
}

static void destroy(struct stream_ctx *ctx)
{
    if (ctx->params)
        CUDA(cusolverDnDestroyParams)(ctx->params);
    if (ctx->cusolver)
        CUDA(cusolverDnDestroy)(ctx->cusolver);
    if (ctx->cublas)
        CUDA(cublasDestroy_v2)(ctx->cublas);
    pinned_ring_free(&ctx->narrow);
    pinned_ring_free(&ctx->wide);
    ctx->shared.memory = NULL; /* a packer's */
    pinned_ring_free(&ctx->shared);
    timing_destroy(&ctx->timing);
    if (ctx->workspace)
        CUDA(cuMemFree)(ctx->workspace);
    if (ctx->joined)
        CUDA(cuEventDestroy)(ctx->joined);
    for (int i = 0; i < CTX_STREAMS * CTX_STEPS; i++)
        if (ctx->step[i / CTX_STEPS][i % CTX_STEPS])
            CUDA(cuEventDestroy)(ctx->step[i / CTX_STEPS][i % CTX_STEPS]);
    destroy_stream(ctx->up);
    destroy_stream(ctx->down);
    destroy_stream(ctx->beside);
    destroy_stream(ctx->stream);
    memset(ctx, 0, sizeof *ctx);
}

/* Notes that cuBLAS does not start, with its version and the driver's: with an unfit driver it
 * answers NOT_INITIALIZED, which says nothing. */
static enum gpu_status cublas_is_broken(cublasStatus_t result)
{
    char answer[GPU_FAILURE_BYTES], library[GPU_FAILURE_BYTES - 80];
    cuda_api_describe_cublas(library, sizeof library);
    snprintf(answer, sizeof answer, "%s (%s)",
             CUDA(cublasGetStatusName) ? CUDA(cublasGetStatusName)(result) : "cuBLAS failed",
             library);
    failure_note(FAILURE_DEVICE, "cublasCreate", answer);
    return GPU_ERROR;
}

/* cuBLAS answers NOT_INITIALIZED if its own allocations fail, too. If it does not start with memory
 * to spare, the device is of no use. */
static enum gpu_status create_cublas(struct stream_ctx *ctx)
{
    cublasStatus_t result = CUDA(cublasCreate_v2)(&ctx->cublas);
    if (result != CUBLAS_STATUS_SUCCESS) {
        pool_trim(ctx->device);
        result = CUDA(cublasCreate_v2)(&ctx->cublas);
    }
    if (result == CUBLAS_STATUS_SUCCESS)
        return GPU_OK;
    ctx->cublas = NULL;
    if (result == CUBLAS_STATUS_ALLOC_FAILED || gpu_memory_is_short())
        return GPU_NO_MEMORY;
    return cublas_is_broken(result);
}

/* cuSOLVER answers INTERNAL_ERROR or NOT_INITIALIZED if its own allocations fail. */
static enum gpu_status create_cusolver(struct stream_ctx *ctx)
{
    cusolverStatus_t result = CUDA(cusolverDnCreate)(&ctx->cusolver);
    if (result != CUSOLVER_STATUS_SUCCESS) {
        stream_ctx_free_idle(ctx->device);
        pool_trim(ctx->device);
        result = CUDA(cusolverDnCreate)(&ctx->cusolver);
    }
    if (result == CUSOLVER_STATUS_SUCCESS)
        return GPU_OK;
    ctx->cusolver = NULL;
    if (result == CUSOLVER_STATUS_ALLOC_FAILED || gpu_memory_is_short())
        return GPU_NO_MEMORY;
    return gpu_check_cusolver(result, "cusolverDnCreate");
}

enum gpu_status stream_ctx_use_solver(struct stream_ctx *ctx)
{
    atomic_bool *broken = &ctx->device->ctxs.cusolver_is_broken;
    if (ctx->params)
        return GPU_OK;
    ctx->made = true;
    if (atomic_load(broken) || !cuda_api_open_cusolver())
        return GPU_UNSUPPORTED;
    enum gpu_status status = ctx->cusolver ? GPU_OK : create_cusolver(ctx);
    if (status == GPU_OK)
        status = GPU_CHECK_CUSOLVER(cusolverDnSetStream, ctx->cusolver, ctx->stream);
    if (status == GPU_OK)
        status = GPU_CHECK_CUSOLVER(cusolverDnCreateParams, &ctx->params);
    if (status != GPU_OK)
        ctx->params = NULL;
    if (status == GPU_ERROR)
        failure_is_of(FAILURE_SOLVER);
    if (status == GPU_ERROR || status == GPU_UNSUPPORTED)
        atomic_store(broken, true);
    return status;
}

static enum gpu_status create(struct cuda_device *device, struct stream_ctx *ctx)
{
    enum gpu_status status;
    *ctx = (struct stream_ctx){.device = device, .made = true};
    if ((status = GPU_CHECK(cuStreamCreate, &ctx->stream, CU_STREAM_NON_BLOCKING)) != GPU_OK ||
        (status = GPU_CHECK(cuEventCreate, &ctx->joined, CU_EVENT_DISABLE_TIMING)) != GPU_OK ||
        (status = create_cublas(ctx)) != GPU_OK ||
        (status = GPU_CHECK_CUBLAS(cublasSetStream_v2, ctx->cublas, ctx->stream)) != GPU_OK)
        destroy(ctx);
    return status;
}

/* Returns the first stream context in a state, or -1. */
static int find_ctx(const struct stream_ctxs *ctxs, enum stream_ctx_state wanted)
{
    for (int i = 0; i < STREAM_CTXS_MAX; i++)
        if (ctxs->state[i] == wanted)
            return i;
    return -1;
}

/* With the lock, which it releases meanwhile: a handle takes long to make, and other threads may
 * acquire or release stream contexts. */
static enum gpu_status create_unlocked(struct cuda_device *device, int at)
{
    struct stream_ctxs *ctxs = &device->ctxs;
    ctxs->state[at] = CTX_CHANGING;
    pthread_mutex_unlock(&ctxs->lock);
    enum gpu_status status = create(device, &ctxs->ctx[at]);
    pthread_mutex_lock(&ctxs->lock);
    ctxs->state[at] = status == GPU_OK ? CTX_IDLE : CTX_NONE;
    return status;
}

/* Returns whether a stream context is free, or will be: one that is in use, or being made. */
static bool another_will_be_free(const struct stream_ctxs *ctxs)
{
    return find_ctx(ctxs, CTX_IDLE) >= 0 || find_ctx(ctxs, CTX_USED) >= 0 ||
           find_ctx(ctxs, CTX_CHANGING) >= 0;
}

/* Returns whether the driver still answers. After a kernel's fault no stream context works any
 * more, and a thread that has one may be busy with the original for long. */
static bool context_answers(void)
{
    size_t free_bytes, total;
    return CUDA(cuMemGetInfo)(&free_bytes, &total) == CUDA_SUCCESS;
}

enum gpu_status stream_ctx_acquire(struct cuda_device *device, bool waits, struct stream_ctx **ctx)
{
    struct stream_ctxs *ctxs = &device->ctxs;
    enum gpu_status status = GPU_OK;
    struct failure outer;
    pthread_mutex_lock(&ctxs->lock);
    int at;
    for (;;) {
        if ((at = find_ctx(ctxs, CTX_IDLE)) >= 0)
            break;
        at = find_ctx(ctxs, CTX_NONE);
        if (at >= 0) {
            failure_begin(&outer);
            status = create_unlocked(device, at);
            if (status == GPU_OK || !another_will_be_free(ctxs) ||
                (status == GPU_ERROR && !context_answers())) {
                failure_pass_on(&outer, &device->common);
                break;
            }
            /* That no further stream context can be made, for want of memory or of anything else,
             * is no failure of the device: other stream contexts work. */
            failure_end(&outer);
            status = GPU_OK;
            if (find_ctx(ctxs, CTX_IDLE) >= 0)
                continue;
        }
        if (!waits) {
            status = GPU_BUSY;
            break;
        }
        pthread_cond_wait(&ctxs->released, &ctxs->lock);
    }
    if (status == GPU_OK) {
        ctxs->state[at] = CTX_USED;
        *ctx = &ctxs->ctx[at];
    } else {
        pthread_cond_broadcast(&ctxs->released); /* so that waiting threads find that out, too */
    }
    pthread_mutex_unlock(&ctxs->lock);
    return status;
}

void stream_ctx_release(struct stream_ctx *ctx, bool broken)
{
    struct stream_ctxs *ctxs = &ctx->device->ctxs;
    const int at = (int)(ctx - ctxs->ctx);
    const bool ends = broken || ctx->astray;
    if (broken) {
        /* Calls on a failed device only fail again, and copies under way may still use the
         * buffers. */
        memset(ctx, 0, sizeof *ctx);
    } else if (ends) {
        destroy(ctx);
    }
    pthread_mutex_lock(&ctxs->lock);
    ctxs->state[at] = ends ? CTX_NONE : CTX_IDLE;
    pthread_cond_signal(&ctxs->released);
    pthread_mutex_unlock(&ctxs->lock);
}

int64_t stream_ctx_least_chunk(const struct stream_ctx *ctx)
{
    return gpu_chunk(&ctx->device->common);
}

void stream_ctx_free_idle(struct cuda_device *device)
{
    struct stream_ctxs *ctxs = &device->ctxs;
    int at;
    pthread_mutex_lock(&ctxs->lock);
    while ((at = find_ctx(ctxs, CTX_IDLE)) >= 0) {
        ctxs->state[at] = CTX_CHANGING;
        pthread_mutex_unlock(&ctxs->lock);
        destroy(&ctxs->ctx[at]);
        pthread_mutex_lock(&ctxs->lock);
        ctxs->state[at] = CTX_NONE;
    }
    pthread_cond_broadcast(&ctxs->released);
    pthread_mutex_unlock(&ctxs->lock);
}

/* ---- The stream ---- */

enum gpu_status stream_ctx_wait(struct stream_ctx *ctx)
{
    if (ctx->quiet && !ctx->aside)
        return GPU_OK;
    timing_wait(ctx);
    GPU_TRY(GPU_CHECK_FINAL(cuStreamSynchronize, ctx->stream));
    if (ctx->aside) {
        GPU_TRY(GPU_CHECK_FINAL(cuStreamSynchronize, ctx->up));
        GPU_TRY(GPU_CHECK_FINAL(cuStreamSynchronize, ctx->down));
        if (ctx->beside)
            GPU_TRY(GPU_CHECK_FINAL(cuStreamSynchronize, ctx->beside));
    }
    ctx->quiet = true;
    ctx->aside = false;
    ctx->unmarked = 0;
    ctx->copied = ctx->copies;
    return GPU_OK;
}

/* Waits, as streams that take no notice of this one may write there next. */
static enum gpu_status clear(struct stream_ctx *ctx, CUdeviceptr memory, int64_t bytes)
{
    GPU_TRY(GPU_CHECK(cuMemsetD8Async, memory, 0, (size_t)bytes, stream_ctx_stream(ctx)));
    return stream_ctx_wait(ctx);
}

enum gpu_status stream_ctx_clear(struct stream_ctx *ctx, const struct pool_taken *taken,
                                 uint64_t user)
{
    if (!taken->unclean)
        return GPU_OK;
    GPU_TRY(clear(ctx, taken->block, taken->bytes));
    pool_cleared(ctx->device, taken->block, user);
    return GPU_OK;
}

enum gpu_status stream_ctx_serve(struct stream_ctx *ctx, uint64_t user)
{
    if (ctx->user != user && ctx->workspace)
        GPU_TRY(clear(ctx, ctx->workspace, ctx->workspace_bytes));
    ctx->user = user;
    return GPU_OK;
}

static void change_streams(struct stream_ctx *ctx)
{
    const CUstream other = ctx->beside;
    ctx->beside = ctx->stream;
    ctx->stream = other;
    ctx->is_beside = !ctx->is_beside;
}

/* What NVIDIA recommends for Hopper, and for what is older (cuBLAS, cublasSetWorkspace()); on a
 * device with little memory, a small part of that, but no less than cuBLAS needs. */
static int64_t workspace_bytes(const struct cuda_device *device)
{
    enum { LEAST = 16 << 10, PART = 256 };
    const int major = cuda_attribute(device->number, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
    const int64_t recommended = (int64_t)(major >= 9 ? 32 : 4) << 20;
    return accel_min(recommended, accel_max(LEAST, device->budget / PART / LEAST * LEAST));
}

enum gpu_status stream_ctx_prepare_beside(struct stream_ctx *ctx)
{
    if (!CUDA(cublasSetWorkspace_v2))
        return GPU_UNSUPPORTED;
    if (!ctx->workspace) {
        ctx->workspace_bytes = workspace_bytes(ctx->device);
        GPU_TRY(GPU_CHECK(cuMemAlloc, &ctx->workspace, (size_t)ctx->workspace_bytes));
        ctx->made = true;
    }
    return ctx->beside ? GPU_OK : GPU_CHECK(cuStreamCreate, &ctx->beside, CU_STREAM_NON_BLOCKING);
}

enum gpu_status stream_ctx_go_beside(struct stream_ctx *ctx)
{
    if (ctx->is_beside)
        return GPU_OK;
    change_streams(ctx);
    GPU_TRY(GPU_CHECK_CUBLAS(cublasSetStream_v2, ctx->cublas, ctx->stream));
    return GPU_CHECK_CUBLAS(cublasSetWorkspace_v2, ctx->cublas, (void *)(uintptr_t)ctx->workspace,
                            (size_t)ctx->workspace_bytes);
}

/* Setting the stream takes the workspace back (cuBLAS, cublasSetStream()). */
enum gpu_status stream_ctx_go_back(struct stream_ctx *ctx)
{
    if (!ctx->is_beside)
        return GPU_OK;
    change_streams(ctx);
    const enum gpu_status status = GPU_CHECK_CUBLAS(cublasSetStream_v2, ctx->cublas, ctx->stream);
    ctx->astray = status != GPU_OK;
    return status;
}

/* While another stream captures, nothing can be put on the default stream, and an attempt would
 * break the capture; this question does not (CUDA driver API, cuStreamIsCapturing). */
bool stream_ctx_default_stream_is_closed(void)
{
    CUstreamCaptureStatus capture;
    return CUDA(cuStreamIsCapturing) && CUDA(cuStreamIsCapturing)(CU_STREAM_LEGACY, &capture) ==
                                            CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
}

enum gpu_status stream_ctx_join_default_stream(struct stream_ctx *ctx)
{
    if (stream_ctx_default_stream_is_closed())
        return GPU_OK;
    GPU_TRY(GPU_CHECK(cuEventRecord, ctx->joined, CU_STREAM_LEGACY));
    return GPU_CHECK(cuStreamWaitEvent, stream_ctx_stream(ctx), ctx->joined, 0);
}

const struct gpu_copies cuda_copies = {.wait = stream_ctx_wait,
                                       .use_solver = stream_ctx_use_solver,
                                       .upload = stream_ctx_upload,
                                       .download = stream_ctx_download,
                                       .download_whole = stream_ctx_download_whole,
                                       .copy = stream_ctx_copy,
                                       .pipeline = stream_ctx_pipeline};
