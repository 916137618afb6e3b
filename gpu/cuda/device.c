#define _GNU_SOURCE
#include "device.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "gpu/choose.h"
#include "gpu/ending.h"
#include "idle.h"
#include "lane.h"
#include "pool.h"

struct gpu_device gpu_device;

static atomic_bool started;
static atomic_bool dead; /* the child of a fork: CUDA does not work here */

enum gpu_status gpu_enter(struct gpu_scope *scope)
{
    scope->mode_exchanged = false;
    if (atomic_load(&dead) || !gpu_device.context || !ending_enter()) /* or not started */
        return GPU_ERROR;
    enum gpu_status status = GPU_CHECK_FINAL(cuCtxPushCurrent, gpu_device.context);
    if (status != GPU_OK) {
        ending_leave();
        return status;
    }
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
    ending_leave();
}

bool gpu_memory_is_short(void)
{
    const size_t ample = (size_t)512 << 20; /* for a library's workspace and its kernels */
    size_t free_bytes, total;
    return CUDA(cuMemGetInfo)(&free_bytes, &total) == CUDA_SUCCESS && free_bytes < ample &&
           free_bytes < total / 4;
}

/* ---- Start ---- */

static int attribute_of(CUdevice device, CUdevice_attribute which)
{
    int value = 0;
    return CUDA(cuDeviceGetAttribute)(&value, which, device) == CUDA_SUCCESS ? value : 0;
}

static int attribute(CUdevice_attribute which)
{
    return attribute_of(gpu_device.device, which);
}

static struct nominal_rates rates_of_device(void)
{
    const struct nominal_attributes attributes = {
        .major = attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR),
        .minor = attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR),
        .processors = attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT),
        .clock_khz = attribute(CU_DEVICE_ATTRIBUTE_CLOCK_RATE),
        .memory_clock_khz = attribute(CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE),
        .bus_bits = attribute(CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH),
        .single_to_double = attribute(CU_DEVICE_ATTRIBUTE_SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO)};
    return nominal_rates(&attributes);
}

/* Versions as a calibration tells them apart; 0 where they cannot be had. */
static void read_versions(struct gpu_info *info)
{
    CUDA(cuDriverGetVersion)(&info->cuda_version);
    int part[3] = {0};
    for (int i = 0; CUDA(cublasGetProperty) && i < 3; i++)
        CUDA(cublasGetProperty)((libraryPropertyType)i, &part[i]);
    info->cublas_version = part[0] * 10000 + part[1] * 100 + part[2];
}

static void read_id(struct gpu_info *info)
{
    CUuuid uuid = {{0}};
    static const char hex[] = "0123456789abcdef";
    if (CUDA(cuDeviceGetUuid))
        CUDA(cuDeviceGetUuid)(&uuid, gpu_device.device);
    for (int i = 0; i < 16; i++) {
        info->id[2 * i] = hex[(unsigned char)uuid.bytes[i] >> 4];
        info->id[2 * i + 1] = hex[(unsigned char)uuid.bytes[i] & 15];
    }
    info->id[32] = 0;
}

/* Takes a device's primary context. */
static enum gpu_status take_device(int ordinal, struct gpu_info *info, size_t *total,
                                   size_t *free_bytes)
{
    struct gpu_scope scope;
    enum gpu_status status;
    gpu_device.ordinal = ordinal;
    if ((status = GPU_CHECK(cuDeviceGet, &gpu_device.device, ordinal)) != GPU_OK ||
        (status = GPU_CHECK(cuDeviceGetName, info->name, sizeof info->name, gpu_device.device)) !=
            GPU_OK ||
        (status = GPU_CHECK(cuDeviceTotalMem, total, gpu_device.device)) != GPU_OK ||
        (status = GPU_CHECK(cuDevicePrimaryCtxRetain, &gpu_device.context, gpu_device.device)) !=
            GPU_OK)
        return status;
    status = gpu_enter(&scope);
    if (status == GPU_OK) {
        status = GPU_CHECK(cuMemGetInfo, free_bytes, total);
        gpu_leave(&scope);
    }
    if (status != GPU_OK)
        CUDA(cuDevicePrimaryCtxRelease)(gpu_device.device);
    return status;
}

