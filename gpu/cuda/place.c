/* Whether the program itself uses CUDA, and where its operands are. */
#define _GNU_SOURCE
#include "base/thread/forks.h"
#include "base/memory/write_watch.h"
#include "device.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "gpu/device/exit_guard.h"
#include "gpu/plan/scheduled.h"

static atomic_bool devices_seen;

void gpu_look_for_devices(void)
{
    /* The driver's, on Linux, Windows Subsystem for Linux, Tegra. */
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
    /* A user who says where CUDA is has a device; and a program may have loaded the driver from
     * anywhere. Asks for the driver last: if it is not loaded, dlopen() looks through all of its
     * folders, RTLD_NOLOAD or not, with some fifty system calls. */
    return config->cuda_dir || atomic_load(&devices_seen) ||
           (has_cuda_library && cuda_api_loaded_driver());
}

/* Functions of the program's own copy of the driver. */
static struct {
    CUresult (*get_current)(CUcontext *);
    CUresult (*get_state)(CUdevice, unsigned *, int *);
    CUresult (*get_attributes)(unsigned, CUpointer_attribute *, void **, CUdeviceptr);
} program;
static atomic_bool program_has_driver;

/* Returns whether the program has loaded the driver. A look for it costs system calls: looks again
 * only after something was loaded. */
static bool find_program_driver(unsigned long long loads)
{
    static _Atomic unsigned long long last = ~0ull;
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    FORKS_LOCK(lock);
    if (atomic_load_explicit(&program_has_driver, memory_order_acquire))
        return true;
    if (atomic_load_explicit(&last, memory_order_acquire) == loads)
        return false;
    void *driver = cuda_api_loaded_driver(); /* the handle keeps it loaded */
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
            dlerror(); /* the driver is old, which is no error of the program's */
        }
    }
    atomic_store_explicit(&last, loads, memory_order_release);
    return atomic_load_explicit(&program_has_driver, memory_order_acquire);
}

/* Returns whether the primary context of any device is active. */
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
    const unsigned starts = cuda_starts();
    if (cuda_is_dead())
        return false;
    if (cuda_is_started()) {
        if (!exit_guard_enter())
            return false;
        bool has = CUDA(cuCtxGetCurrent)(&context) == CUDA_SUCCESS && context;
        exit_guard_leave();
        return has;
    }
    /* We have not opened CUDA yet: asks the program's own copy, if it has one. */
    if (!find_program_driver(loads) || !exit_guard_enter())
        return false;
    bool uses = program.get_current(&context) == CUDA_SUCCESS && context;
    /* One that is active may be ours, if another thread starts CUDA just now. */
    uses = uses || (starts % 2 == 0 && any_context_active() && cuda_starts() == starts);
    exit_guard_leave();
    return uses;
}

bool gpu_program_has_initialised(unsigned long long loads)
{
    CUcontext context;
    if (!find_program_driver(loads) || !exit_guard_enter())
        return false;
    bool has = program.get_current(&context) != CUDA_ERROR_NOT_INITIALIZED;
    exit_guard_leave();
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

/* An operand was in host memory that CUDA has pinned, which is the program's doing. */
static atomic_bool program_pins;

bool gpu_program_pins(void)
{
    return atomic_load_explicit(&program_pins, memory_order_relaxed);
}

typedef CUresult pointer_attributes(unsigned, CUpointer_attribute *, void **, CUdeviceptr);

/* Asks the driver for a place; returns false if it answers with an error. ours: NULL if no device
 * has been started; then takes device 0 for the one that will be. */
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
    if (type == CU_MEMORYTYPE_HOST && !managed)
        atomic_store_explicit(&program_pins, true, memory_order_relaxed);
    if (managed)
        *place = ACCEL_MANAGED;
    else if (type == CU_MEMORYTYPE_DEVICE)
        /* Our kernels cannot reach memory of another context, even on the same device. Memory of
         * CUDA's pools has no context, and belongs to the device. */
        *place = (!ours || context == ours->context || !context) &&
                         ordinal == (ours ? ours->common.info.index : 0)
                     ? ACCEL_DEVICE
                     : ACCEL_REMOTE;
    return true;
}

/* Returns where a pointer points. Enters no context for the question: the attributes do not depend
 * on the current one, the driver answers a thread without one, too, and a capture allows it. If the
 * current context has failed, which may be the program's own, the answer is an error: then asks
 * again in ours. */
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

/* Returns the place of two matrices of a batch taken together: the host or the device if it can use
 * both; ACCEL_REMOTE if neither can. */
static enum accel_place together(enum accel_place one, enum accel_place other)
{
    bool host = one == ACCEL_HOST || other == ACCEL_HOST;
    bool device = one == ACCEL_DEVICE || other == ACCEL_DEVICE;
    if (one == ACCEL_REMOTE || other == ACCEL_REMOTE || (host && device))
        return ACCEL_REMOTE;
    return host ? ACCEL_HOST : device ? ACCEL_DEVICE : ACCEL_MANAGED;
}

/* The program may have pinned a part of a large matrix alone, or its whole pages: looks at its end,
 * too, and at the first and last page that are the matrix's alone, as only these are watched for
 * writes. A batch whose matrices are side by side is watched as one matrix (device_cache_part());
 * no other one is watched. Asks for the ends alone, however many matrices there are. */
static void look_at_ends(struct cuda_device *ours, const struct accel_span *x, int64_t batch)
{
    struct accel_span all = *x;
    if (!x->ptr || x->inc || batch < 1 || x->place != ACCEL_HOST ||
        (x->array && !scheduled_side_by_side(x, batch, &all)))
        return;
    const int64_t bytes = accel_extent(&all, x->array ? 1 : batch);
    if (bytes < GPU_LEAST_CACHED_BYTES)
        return;
    const uintptr_t page = write_watch_page(), first = (uintptr_t)all.ptr,
                    end = first + (uintptr_t)bytes;
    locate(ours, (const void *)((first + page - 1) / page * page));
    locate(ours, (const void *)(end / page * page - 1));
    locate(ours, (const void *)(end - 1));
}

static void locate_all(struct cuda_device *ours, struct accel_span *spans, int count, int64_t batch)
{
    if (!exit_guard_enter())
        return;
    for (int i = 0; i < count; i++) {
        struct accel_span *x = &spans[i];
        for (int64_t j = 0; x->ptr && j < (x->array ? batch : 1); j++) {
            enum accel_place place = locate(ours, x->array ? x->array[j] : x->ptr);
            x->place = j == 0 ? place : together(x->place, place);
        }
        look_at_ends(ours, x, batch);
    }
    exit_guard_leave();
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
