#include "device.h"
#include "migrate.h"
#include "precision.h"
#include "gpu/exec/lapack/solver_shared.h"
#include "call/operation.h"
#include "call/shape.h"

#include <string.h>

static enum gpu_status take_by(struct gpu_work *work, const struct pool_wish *wish,
                               gpu_address *memory)
{
    struct pool_taken taken;
    if (work->blocks == WORK_BLOCKS)
        return GPU_UNSUPPORTED;
    GPU_TRY(pool_take(work->ctx->device, wish, &taken));
    work->block[work->blocks++] = *memory = taken.block;
    if (taken.grew)
        gpu_work_event(work, GPU_EVENT_ALLOCATE, NULL, 0, 0, wish->bytes);
    return stream_ctx_clear(work->ctx, &taken, wish->user.id);
}

static enum gpu_status take_memory(struct gpu_work *work, int64_t bytes, gpu_address *memory)
{
    const struct pool_wish wish = {.bytes = bytes, .user = work->host->user};
    return take_by(work, &wish, memory);
}

static enum gpu_status take_lent(struct gpu_work *work, int64_t bytes, gpu_address *memory)
{
    const struct pool_wish wish = {.bytes = bytes, .user = work->host->user, .lent = true};
    return take_by(work, &wish, memory);
}

static enum gpu_status zero(struct gpu_work *work, gpu_address memory, int64_t bytes)
{
    return GPU_CHECK(cuMemsetD8Async, memory, 0, (size_t)bytes, stream_ctx_stream(work->ctx));
}

static bool find_memory(struct gpu_work *work, const struct gpu_key *key, int64_t bytes,
                        gpu_address *memory)
{
    if (work->blocks == WORK_BLOCKS ||
        !pool_find(work->ctx->device, key, work->host->user.id, bytes, memory))
        return false;
    work->block[work->blocks++] = *memory;
    return true;
}

static enum gpu_status cache_memory(struct gpu_work *work, gpu_address memory,
                                    const struct gpu_key *key)
{
    GPU_TRY(stream_ctx_wait(work->ctx));
    pool_cache(work->ctx->device, memory, key);
    return GPU_OK;
}

static void invalidate_memory(struct gpu_work *work, const struct gpu_key *key)
{
    pool_invalidate(work->ctx->device, key, work->host->user.id);
}

static int64_t available(const struct gpu_work *work)
{
    return pool_available(work->ctx->device, &work->host->user);
}

static void trim_memory(const struct gpu_work *work)
{
    pool_trim(work->ctx->device);
}

static void drop(struct gpu_work *work)
{
    while (work->blocks > 0)
        pool_put(work->ctx->device, work->block[--work->blocks]);
}

const struct gpu_memory cuda_memory = {.take = take_memory,
                                       .take_lent = take_lent,
                                       .zero = zero,
                                       .find = find_memory,
                                       .cache = cache_memory,
                                       .invalidate = invalidate_memory,
                                       .available = available,
                                       .trim = trim_memory,
                                       .drop = drop};

/* Waits for the call's work on the stream, then puts back its memory and its stream context. If the
 * wait fails, returns false and leaves the memory alone: kernels may still use it. */
static bool finish_work(struct gpu_work *work, struct call_precision *precision)
{
    struct cuda_device *device = work->ctx->device;
    /* After a failure asks the stream, even if stream_ctx_wait() takes it to be quiet. */
    if (failure_noted()->kind != FAILURE_NONE)
        work->ctx->quiet = false;
    bool quiet = stream_ctx_wait(work->ctx) == GPU_OK;
    if (quiet && work->host->steps)
        timing_report(work->ctx, work->host);
    if (quiet)
        drop(work);
    if (quiet && precision->workspace)
        pool_put(device, precision->workspace);
    stream_ctx_release(work->ctx, !quiet);
    return quiet;
}

/* Returns the final status, and says in *host what a failure makes useless. well: the stream still
 * works. Then a library that has failed may have lacked memory, which it does not always say; if
 * memory is not short, it will fail at this routine the next time, too. */
