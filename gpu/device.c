#define _GNU_SOURCE
#include "device.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "lane.h"
#include "pool.h"

struct gpu_device gpu_device;

static atomic_bool started;
static atomic_bool dead; /* the child of a fork: CUDA does not work here */

/* The first failure is the one that tells; later ones follow from it. */
static pthread_mutex_t failure_lock = PTHREAD_MUTEX_INITIALIZER;
static char failure[256];

static void keep_failure(const char *function, const char *name)
{
    pthread_mutex_lock(&failure_lock);
    if (!failure[0])
        snprintf(failure, sizeof failure, "%s: %s", function, name ? name : "unknown error");
    pthread_mutex_unlock(&failure_lock);
}

const char *gpu_failure(void)
{
    return failure[0] ? failure : "no reason known";
}

enum gpu_status gpu_check(CUresult result, const char *function)
{
    const char *name = NULL;
    if (result == CUDA_SUCCESS)
        return GPU_OK;
    if (result == CUDA_ERROR_OUT_OF_MEMORY)
        return GPU_NO_MEMORY;
    CUDA(cuGetErrorName)(result, &name);
    keep_failure(function, name);
    return GPU_ERROR;
}

enum gpu_status gpu_check_cublas(cublasStatus_t status, const char *function)
{
    if (status == CUBLAS_STATUS_SUCCESS)
        return GPU_OK;
    if (status == CUBLAS_STATUS_ALLOC_FAILED)
        return GPU_NO_MEMORY;
    keep_failure(function,
                 CUDA(cublasGetStatusName) ? CUDA(cublasGetStatusName)(status) : "cuBLAS failed");
    return GPU_ERROR;
}

enum gpu_status gpu_enter(struct gpu_scope *scope)
{
    scope->mode_exchanged = false;
    if (atomic_load(&dead))
        return GPU_ERROR;
    enum gpu_status status = GPU_CHECK(cuCtxPushCurrent, gpu_device.context);
    if (status != GPU_OK)
        return status == GPU_NO_MEMORY ? GPU_ERROR : status;
    scope->mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    if (CUDA(cuThreadExchangeStreamCaptureMode))
        scope->mode_exchanged =
            CUDA(cuThreadExchangeStreamCaptureMode)(&scope->mode) == CUDA_SUCCESS;
    return GPU_OK;
}

void gpu_leave(const struct gpu_scope *scope)
{
    CUstreamCaptureMode mode = scope->mode;
    CUcontext ours;
    if (scope->mode_exchanged)
        CUDA(cuThreadExchangeStreamCaptureMode)(&mode);
    CUDA(cuCtxPopCurrent)(&ours);
}

/* ---- Start ---- */

static int attribute(CUdevice_attribute which)
{
    int value = 0;
    return CUDA(cuDeviceGetAttribute)(&value, which, gpu_device.device) == CUDA_SUCCESS ? value : 0;
}

/* Single-precision units per multiprocessor: CUDA C++ Programming Guide, table "Throughput of
 * Native Arithmetic Instructions" (32-bit floating-point add, multiply, multiply-add). */
static int units_per_multiprocessor(int major, int minor)
{
    bool half = (major == 6 && minor == 0) || major == 7 || (major == 8 && minor == 0);
    return half ? 64 : 128;
}

static void nominal_rates(struct gpu_info *info)
{
    double clock_khz = attribute(CU_DEVICE_ATTRIBUTE_CLOCK_RATE);
    int units = units_per_multiprocessor(attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR),
                                         attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR));
    int ratio = attribute(CU_DEVICE_ATTRIBUTE_SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO);
    int processors = attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
    info->gflops[0] = 2e-6 * clock_khz * units * processors;
    if (info->gflops[0] <= 0)
        info->gflops[0] = 5e3; /* an attribute is missing: a slow GPU */
    info->gflops[1] = info->gflops[0] / (ratio > 0 ? ratio : 64);
}

