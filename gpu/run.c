#include "run.h"

#include <stdlib.h>
#include <string.h>

/* One entry a family: all that a new one needs to add here. */
static gpu_function *const functions[ACCEL_FAMILIES] = {
    [ACCEL_GEMM] = gpu_gemm,    [ACCEL_SYMM] = gpu_square, [ACCEL_HEMM] = gpu_square,
    [ACCEL_SYRK] = gpu_rank_k,  [ACCEL_HERK] = gpu_rank_k, [ACCEL_SYR2K] = gpu_rank_k,
    [ACCEL_HER2K] = gpu_rank_k, [ACCEL_TRMM] = gpu_square, [ACCEL_TRSM] = gpu_square,
};

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

static void give_back(struct gpu_work *work)
{
    while (work->blocks > 0)
        pool_put(work->block[--work->blocks]);
}

enum gpu_status gpu_work_get(struct gpu_work *work, int count, const int64_t *bytes,
                             CUdeviceptr *const *blocks)
{
    enum gpu_status status = GPU_OK;
    for (int i = 0; status == GPU_OK && i < count; i++) {
        bool grew;
        if (bytes[i] == 0)
            continue;
        if (work->blocks == WORK_BLOCKS)
            status = GPU_NO_MEMORY;
        else
            status = pool_get(bytes[i], blocks[i], &grew);
        if (status != GPU_OK)
            break;
        work->block[work->blocks++] = *blocks[i];
        if (grew)
            gpu_work_event(work, GPU_EVENT_ALLOCATE, NULL, 0, 0, bytes[i]);
    }
    if (status == GPU_NO_MEMORY)
        give_back(work);
    return status;
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

enum gpu_status gpu_work_upload(struct gpu_work *work, const struct accel_operand *x, int64_t row,
                                int64_t col, int64_t rows, int64_t cols, struct gpu_tile tile)
{
    int64_t size = (int64_t)accel_dtype_size(work->call->routine->dtype);
    const struct accel_complex *alpha = &work->call->scalar[ACCEL_alpha];
    if (x->access == ACCEL_READ && alpha->re == 0 && alpha->im == 0)
        return GPU_OK; /* not to be read; nor will cuBLAS */
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
    const struct lane_rectangle to = {element(x, row, col, size), rows, cols, x->ld, size};
    enum gpu_status status =
        lane_download(work->lane, &to, tile.ptr, tile.ld, done_cols, done_rows);
    if (status == GPU_OK) {
        work->host->down_bytes += rows * cols * size;
        gpu_work_event(work, GPU_EVENT_D2H, x, rows, cols, rows * cols * size);
    }
    return status;
}

#define PANEL_BYTES ((int64_t)64 << 20)

int64_t gpu_work_panel(const struct gpu_work *work, int64_t length)
{
    int64_t bytes = length * (int64_t)accel_dtype_size(work->call->routine->dtype);
    return bytes < PANEL_BYTES ? PANEL_BYTES / (bytes > 0 ? bytes : 1) : 1;
}

enum gpu_status gpu_work_write_back(struct gpu_work *work, const struct accel_operand *x,
                                    int64_t row, int64_t col, int64_t rows, int64_t cols,
                                    struct gpu_tile tile, char uplo)
{
    int64_t size = (int64_t)accel_dtype_size(work->call->routine->dtype);
    int64_t done_cols, done_rows;
    struct accel_operand whole = *x;
    whole.ptr = malloc((size_t)(rows * cols * size) + 1);
    whole.ld = rows;
    if (!whole.ptr)
        return GPU_NO_MEMORY;
    whole.place = ACCEL_HOST;
    enum gpu_status status =
        gpu_work_download(work, &whole, 0, 0, rows, cols, tile, &done_cols, &done_rows);
    for (int64_t j = 0; status == GPU_OK && j < cols; j++) {
        int64_t first = uplo == 'L' ? j : 0;
        int64_t last = uplo == 'U' ? rows - cols + j + 1 : rows;
        if (first < last)
            memcpy(element(x, row + first, col + j, size), element(&whole, first, j, size),
                   (size_t)((last - first) * size));
    }
    free(whole.ptr);
    return status;
}

bool gpu_work_host_readable(const struct gpu_work *work)
{
    for (int i = 0; i < ACCEL_MATRICES; i++) {
        enum accel_place place = work->call->operand[i].place;
        if (place != ACCEL_HOST && place != ACCEL_MANAGED)
            return false;
    }
    return true;
}

/* Gives back what a call took. What is still under way on the stream must end first; where it
 * cannot be waited for, its memory is left alone. */
static void finish(struct gpu_work *work)
{
    bool quiet = CUDA(cuStreamSynchronize)(work->lane->stream) == CUDA_SUCCESS;
    if (quiet)
        give_back(work);
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

/* ---- The CPU's way to device memory, where the GPU has refused a call ---- */

/* In the context that the memory belongs to, and in the order of its default stream, which the program may have
 * work on. */
static bool copy_packed(void *host, const struct accel_operand *x, enum accel_dtype dtype,
                        bool fetch)
{
    struct gpu_scope scope;
    int64_t size = (int64_t)accel_dtype_size(dtype);
    CUcontext owner = NULL, popped;
    CUpointer_attribute wanted = CU_POINTER_ATTRIBUTE_CONTEXT;
    void *value = &owner;
    CUdeviceptr there = (CUdeviceptr)(uintptr_t)x->ptr;
    if (x->rows == 0 || x->cols == 0)
        return true;
    if (gpu_enter(&scope) != GPU_OK)
        return false;
    if (CUDA(cuPointerGetAttributes)(1, &wanted, &value, there) != CUDA_SUCCESS || !owner)
        owner = gpu_device.context;
    bool copied = CUDA(cuCtxPushCurrent)(owner) == CUDA_SUCCESS;
    if (copied) {
        /* Column by column where they are not adjacent: a 2-D copy has a largest pitch. */
        bool adjacent = x->ld == x->rows;
        size_t bytes = (size_t)(x->rows * (adjacent ? x->cols : 1) * size);
        for (int64_t j = 0; copied && j < (adjacent ? 1 : x->cols); j++) {
            char *at = (char *)host + j * x->rows * size;
            CUdeviceptr from = there + (CUdeviceptr)(j * x->ld * size);
            copied = (fetch ? CUDA(cuMemcpyDtoH)(at, from, bytes)
                            : CUDA(cuMemcpyHtoD)(from, at, bytes)) == CUDA_SUCCESS;
        }
        CUDA(cuCtxPopCurrent)(&popped);
    }
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