static enum gpu_status classify_failure(struct cuda_device *device, enum gpu_status status,
                                        bool well, struct gpu_host *host)
{
    const struct failure *failure = failure_noted();
    const bool failed = status == GPU_ERROR || status == GPU_FINISHED_ELSE;
    if (!failed && status != GPU_LOST)
        return status;
    if (failed && well && failure->kind != FAILURE_DEVICE && gpu_memory_is_short()) {
        pool_trim(device);
        return status == GPU_ERROR ? GPU_NO_MEMORY : GPU_SHORT_ELSE;
    }
    host->blame = !well || failure->kind == FAILURE_DEVICE || failure->kind == FAILURE_NONE
                      ? GPU_BLAME_DEVICE
                  : failure->kind == FAILURE_SOLVER ? GPU_BLAME_LAPACK
                                                    : GPU_BLAME_ROUTINE;
    if (host->blame == GPU_BLAME_DEVICE || status == GPU_LOST)
        failure_is_of(FAILURE_DEVICE);
    else
        strcpy(host->failure, failure->text);
    if (failure->text[0])
        failure_publish(&device->common, failure);
    return status;
}

/* Returns whether only the host can have written the operands: nothing on the program's streams
 * does. */
static bool only_host_writes(const struct accel_call *call)
{
    for (int i = 0; i < ACCEL_SPANS; i++)
        if (call->span[i].place != ACCEL_HOST && call->span[i].place != ACCEL_PLACED)
            return false;
    return true;
}

static enum gpu_status run_on_ctx(struct cuda_device *device, struct gpu_work *work, bool *well)
{
    const struct accel_gpu *gpu = work->call->op->gpu;
    struct call_precision precision;
    *well = false;
    GPU_TRY(stream_ctx_acquire(device, !work->host->hurries, &work->ctx));
    work->ctx->packer = work->host->packer;
    if (work->host->steps)
        timing_start(work->ctx);
    enum gpu_status status = stream_ctx_serve(work->ctx, work->host->user.id);
    if (status == GPU_OK)
        status = precision_begin(&precision, work);
    if (status == GPU_OK && !only_host_writes(work->call))
        status = stream_ctx_join_default_stream(work->ctx);
    if (status == GPU_OK && work->host->migrates)
        migrate_operands(work);
    if (status == GPU_OK)
        status = gpu->steps ? solver_run_call(work) : gpu->run(work);
    work->host->set_up = work->host->set_up || work->ctx->made;
    work->ctx->made = false;
    precision_end(&precision, work, status == GPU_OK);
    work->ctx->packer = NULL;
    *well = finish_work(work, &precision);
    if (!*well && work->host->packer)
        work->host->packer->lost = true;
    return status;
}

enum gpu_status cuda_run(struct gpu_device *device, const struct accel_call *call,
                         struct gpu_host *host)
{
    struct cuda_device *own = cuda_device_of(device);
    const struct accel_call placed = accel_placed_call(call, host->placed);
    struct gpu_work work = {.call = host->placed ? &placed : call,
                            .host = host,
                            .device = device,
                            .largest = INT64_MAX};
    struct gpu_scope scope;
    struct failure outer;
    bool well = false;
    if (!call->op->gpu)
        return GPU_UNSUPPORTED;
    failure_begin(&outer);
    enum gpu_status status = gpu_enter(own, &scope);
    bool entered = status == GPU_OK;
    if (entered)
        status = run_on_ctx(own, &work, &well);
    status = classify_failure(own, status, well, host);
    if (well)
        pool_settle(own);
    if (entered)
        gpu_leave(&scope);
    failure_end(&outer);
    return status;
}

/* ---- The CPU's access to device memory, after the GPU has refused a call ---- */

/* A copy between packed host memory and a matrix in device memory. */
struct packed_copy {
    struct cuda_device *device;
    const struct accel_span *x;
    char *host;
    bool fetch;
    CUstream stream; /* of our own, if the default stream is closed; else NULL */
};

static bool copy_bytes(const struct packed_copy *p, int64_t at, int64_t from, int64_t bytes)
{
    CUdeviceptr device = (CUdeviceptr)(uintptr_t)p->x->ptr + (CUdeviceptr)from;
    char *host = p->host + at;
    size_t n = (size_t)bytes;
    enum gpu_status status;
    if (!p->stream)
        status = p->fetch ? GPU_CHECK_FINAL(cuMemcpyDtoH, host, device, n)
                          : GPU_CHECK_FINAL(cuMemcpyHtoD, device, host, n);
    else
        status = p->fetch ? GPU_CHECK_FINAL(cuMemcpyDtoHAsync, host, device, n, p->stream)
                          : GPU_CHECK_FINAL(cuMemcpyHtoDAsync, device, host, n, p->stream);
    return status == GPU_OK;
}

