#include "lent_memory.h"

#include "check.h"

void lent_memory_begin(struct lent_memory *lending, CUdevice number)
{
    pthread_mutex_init(&lending->lock, NULL);
    lending->number = number;
}

void lent_memory_end(struct lent_memory *lending)
{
    pthread_mutex_destroy(&lending->lock);
}

/* ---- The pool ---- */

static bool has_functions(void)
{
    return CUDA(cuDeviceCanAccessPeer) && CUDA(cuMemPoolCreate) && CUDA(cuMemPoolDestroy) &&
           CUDA(cuMemPoolSetAccess) && CUDA(cuMemPoolTrimTo) && CUDA(cuMemAllocFromPoolAsync) &&
           CUDA(cuMemFreeAsync) && CUDA(cuMemcpyDtoDAsync);
}

/* Calls go on without such memory: what the driver answers is no failure of the device. If that is
 * broken, the call's own functions say so. */
static enum gpu_status status_of(CUresult result)
{
    return result == CUDA_SUCCESS               ? GPU_OK
           : result == CUDA_ERROR_OUT_OF_MEMORY ? GPU_NO_MEMORY
                                                : GPU_UNSUPPORTED;
}

/* With the lock. */
static enum gpu_status make_pool(struct lent_memory *lending)
{
    const CUmemPoolProps properties = {
        .allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
        .handleTypes = CU_MEM_HANDLE_TYPE_NONE,
        .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = lending->number}};
    if (!has_functions() ||
        cuda_attribute(lending->number, CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED) <= 0)
        return GPU_UNSUPPORTED;
    if (!lending->stream) {
        CUstream stream = NULL;
        GPU_TRY(status_of(CUDA(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING)));
        lending->stream = stream;
    }
    CUmemoryPool pool = NULL;
    const enum gpu_status status = status_of(CUDA(cuMemPoolCreate)(&pool, &properties));
    if (status == GPU_OK)
        lending->pool = pool;
    return status;
}

static enum gpu_status prepare_pool(struct lent_memory *lending)
{
    enum gpu_status status = GPU_OK;
    pthread_mutex_lock(&lending->lock);
    if (lending->is_refused)
        status = GPU_UNSUPPORTED;
    else if (!lending->pool)
        status = make_pool(lending);
    lending->is_refused = status == GPU_UNSUPPORTED;
    pthread_mutex_unlock(&lending->lock);
    return status;
}

static void refuse_lending(struct lent_memory *lending)
{
    pthread_mutex_lock(&lending->lock);
    lending->is_refused = true;
    pthread_mutex_unlock(&lending->lock);
}

void lent_memory_close(struct lent_memory *lending)
{
    if (lending->pool)
        CUDA(cuMemPoolDestroy)(lending->pool);
    if (lending->stream)
        CUDA(cuStreamDestroy)(lending->stream);
    lending->pool = NULL;
    lending->stream = NULL;
}

/* ---- Its memory ---- */

enum gpu_status lent_memory_open_to(struct lent_memory *lending, CUdevice reader)
{
    const CUmemAccessDesc access = {.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = reader},
                                    .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    int can = 0;
    GPU_TRY(prepare_pool(lending));
    GPU_TRY(status_of(CUDA(cuDeviceCanAccessPeer)(&can, reader, lending->number)));
    return can ? status_of(CUDA(cuMemPoolSetAccess)(lending->pool, &access, 1)) : GPU_UNSUPPORTED;
}

enum gpu_status lent_memory_take(struct lent_memory *lending, int64_t bytes, CUdeviceptr *memory)
{
    CUdeviceptr taken = 0;
    GPU_TRY(prepare_pool(lending));
    enum gpu_status status = status_of(
        CUDA(cuMemAllocFromPoolAsync)(&taken, (size_t)bytes, lending->pool, lending->stream));
    if (status == GPU_UNSUPPORTED)
        refuse_lending(lending);
    GPU_TRY(status);
    status = GPU_CHECK_FINAL(cuStreamSynchronize, lending->stream);
    if (status == GPU_OK)
        *memory = taken;
    else
        CUDA(cuMemFreeAsync)(taken, lending->stream);
    return status;
}

/* The driver's functions fail only with the device itself, as the next call will find. */
void lent_memory_give_back(struct lent_memory *lending, CUdeviceptr memory)
{
    CUDA(cuMemFreeAsync)(memory, lending->stream);
    CUDA(cuStreamSynchronize)(lending->stream);
    CUDA(cuMemPoolTrimTo)(lending->pool, 0);
}