static int compute_mode(int ordinal)
{
    CUdevice device;
    return CUDA(cuDeviceGet)(&device, ordinal) == CUDA_SUCCESS
               ? attribute_of(device, CU_DEVICE_ATTRIBUTE_COMPUTE_MODE)
               : CU_COMPUTEMODE_DEFAULT;
}

static bool is_allowed(int ordinal)
{
    return compute_mode(ordinal) != CU_COMPUTEMODE_PROHIBITED;
}

/* Of less, nothing could be done. */
#define LEAST_FREE ((size_t)64 << 20)

static void pass_over(struct gpu_info *info, int ordinal, const char *why)
{
    size_t length = strlen(info->passed_over);
    snprintf(info->passed_over + length, sizeof info->passed_over - length, "%sgpu%d: %s",
             length ? "; " : "", ordinal, why);
}

static void pass_over_out(struct gpu_info *info, const struct choice *choice, int there)
{
    char why[64];
    for (int i = 0; i < choice->outs; i++) {
        if (choice->out[i] < there)
            snprintf(why, sizeof why, "its compute mode is prohibited");
        else
            snprintf(why, sizeof why, "there is no device %d, but %d from 0 on", choice->out[i],
                     there);
        pass_over(info, choice->out[i], why);
    }
}

enum { WHY_BYTES = 256 };

/* GPU_OK where it has been taken. roomy: not where others have its memory. why: of WHY_BYTES. */
static enum gpu_status try_device(int ordinal, bool roomy, struct gpu_info *info, size_t *total,
                                  char *why)
{
    struct failure outer;
    size_t free_bytes = 0;
    failure_begin(&outer);
    enum gpu_status status = take_device(ordinal, info, total, &free_bytes);
    snprintf(why, WHY_BYTES, "%.200s%s",
             status == GPU_NO_MEMORY ? "the CUDA context: out of memory" : failure_noted()->text,
             compute_mode(ordinal) == CU_COMPUTEMODE_EXCLUSIVE_PROCESS
                 ? " (its compute mode is exclusive)"
                 : "");
    failure_end(&outer);
    if (status == GPU_OK && roomy && free_bytes < LEAST_FREE) {
        CUDA(cuDevicePrimaryCtxRelease)(gpu_device.device);
        snprintf(why, WHY_BYTES, "out of memory: others have all but %zu MB", free_bytes / 1000000);
        status = GPU_NO_MEMORY;
    }
    return status;
}

/* The first that can be had with room for what is to be done there; or else without. */
static bool try_devices(const struct choice *choice, struct gpu_info *info, size_t *total)
{
    bool scarce[CHOICE_MAX] = {false}, several = choice->count > 1;
    char why[WHY_BYTES];
    for (int pass = several ? 0 : 1; pass < 2; pass++)
        for (int i = 0; i < choice->count; i++) {
            if (gpu_is_gone())
                return false;
            if (several && pass == 1 && !scarce[i])
                continue;
            enum gpu_status status = try_device(choice->device[i], pass == 0, info, total, why);
            if (status == GPU_OK)
                return true;
            if (!scarce[i]) /* else it has been said */
                pass_over(info, choice->device[i], why);
            scarce[i] = status == GPU_NO_MEMORY;
        }
    return false;
}

static bool open_device(const struct gpu_config *config, struct gpu_info *info)
{
    int there = 0;
    size_t total = 0;
    struct choice choice;
    info->passed_over[0] = 0;
    if (GPU_CHECK_FINAL(cuDeviceGetCount, &there) != GPU_OK)
        return false;
    /* CUDA_VISIBLE_DEVICES has chosen and ordered them already. */
    choose_devices(&choice, config, there, is_allowed);
    pass_over_out(info, &choice, there);
    if (!try_devices(&choice, info, &total)) {
        failure_publish_text(there == 0             ? "cuDeviceGetCount: no device"
                             : info->passed_over[0] ? info->passed_over
                                                    : "the program has ended");
        return false;
    }
    info->index = gpu_device.ordinal;
    info->sharers = choice.sharers;
    gpu_device.budget = config->memory_bytes
                            ? config->memory_bytes
                            : (int64_t)((double)total * config->memory_share / info->sharers);
    info->memory_bytes = gpu_device.budget;
    info->nominal = rates_of_device();
    read_versions(info);
    read_id(info);
    return true;
}

static atomic_bool devices_seen;

