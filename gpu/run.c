#include "run.h"

/* One entry a family: all that a new one needs to add here. */
static gpu_function *const functions[ACCEL_FAMILIES] = {[ACCEL_GEMM] = gpu_gemm};

int64_t gpu_device_ld(int64_t rows, enum accel_dtype dtype)
{
    int64_t line = 64 / (int64_t)accel_dtype_size(dtype);
    return rows < line ? rows : (rows + line - 1) / line * line;
}

void gpu_work_event(struct gpu_work *work, enum gpu_event_kind kind, const struct accel_operand *x,
                    int64_t rows, int64_t cols, int64_t bytes)
{
    const struct gpu_event event = {kind, x ? x->name : NULL, rows, cols, bytes};
    if (work->host->event)
        work->host->event(work->host->context, &event);
}

enum gpu_status gpu_work_get(struct gpu_work *work, int64_t bytes, CUdeviceptr *block)
{
    bool grew;
    if (work->blocks == WORK_BLOCKS)
        return GPU_NO_MEMORY;
    enum gpu_status status = pool_get(bytes, block, &grew);
    if (status != GPU_OK)
        return status;
    work->block[work->blocks++] = *block;
    if (grew)
        gpu_work_event(work, GPU_EVENT_ALLOCATE, NULL, 0, 0, bytes);
    return GPU_OK;
}

static char *element(const struct accel_operand *x, int64_t row, int64_t col, int64_t size)
{
    return (char *)x->ptr + (col * x->ld + row) * size;
}

struct gpu_tile gpu_work_in_place(struct gpu_work *work, const struct accel_operand *x, int64_t row,
                                  int64_t col)
{
    int64_t size = (int64_t)accel_dtype_size(work->call->routine->dtype);
    return (struct gpu_tile){(CUdeviceptr)(uintptr_t)element(x, row, col, size), x->ld};
}

/* Between our device's memory and another device's, by the driver: it finds out which is which. */
static enum gpu_status copy_remote(struct gpu_work *work, const struct accel_operand *x,
                                   int64_t row, int64_t col, int64_t rows, int64_t cols,
                                   struct gpu_tile tile, bool up)
{
    int64_t size = (int64_t)accel_dtype_size(work->call->routine->dtype);
    CUdeviceptr there = (CUdeviceptr)(uintptr_t)element(x, row, col, size);
    CUDA_MEMCPY2D copy = {
        .srcMemoryType = CU_MEMORYTYPE_UNIFIED,
        .srcDevice = up ? there : tile.ptr,
        .srcPitch = (size_t)((up ? x->ld : tile.ld) * size),
        .dstMemoryType = CU_MEMORYTYPE_UNIFIED,
        .dstDevice = up ? tile.ptr : there,
        .dstPitch = (size_t)((up ? tile.ld : x->ld) * size),
        .WidthInBytes = (size_t)(rows * size),
        .Height = (size_t)cols,
    };
    return GPU_CHECK(cuMemcpy2DAsync, &copy, work->lane->stream);
}

enum gpu_status gpu_work_upload(struct gpu_work *work, const struct accel_operand *x, int64_t row,
                                int64_t col, int64_t rows, int64_t cols, struct gpu_tile tile)
{
    int64_t size = (int64_t)accel_dtype_size(work->call->routine->dtype);
    if (x->place == ACCEL_REMOTE)
        return copy_remote(work, x, row, col, rows, cols, tile, true);
    const struct lane_rectangle from = {element(x, row, col, size), rows, cols, x->ld, size};
    enum gpu_status status = lane_upload(work->lane, tile.ptr, tile.ld, &from);
    if (status == GPU_OK) {
        work->host->up_bytes += rows * cols * size;
        gpu_work_event(work, GPU_EVENT_H2D, x, rows, cols, rows * cols * size);
    }
    return status;
}

