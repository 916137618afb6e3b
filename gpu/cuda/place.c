/* What the program does with CUDA by itself, and where its operands are. */
#define _GNU_SOURCE
#include "base/forks.h"
#include "device.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "gpu/ending.h"

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
    FORKS_LOCK(lock);
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
    if (cuda_is_dead())
        return false;
    if (cuda_is_started()) {
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

/* ours: NULL where no device has been started; of the program's, the first is the one in question then. */
static bool ask_place(pointer_attributes *attributes, const struct cuda_device *ours,
                      const void *ptr, enum accel_place *place)
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
        *place = (!ours || context == ours->context || !context) &&
                         ordinal == (ours ? ours->common.info.index : 0)
                     ? ACCEL_DEVICE
                     : ACCEL_REMOTE;
    return true;
}

/* Of these attributes none depends on the current context, a thread without one is answered, too, and a capture allows the
 * question: no context is entered for it. The answer is an error where the current context has failed, which may be the
 * program's own. */
static enum accel_place locate(struct cuda_device *ours, const void *ptr)
{
    struct gpu_scope scope;
    enum accel_place place = ACCEL_HOST;
    if (!ours) {
        ask_place(program.get_attributes, NULL, ptr, &place);
    } else if (!ask_place(CUDA(cuPointerGetAttributes), ours, ptr, &place) &&
               gpu_enter(ours, &scope) == GPU_OK) {
        ask_place(CUDA(cuPointerGetAttributes), ours, ptr, &place);
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

static void locate_all(struct cuda_device *ours, struct accel_span *spans, int count, int64_t batch)
{
    if (!ending_enter())
        return;
    for (int i = 0; i < count; i++) {
        struct accel_span *x = &spans[i];
        for (int64_t j = 0; x->ptr && j < (x->array ? batch : 1); j++) {
            enum accel_place place = locate(ours, x->array ? x->array[j] : x->ptr);
            x->place = j == 0 ? place : together(x->place, place);
        }
    }
    ending_leave();
}

void cuda_locate(struct gpu_device *device, struct accel_span *spans, int count, int64_t batch)
{
    if (!cuda_is_dead())
        locate_all(cuda_device_of(device), spans, count, batch);
}

void gpu_program_locate(struct accel_span *spans, int count, int64_t batch)
{
    if (atomic_load(&program_has_driver))
        locate_all(NULL, spans, count, batch);
}