void gpu_look_for_devices(void)
{
    /* The driver's: Linux, Windows Subsystem for Linux, Tegra. */
    static const char *const nodes[] = {"/dev/nvidiactl", "/dev/nvidia0",    "/dev/dxg",
                                        "/dev/nvgpu",     "/dev/nvhost-gpu", "/dev/nvmap"};
    int saved = errno;
    bool seen = false;
    for (size_t i = 0; !seen && i < sizeof nodes / sizeof *nodes; i++)
        seen = access(nodes[i], F_OK) == 0;
    atomic_store(&devices_seen, seen);
    errno = saved;
}

bool gpu_may_exist(const struct gpu_config *config, bool has_cuda_library)
{
    /* Whoever says where CUDA is has a device; and a program may have the driver from somewhere. For one that is not loaded, dlopen()
     * looks through all of its folders, RTLD_NOLOAD or not: some fifty system calls. */
    return config->cuda_dir || atomic_load(&devices_seen) ||
           (has_cuda_library && cuda_api_loaded_driver());
}

static bool start(const struct gpu_config *config, struct gpu_info *info)
{
    const char *reason = cuda_api_open(config->cuda_dir);
    if (!reason && ending_has_begun())
        reason = "the program has ended";
    if (reason) {
        failure_publish_text(reason);
        return false;
    }
    bool open = open_device(config, info);
    atomic_store(&started, open);
    return open;
}

bool gpu_start(const struct gpu_config *config, struct gpu_info *info)
{
    ending_watch();
    if (!ending_enter())
        return false;
    bool result = start(config, info);
    ending_leave();
    return result;
}

/* The functions that tell, of the program's own copy of the driver. */
static struct {
    CUresult (*get_current)(CUcontext *);
    CUresult (*get_state)(CUdevice, unsigned *, int *);
    CUresult (*get_attributes)(unsigned, CUpointer_attribute *, void **, CUdeviceptr);
} program;
static atomic_bool program_has_driver;

/* A look for the driver costs system calls, so there is one each time something was loaded. */
static bool find_program_driver(unsigned long long loads)
{
    static _Atomic unsigned long long last = ~0ull;
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    if (atomic_load_explicit(&program_has_driver, memory_order_acquire))
        return true;
    if (atomic_load_explicit(&last, memory_order_acquire) == loads)
        return false;
    void *driver = cuda_api_loaded_driver(); /* stays loaded then: a handle is held */
    if (driver) {
        void *current = dlsym(driver, "cuCtxGetCurrent");
        void *primary_state = dlsym(driver, "cuDevicePrimaryCtxGetState");
        void *attributes = dlsym(driver, "cuPointerGetAttributes");
        if (current && primary_state && attributes) {
            pthread_mutex_lock(&lock);
            if (!atomic_load_explicit(&program_has_driver, memory_order_relaxed)) {
                memcpy(&program.get_current, &current, sizeof current);
                memcpy(&program.get_state, &primary_state, sizeof primary_state);
                memcpy(&program.get_attributes, &attributes, sizeof attributes);
                atomic_store_explicit(&program_has_driver, true, memory_order_release);
            }
            pthread_mutex_unlock(&lock);
        } else {
            dlerror(); /* an old driver; not the program's error */
        }
    }
    atomic_store_explicit(&last, loads, memory_order_release);
    return atomic_load_explicit(&program_has_driver, memory_order_acquire);
}

/* Of any device. */
static bool any_context_active(void)
{
    unsigned flags;
    int active = 0;
    for (CUdevice i = 0; !active && program.get_state(i, &flags, &active) == CUDA_SUCCESS; i++)
        continue;
    return active;
}

bool gpu_program_uses_cuda(unsigned long long loads)
{
    CUcontext context = NULL;
    if (atomic_load(&dead))
        return false;
    if (atomic_load(&started)) {
        if (!ending_enter())
            return false;
        bool has = CUDA(cuCtxGetCurrent)(&context) == CUDA_SUCCESS && context;
        ending_leave();
        return has;
    }
    /* Not yet our CUDA: the program's, through its own copy, and only where it is in use. */
    if (!find_program_driver(loads) || !ending_enter())
        return false;
    bool uses = (program.get_current(&context) == CUDA_SUCCESS && context) || any_context_active();
    ending_leave();
    return uses;
}