static enum gpu_status open_device(const struct gpu_config *config, struct gpu_info *info)
{
    int count = 0;
    size_t total = 0, free_bytes = 0;
    struct gpu_scope scope;
    enum gpu_status status = GPU_CHECK(cuDeviceGetCount, &count);
    if (status != GPU_OK)
        return status;
    if (count == 0) {
        keep_failure("cuDeviceGetCount", "no device");
        return GPU_ERROR;
    }
    /* CUDA_VISIBLE_DEVICES has chosen and ordered them. */
    gpu_device.ordinal = info->index = 0;
    if ((status = GPU_CHECK(cuDeviceGet, &gpu_device.device, 0)) != GPU_OK ||
        (status = GPU_CHECK(cuDeviceGetName, info->name, sizeof info->name, gpu_device.device)) !=
            GPU_OK ||
        (status = GPU_CHECK(cuDeviceTotalMem, &total, gpu_device.device)) != GPU_OK ||
        (status = GPU_CHECK(cuDevicePrimaryCtxRetain, &gpu_device.context, gpu_device.device)) !=
            GPU_OK)
        return status;
    status = gpu_enter(&scope);
    if (status == GPU_OK) {
        status = GPU_CHECK(cuMemGetInfo, &free_bytes, &total);
        gpu_leave(&scope);
    }
    if (status != GPU_OK) {
        CUDA(cuDevicePrimaryCtxRelease)(gpu_device.device);
        return status;
    }
    gpu_device.budget = config->memory_bytes ? config->memory_bytes
                                             : (int64_t)((double)total * config->memory_share);
    info->memory_bytes = gpu_device.budget;
    nominal_rates(info);
    return GPU_OK;
}

bool gpu_start(const struct gpu_config *config, struct gpu_info *info)
{
    const char *reason = cuda_api_open(config->cuda_dir);
    if (reason) {
        snprintf(failure, sizeof failure, "%s", reason);
        return false;
    }
    enum gpu_status status = open_device(config, info);
    if (status == GPU_NO_MEMORY)
        keep_failure("the CUDA context", "out of memory");
    atomic_store(&started, status == GPU_OK);
    return status == GPU_OK;
}

bool gpu_program_uses_cuda(void)
{
    CUcontext context = NULL;
    if (atomic_load(&dead))
        return false;
    if (atomic_load(&started))
        return CUDA(cuCtxGetCurrent)(&context) == CUDA_SUCCESS && context;

    /* Not yet our CUDA: the program's, through its own copy, and only where it is in use. */
    void *driver = cuda_api_loaded_driver();
    bool uses = false;
    if (driver) {
        CUresult (*get_current)(CUcontext *);
        CUresult (*get_state)(CUdevice, unsigned *, int *);
        void *current_function = dlsym(driver, "cuCtxGetCurrent");
        void *state_function = dlsym(driver, "cuDevicePrimaryCtxGetState");
        memcpy(&get_current, &current_function, sizeof get_current);
        memcpy(&get_state, &state_function, sizeof get_state);
        unsigned flags;
        int active = 0;
        uses = (get_current && get_current(&context) == CUDA_SUCCESS && context) ||
               (get_state && get_state(0, &flags, &active) == CUDA_SUCCESS && active);
        dlclose(driver);
    }
    return uses;
}

enum accel_place gpu_locate(const void *ptr)
{
    struct gpu_scope scope;
    CUmemorytype type = (CUmemorytype)0;
    unsigned managed = 0;
    int ordinal = -1;
    CUpointer_attribute wanted[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                    CU_POINTER_ATTRIBUTE_IS_MANAGED,
                                    CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL};
    void *values[] = {&type, &managed, &ordinal};
    if (gpu_enter(&scope) != GPU_OK)
        return ACCEL_HOST;
    /* Succeeds for any pointer, with zeros for one that CUDA does not know (CUDA driver API,
     * cuPointerGetAttributes). */
    CUresult result = CUDA(cuPointerGetAttributes)(3, wanted, values, (CUdeviceptr)(uintptr_t)ptr);
    gpu_leave(&scope);
    if (result != CUDA_SUCCESS)
        return ACCEL_HOST;
    if (managed)
        return ACCEL_MANAGED;
    if (type == CU_MEMORYTYPE_DEVICE)
        return ordinal == gpu_device.ordinal ? ACCEL_DEVICE : ACCEL_REMOTE;
    return ACCEL_HOST;
}

/* ---- End, fork ---- */

void gpu_trim(void)
{
    struct gpu_scope scope;
    if (!atomic_load(&started) || gpu_enter(&scope) != GPU_OK)
        return;
    lane_free_idle();
    pool_trim();
    gpu_leave(&scope);
}

void gpu_stop(void)
{
    gpu_trim();
    if (atomic_exchange(&started, false))
        CUDA(cuDevicePrimaryCtxRelease)(gpu_device.device);
}

void gpu_fork_prepare(void)
{
    pthread_mutex_lock(&failure_lock);
    lane_fork_prepare();
    pool_fork_prepare();
}

void gpu_fork_done(bool child)
{
    pool_fork_done();
    lane_fork_done();
    pthread_mutex_unlock(&failure_lock);
    if (child)
        atomic_store(&dead, true);
}