/* Copies column by column if they are not adjacent: the pitch of a 2-D copy has a limit. */
static bool copy_columns(const struct packed_copy *p)
{
    const struct accel_span *x = p->x;
    int64_t size = gpu_size_of(x);
    const char triangle = p->fetch ? 0 : x->triangle;
    bool copied = true;
    if (x->ld == x->rows && !triangle)
        return copy_bytes(p, 0, 0, x->rows * x->cols * size);
    for (int64_t j = 0; copied && j < x->cols; j++) {
        int64_t first = triangle == 'L' ? j : triangle == 'l' ? j + 1 : 0;
        int64_t last = triangle == 'U'   ? accel_min(j + 1, x->rows)
                       : triangle == 'u' ? accel_min(j, x->rows)
                                         : x->rows;
        copied = first >= last || copy_bytes(p, (j * x->rows + first) * size,
                                             (j * x->ld + first) * size, (last - first) * size);
    }
    return copied;
}

/* Copies in the current context, in the order of its default stream, where the program may have
 * work; if another stream captures, at once, on a stream of our own. */
static bool copy_on_stream(struct packed_copy *p)
{
    if (!stream_ctx_default_stream_is_closed())
        return copy_columns(p);
    if (GPU_CHECK_FINAL(cuStreamCreate, &p->stream, CU_STREAM_NON_BLOCKING) != GPU_OK)
        return false;
    bool copied = copy_columns(p);
    copied = GPU_CHECK_FINAL(cuStreamSynchronize, p->stream) == GPU_OK && copied;
    CUDA(cuStreamDestroy)(p->stream);
    return copied;
}

/* Copies a matrix of a mixed batch that is in host memory. */
static void copy_on_host(const struct packed_copy *p)
{
    const struct accel_span *x = p->x;
    size_t bytes = (size_t)(x->rows * gpu_size_of(x));
    for (int64_t j = 0; j < x->cols; j++) {
        char *at = p->host + j * (int64_t)bytes, *from = gpu_element(x, 0, j);
        memcpy(p->fetch ? at : from, p->fetch ? from : at, bytes);
    }
}

/* Copies on the host, or in the context that owns the memory. */
static bool copy_packed(struct packed_copy *p)
{
    struct gpu_scope scope;
    CUcontext owner = NULL, popped;
    CUmemorytype type = (CUmemorytype)0;
    CUpointer_attribute wanted[] = {CU_POINTER_ATTRIBUTE_CONTEXT, CU_POINTER_ATTRIBUTE_MEMORY_TYPE};
    void *values[] = {&owner, &type};
    if (p->x->rows == 0 || p->x->cols == 0)
        return true;
    if (gpu_enter(p->device, &scope) != GPU_OK)
        return false;
    bool copied = GPU_CHECK_FINAL(cuPointerGetAttributes, 2, wanted, values,
                                  (CUdeviceptr)(uintptr_t)p->x->ptr) == GPU_OK;
    if (copied && type != CU_MEMORYTYPE_DEVICE) {
        copy_on_host(p);
    } else if (copied) { /* memory of a pool has no owner, and belongs to the device */
        copied = GPU_CHECK_FINAL(cuCtxPushCurrent, owner ? owner : p->device->context) == GPU_OK;
        if (copied) {
            copied = copy_on_stream(p);
            CUDA(cuCtxPopCurrent)(&popped);
        }
    }
    gpu_leave(&scope);
    return copied;
}

/* Makes a failure one of the device, if it happens outside of a call. */
static bool copy_noted(struct packed_copy *p)
{
    struct failure outer;
    failure_begin(&outer);
    bool copied = copy_packed(p);
    failure_pass_on(&outer, &p->device->common);
    return copied;
}

bool cuda_fetch(struct gpu_device *device, void *host, const struct accel_span *x)
{
    struct packed_copy p = {.device = cuda_device_of(device), .x = x, .host = host, .fetch = true};
    return copy_noted(&p);
}

bool cuda_store(struct gpu_device *device, const struct accel_span *x, const void *host)
{
    struct packed_copy p = {
        .device = cuda_device_of(device), .x = x, .host = (char *)(uintptr_t)host};
    return copy_noted(&p);
}