bool gpu_program_has_initialised(unsigned long long loads)
{
    CUcontext context;
    if (!find_program_driver(loads) || !ending_enter())
        return false;
    bool has = program.get_current(&context) != CUDA_ERROR_NOT_INITIALIZED;
    ending_leave();
    return has;
}

bool gpu_is_cuda_library(const char *path)
{
    static const char *const names[] = {"libcuda.so",     "libcudart.so",    "libcublas.so",
                                        "libcusolver.so", "libcusparse.so",  "libcufft.so",
                                        "libcurand.so",   "libcudnn.so",     "libnccl.so",
                                        "libnvrtc.so",    "libtorch_cuda.so"};
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strncmp(name, names[i], strlen(names[i])) == 0)
            return true;
    return false;
}

typedef CUresult pointer_attributes(unsigned, CUpointer_attribute *, void **, CUdeviceptr);

static bool ask_place(pointer_attributes *attributes, CUcontext ours, const void *ptr,
                      enum accel_place *place)
{
    CUmemorytype type = (CUmemorytype)0;
    unsigned managed = 0;
    CUcontext context = NULL;
    int ordinal = -1;
    CUpointer_attribute wanted[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                    CU_POINTER_ATTRIBUTE_IS_MANAGED, CU_POINTER_ATTRIBUTE_CONTEXT,
                                    CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL};
    void *values[] = {&type, &managed, &context, &ordinal};
    /* Succeeds for any pointer, with zeros for one that CUDA does not know (CUDA driver API,
     * cuPointerGetAttributes). */
    if (attributes(4, wanted, values, (CUdeviceptr)(uintptr_t)ptr) != CUDA_SUCCESS)
        return false;
    *place = ACCEL_HOST;
    if (managed)
        *place = ACCEL_MANAGED;
    else if (type == CU_MEMORYTYPE_DEVICE)
        /* Memory of another context is out of our kernels' reach, on the same device, too. Pool allocations have
         * none, and belong to the device. */
        *place = (!ours || context == ours || !context) && ordinal == gpu_device.ordinal
                     ? ACCEL_DEVICE
                     : ACCEL_REMOTE;
    return true;
}

/* Of these attributes none depends on the current context, a thread without one is answered, too, and a capture allows the
 * question: no context is entered for it. The answer is an error where the current context has failed, which may be the
 * program's own. */
static enum accel_place locate(bool ours, const void *ptr)
{
    struct gpu_scope scope;
    enum accel_place place = ACCEL_HOST;
    if (!ours) {
        ask_place(program.get_attributes, NULL, ptr, &place);
    } else if (!ask_place(CUDA(cuPointerGetAttributes), gpu_device.context, ptr, &place) &&
               gpu_enter(&scope) == GPU_OK) {
        ask_place(CUDA(cuPointerGetAttributes), gpu_device.context, ptr, &place);
        gpu_leave(&scope);
    }
    return place;
}

/* What serves all matrices of a batch: if the host may touch each, the host does; where only kernels may, or
 * neither all, they are copied. */
static enum accel_place together(enum accel_place one, enum accel_place other)
{
    bool host = one == ACCEL_HOST || other == ACCEL_HOST;
    bool device = one == ACCEL_DEVICE || other == ACCEL_DEVICE;
    if (one == ACCEL_REMOTE || other == ACCEL_REMOTE || (host && device))
        return ACCEL_REMOTE;
    return host ? ACCEL_HOST : device ? ACCEL_DEVICE : ACCEL_MANAGED;
}

void gpu_locate(struct accel_operand *operands, int count, int64_t batch)
{
    bool ours = atomic_load(&started);
    if ((ours ? atomic_load(&dead) : !atomic_load(&program_has_driver)) || !ending_enter())
        return;
    for (int i = 0; i < count; i++) {
        struct accel_operand *x = &operands[i];
        for (int64_t j = 0; x->ptr && j < (x->array ? batch : 1); j++) {
            enum accel_place place = locate(ours, x->array ? x->array[j] : x->ptr);
            x->place = j == 0 ? place : together(x->place, place);
        }
    }
    ending_leave();
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
    idle_await();
    if (atomic_exchange(&started, false))
        CUDA(cuDevicePrimaryCtxRelease)(gpu_device.device);
}

void gpu_fork_child(void)
{
    ending_fork_child();
    atomic_store(&dead, true);
    failure_fork_child();
}