enum gpu_status gpu_work_download(struct gpu_work *work, const struct accel_operand *x, int64_t row,
                                  int64_t col, int64_t rows, int64_t cols, struct gpu_tile tile,
                                  int64_t *done_cols, int64_t *done_rows)
{
    int64_t size = (int64_t)accel_dtype_size(work->call->routine->dtype);
    *done_cols = *done_rows = 0;
    if (x->place == ACCEL_REMOTE)
        return copy_remote(work, x, row, col, rows, cols, tile, false);
    const struct lane_rectangle to = {element(x, row, col, size), rows, cols, x->ld, size};
    enum gpu_status status =
        lane_download(work->lane, &to, tile.ptr, tile.ld, done_cols, done_rows);
    if (status == GPU_OK) {
        work->host->down_bytes += rows * cols * size;
        gpu_work_event(work, GPU_EVENT_D2H, x, rows, cols, rows * cols * size);
    }
    return status;
}

/* Gives back what a call took. What is still under way on the stream must end first; where it
 * cannot be waited for, its memory is left alone. */
static void finish(struct gpu_work *work)
{
    bool quiet = CUDA(cuStreamSynchronize)(work->lane->stream) == CUDA_SUCCESS;
    for (int i = 0; quiet && i < work->blocks; i++)
        pool_put(work->block[i]);
    lane_release(work->lane, !quiet);
}

static bool any_in_place(const struct accel_call *call)
{
    for (int i = 0; i < ACCEL_MATRICES; i++)
        if (call->operand[i].place != ACCEL_HOST)
            return true;
    return false;
}

enum gpu_status gpu_run(const struct accel_call *call, struct gpu_host *host)
{
    struct gpu_work work = {.call = call, .host = host};
    struct gpu_scope scope;
    enum gpu_status status = gpu_enter(&scope);
    if (status != GPU_OK)
        return status;
    status = lane_acquire(&work.lane);
    if (status == GPU_OK) {
        if (any_in_place(call))
            status = lane_join_default_stream(work.lane);
        if (status == GPU_OK)
            status = functions[call->routine->family](&work);
        finish(&work);
    }
    gpu_leave(&scope);
    return status;
}

int64_t gpu_memory_available(void)
{
    return gpu_device.budget;
}

/* ---- The CPU's way to device memory, where the GPU has refused a call ---- */

static bool copy_packed(void *host, const struct accel_operand *x, enum accel_dtype dtype,
                        bool fetch)
{
    struct gpu_scope scope;
    int64_t size = (int64_t)accel_dtype_size(dtype);
    CUDA_MEMCPY2D copy = {.WidthInBytes = (size_t)(x->rows * size), .Height = (size_t)x->cols};
    size_t packed = copy.WidthInBytes, pitch = (size_t)(x->ld * size);
    CUdeviceptr there = (CUdeviceptr)(uintptr_t)x->ptr;
    if (x->rows == 0 || x->cols == 0)
        return true;
    if (fetch) {
        copy.srcMemoryType = CU_MEMORYTYPE_UNIFIED;
        copy.srcDevice = there;
        copy.srcPitch = pitch;
        copy.dstMemoryType = CU_MEMORYTYPE_HOST;
        copy.dstHost = host;
        copy.dstPitch = packed;
    } else {
        copy.srcMemoryType = CU_MEMORYTYPE_HOST;
        copy.srcHost = host;
        copy.srcPitch = packed;
        copy.dstMemoryType = CU_MEMORYTYPE_UNIFIED;
        copy.dstDevice = there;
        copy.dstPitch = pitch;
    }
    if (gpu_enter(&scope) != GPU_OK)
        return false;
    bool copied = CUDA(cuMemcpy2DAsync)(&copy, CU_STREAM_LEGACY) == CUDA_SUCCESS &&
                  CUDA(cuStreamSynchronize)(CU_STREAM_LEGACY) == CUDA_SUCCESS;
    gpu_leave(&scope);
    return copied;
}

bool gpu_fetch(void *host, const struct accel_operand *x, enum accel_dtype dtype)
{
    return copy_packed(host, x, dtype, true);
}

bool gpu_store(const struct accel_operand *x, const void *host, enum accel_dtype dtype)
{
    return copy_packed((void *)(uintptr_t)host, x, dtype, false);
}
