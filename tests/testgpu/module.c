/* Modules and launches: the kernels are those of gpu/own/, compiled into this library, whatever
 * image is loaded. */
#include <stdlib.h>
#include <string.h>
#include "kernel_run.h"

enum {
    FATBIN = 0xba55ed50,    /* an image's first 4 bytes */
    SHARED_MOST = 48 << 10, /* bytes of a block, unless the function is told otherwise */
    BLOCKS_TOGETHER = 1,    /* on a multiprocessor */
    BLOCKS_Y_MOST = 65535
};

struct CUfunc_st {
    const struct testgpu_kernel *kernel;
    CUmodule module;
};

struct CUmod_st {
    struct testgpu_object object;
    struct CUfunc_st *function; /* of each kernel; never freed, so that stale ones are told */
};

static struct testgpu_pool modules = {.name = "modules", .size = sizeof(struct CUmod_st)};

static size_t kernel_count(void)
{
    return (size_t)(__stop_own_kernels - __start_own_kernels);
}

static CUresult load(CUmodule *module, const void *image)
{
    if (!settings.data) /* a training whose data do not move would not end */
        return CUDA_ERROR_NO_BINARY_FOR_GPU;
    uint32_t magic;
    if (module == NULL || image == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    memcpy(&magic, image, sizeof magic);
    if (magic != FATBIN)
        return CUDA_ERROR_INVALID_IMAGE;
    struct CUfunc_st *function = calloc(kernel_count() + 1, sizeof *function);
    testgpu_lock();
    CUmodule new = function != NULL ? testgpu_object_new(&modules, testgpu_current()) : NULL;
    testgpu_unlock();
    if (new == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    for (size_t i = 0; i < kernel_count(); i++)
        function[i] = (struct CUfunc_st){&__start_own_kernels[i], new};
    new->function = function;
    *module = new;
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuModuleLoadData(CUmodule *module, const void *image)
{
    DRIVER_ENTER(TESTGPU_CONTEXT | TESTGPU_UNSAFE | TESTGPU_ALLOCATES, "image=%p", image);
    TESTGPU_RETURN(load(module, image));
}

/* With the lock. */
static CUresult check_module(CUmodule module)
{
    if (!testgpu_object_is_alive(&modules, module, "module"))
        return CUDA_ERROR_INVALID_HANDLE;
    if (module->object.context == testgpu_current())
        return CUDA_SUCCESS;
    testgpu_fault("module_of_another_context", "module=%p", (void *)module);
    return CUDA_ERROR_INVALID_HANDLE;
}

CUresult CUDAAPI cuModuleUnload(CUmodule module)
{
    DRIVER_ENTER(TESTGPU_CONTEXT | TESTGPU_UNSAFE, "module=%p", (void *)module);
    testgpu_lock();
    CUresult code = check_module(module);
    if (code == CUDA_SUCCESS) {
        streams_await(testgpu_current());
        module->object.alive = false;
    }
    testgpu_unlock();
    TESTGPU_RETURN(code);
}

static CUresult find(CUfunction *function, CUmodule module, const char *name)
{
    if (function == NULL || name == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    testgpu_lock();
    CUresult code = check_module(module);
    testgpu_unlock();
    if (code != CUDA_SUCCESS)
        return code;
    for (size_t i = 0; i < kernel_count(); i++)
        if (strcmp(__start_own_kernels[i].name, name) == 0) {
            *function = &module->function[i];
            return CUDA_SUCCESS;
        }
    return CUDA_ERROR_NOT_FOUND;
}

CUresult CUDAAPI cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name)
{
    DRIVER_ENTER(TESTGPU_CONTEXT, "module=%p name=%s", (void *)module, name != NULL ? name : "-");
    TESTGPU_RETURN(find(function, module, name));
}

static CUresult check_function(CUfunction function)
{
    if (function == NULL)
        return CUDA_ERROR_INVALID_HANDLE;
    testgpu_lock();
    CUresult code = check_module(function->module);
    testgpu_unlock();
    return code;
}

static unsigned most_threads(CUfunction function)
{
    const unsigned own = function->kernel->threads;
    return own < settings.threads ? own : settings.threads;
}

CUresult CUDAAPI cuFuncGetAttribute(int *value, CUfunction_attribute which, CUfunction function)
{
    DRIVER_ENTER(TESTGPU_CONTEXT, "attribute=%d function=%p", (int)which, (void *)function);
    CUresult code = check_function(function);
    if (value == NULL)
        code = CUDA_ERROR_INVALID_VALUE;
    else if (which != CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK)
        code = CUDA_ERROR_NOT_SUPPORTED;
    if (code == CUDA_SUCCESS)
        *value = (int)most_threads(function);
    TESTGPU_RETURN(code);
}

static bool block_fits(CUfunction function, unsigned threads, size_t shared_bytes)
{
    return threads > 0 && threads <= most_threads(function) && shared_bytes <= SHARED_MOST;
}

CUresult CUDAAPI cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, CUfunction function,
                                                             int threads, size_t shared_bytes)
{
    DRIVER_ENTER(TESTGPU_CONTEXT, "function=%p threads=%d shared_bytes=%zu", (void *)function,
                 threads, shared_bytes);
    CUresult code = check_function(function);
    if (blocks == NULL || threads <= 0)
        code = CUDA_ERROR_INVALID_VALUE;
    if (code == CUDA_SUCCESS)
        *blocks = block_fits(function, (unsigned)threads, shared_bytes) ? BLOCKS_TOGETHER : 0;
    TESTGPU_RETURN(code);
}

/* ---- Launches ---- */

struct grid {
    unsigned x, y, z, threads, threads_y, threads_z, shared_bytes;
    bool together;
};

static CUresult check_grid(CUfunction function, const struct grid *grid)
{
    if (grid->x == 0 || grid->x > INT32_MAX || grid->y == 0 || grid->y > BLOCKS_Y_MOST ||
        !block_fits(function, grid->threads, grid->shared_bytes))
        return CUDA_ERROR_INVALID_VALUE;
    if (grid->z != 1 || grid->threads_y != 1 || grid->threads_z != 1) {
        testgpu_fault("grid", "the test GPU has two dimensions of blocks, one of threads");
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    const int processors =
        device_attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, testgpu_current()->device);
    return grid->together && (uint64_t)grid->x * grid->y > (uint64_t)processors * BLOCKS_TOGETHER
               ? CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE
               : CUDA_SUCCESS;
}

static CUresult launch(CUfunction function, const struct grid *grid, CUstream stream,
                       void **arguments)
{
    CUresult code = check_function(function);
    if (code == CUDA_SUCCESS)
        code = check_grid(function, grid);
    if (code != CUDA_SUCCESS)
        return code;
    const struct testgpu_kernel *kernel = function->kernel;
    size_t bytes = sizeof(struct launch);
    for (size_t i = 0; i < kernel->count; i++)
        bytes += (kernel->bytes[i] + 15) / 16 * 16;
    struct launch *launch = calloc(1, bytes);
    if (launch == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *launch = (struct launch){.kernel = kernel,
                              .blocks_x = grid->x,
                              .blocks_y = grid->y,
                              .threads = grid->threads,
                              .shared_bytes = grid->shared_bytes,
                              .together = grid->together};
    char *at = launch->arguments;
    for (size_t i = 0; i < kernel->count; i++) {
        memcpy(at, arguments[i], kernel->bytes[i]);
        at += (kernel->bytes[i] + 15) / 16 * 16;
    }
    code = testgpu_enqueue(stream, kernel->name, &(struct testgpu_cost){.bytes = 1}, kernel_run,
                           launch, bytes);
    free(launch);
    return code;
}

CUresult CUDAAPI cuLaunchKernel(CUfunction function, unsigned int x, unsigned int y, unsigned int z,
                                unsigned int threads_x, unsigned int threads_y,
                                unsigned int threads_z, unsigned int shared_bytes, CUstream stream,
                                void **arguments, void **extra)
{
    DRIVER_ENTER(TESTGPU_CONTEXT, "function=%p grid=%ux%u threads=%u stream=%p", (void *)function,
                 x, y, threads_x, (void *)stream);
    const struct grid grid = {x, y, z, threads_x, threads_y, threads_z, shared_bytes, false};
    TESTGPU_RETURN(extra != NULL ? CUDA_ERROR_NOT_SUPPORTED
                                 : launch(function, &grid, stream, arguments));
}

CUresult CUDAAPI cuLaunchCooperativeKernel(CUfunction function, unsigned int x, unsigned int y,
                                           unsigned int z, unsigned int threads_x,
                                           unsigned int threads_y, unsigned int threads_z,
                                           unsigned int shared_bytes, CUstream stream,
                                           void **arguments)
{
    DRIVER_ENTER(TESTGPU_CONTEXT, "function=%p grid=%ux%u threads=%u stream=%p", (void *)function,
                 x, y, threads_x, (void *)stream);
    const struct grid grid = {x, y, z, threads_x, threads_y, threads_z, shared_bytes, true};
    TESTGPU_RETURN(launch(function, &grid, stream, arguments));
}
