#include "gpu/device/own.h"

#include "cublas_call.h"

/* own_image.S */
extern const char own_image[];
extern const uint64_t own_image_bytes;

bool gpu_own_is_built(void)
{
    return own_image_bytes > 0;
}

static bool is_usable(void)
{
    return gpu_own_is_built() && CUDA(cuModuleLoadData) && CUDA(cuModuleUnload) &&
           CUDA(cuModuleGetFunction) && CUDA(cuLaunchKernel) && CUDA(cuLaunchCooperativeKernel) &&
           CUDA(cuFuncGetAttribute) && CUDA(cuOccupancyMaxActiveBlocksPerMultiprocessor);
}

static bool is_here(const struct gpu_work *work)
{
    return is_usable() && atomic_load(&work->ctx->device->own.state) != OWN_MISSING;
}

void own_begin(struct cuda_device *device)
{
    pthread_mutex_init(&device->own.lock, NULL);
}

void own_end(struct cuda_device *device)
{
    struct gpu_scope scope;
    if (device->own.module && gpu_enter(device, &scope) == GPU_OK) {
        CUDA(cuModuleUnload)(device->own.module);
        gpu_leave(&scope);
    }
    pthread_mutex_destroy(&device->own.lock);
}

/* Unless the context itself is broken, as run.c finds out, a failure here is one of the routine
 * that wanted the kernel. */
static enum gpu_status check_result(CUresult result, const char *function)
{
    const char *name = NULL;
    if (result == CUDA_SUCCESS)
        return GPU_OK;
    if (result == CUDA_ERROR_OUT_OF_MEMORY)
        return GPU_NO_MEMORY;
    CUDA(cuGetErrorName)(result, &name);
    failure_note(FAILURE_LIBRARY, function, name);
    return GPU_ERROR;
}

#define CHECK(function, ...) check_result(cuda_api.function##_p(__VA_ARGS__), #function)

/* The image has no code that this device and this driver can run. */
static bool is_unfit(CUresult result)
{
    return result == CUDA_ERROR_NO_BINARY_FOR_GPU || result == CUDA_ERROR_INVALID_IMAGE ||
           result == CUDA_ERROR_INVALID_PTX || result == CUDA_ERROR_UNSUPPORTED_PTX_VERSION ||
           result == CUDA_ERROR_JIT_COMPILER_NOT_FOUND ||
           result == CUDA_ERROR_JIT_COMPILATION_DISABLED;
}

static enum gpu_status load_module(struct gpu_work *work, struct own_module *own)
{
    CUresult result = CUDA(cuModuleLoadData)(&own->module, own_image);
    if (result == CUDA_ERROR_OUT_OF_MEMORY && cublas_make_room(work))
        result = CUDA(cuModuleLoadData)(&own->module, own_image);
    if (result != CUDA_SUCCESS)
        own->module = NULL;
    enum gpu_status status =
        is_unfit(result) ? GPU_UNSUPPORTED : check_result(result, "cuModuleLoadData");
    if (status != GPU_NO_MEMORY)
        atomic_store(&own->state, status == GPU_OK ? OWN_LOADED : OWN_MISSING);
    return status;
}

static enum gpu_status find_kernel(struct gpu_work *work, const char *kernel, CUfunction *function)
{
    struct own_module *own = &work->ctx->device->own;
    enum gpu_status status = GPU_OK;
    if (!is_usable())
        return GPU_UNSUPPORTED;
    if (atomic_load(&own->state) == OWN_UNTRIED) {
        work->ctx->made = true;
        pthread_mutex_lock(&own->lock);
        if (atomic_load(&own->state) == OWN_UNTRIED)
            status = load_module(work, own);
        pthread_mutex_unlock(&own->lock);
    }
    if (status == GPU_OK && atomic_load(&own->state) == OWN_MISSING)
        status = GPU_UNSUPPORTED;
    return status == GPU_OK ? CHECK(cuModuleGetFunction, function, own->module, kernel) : status;
}

static enum gpu_status fit_kernel(struct gpu_work *work, const char *kernel, unsigned threads,
                                  unsigned shared_bytes, struct gpu_fit *fit)
{
    CUfunction function;
    int most = 0, blocks = 0;
    const CUdevice number = work->ctx->device->number;
    enum gpu_status status = find_kernel(work, kernel, &function);
    if (status == GPU_OK)
        status =
            CHECK(cuFuncGetAttribute, &most, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, function);
    while (status == GPU_OK && threads > (unsigned)most)
        threads /= 2;
    if (status == GPU_OK)
        status = CHECK(cuOccupancyMaxActiveBlocksPerMultiprocessor, &blocks, function, (int)threads,
                       shared_bytes);
    fit->threads = threads;
    fit->processors = (unsigned)cuda_attribute(number, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
    fit->together = fit->processors * (unsigned)blocks;
    return status == GPU_OK && fit->together == 0 ? GPU_UNSUPPORTED : status;
}

static enum gpu_status launch(struct gpu_work *work, const char *kernel, struct gpu_grid grid,
                              void **arguments)
{
    CUfunction function;
    GPU_TRY(find_kernel(work, kernel, &function));
    CUstream stream = stream_ctx_stream(work->ctx);
    stream_ctx_computes(work->ctx);
    const enum gpu_status status =
        grid.together ? CHECK(cuLaunchCooperativeKernel, function, grid.blocks_x, grid.blocks_y, 1,
                              grid.threads, 1, 1, grid.shared_bytes, stream, arguments)
                      : CHECK(cuLaunchKernel, function, grid.blocks_x, grid.blocks_y, 1,
                              grid.threads, 1, 1, grid.shared_bytes, stream, arguments, NULL);
    timing_end(work->ctx, stream, GPU_STEP_COMPUTE);
    if (status == GPU_OK)
        work->launched = true;
    return status;
}

const struct gpu_own_kernels cuda_own = {.is_here = is_here, .fit = fit_kernel, .launch = launch};
