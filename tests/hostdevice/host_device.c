#define _GNU_SOURCE
#include "host_device.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "call/operation.h"
#include "gpu/device/failure.h"
#include "gpu/exec/lapack/solver_shared.h"

static void *library; /* before the device is in use */

host_routine *host_blas(enum accel_dtype dtype, const char *name)
{
    char full[32];
    snprintf(full, sizeof full, "%c%s_", "sdcz"[dtype], name);
    return (host_routine *)dlsym(library, full);
}

/* ---- Memory ---- */

static _Atomic int64_t used;

struct block { /* before the memory itself */
    int64_t bytes, unused[7];
};

static enum gpu_status take(struct gpu_work *work, int64_t bytes, gpu_address *memory)
{
    struct block *block;
    if (work->blocks == WORK_BLOCKS)
        return GPU_UNSUPPORTED;
    if (atomic_fetch_add(&used, bytes) + bytes > work->device->info.memory_bytes ||
        posix_memalign((void **)&block, sizeof *block, sizeof *block + (size_t)bytes) != 0) {
        atomic_fetch_sub(&used, bytes);
        return GPU_NO_MEMORY;
    }
    block->bytes = bytes;
    *memory = work->block[work->blocks++] = (gpu_address)(uintptr_t)(block + 1);
    memset(block + 1, 0xff, (size_t)bytes); /* what is not written is not a number */
    return GPU_OK;
}

static enum gpu_status take_lent(struct gpu_work *work, int64_t bytes, gpu_address *memory)
{
    (void)work, (void)bytes, (void)memory;
    return GPU_UNSUPPORTED;
}

static enum gpu_status zero(struct gpu_work *work, gpu_address memory, int64_t bytes)
{
    (void)work;
    memset((void *)(uintptr_t)memory, 0, (size_t)bytes);
    return GPU_OK;
}

static bool find(struct gpu_work *work, const struct gpu_key *key, int64_t bytes,
                 gpu_address *memory)
{
    (void)work, (void)key, (void)bytes, (void)memory;
    return false;
}

static enum gpu_status cache(struct gpu_work *work, gpu_address memory, const struct gpu_key *key)
{
    (void)work, (void)memory, (void)key;
    return GPU_OK;
}

static void invalidate(struct gpu_work *work, const struct gpu_key *key)
{
    (void)work, (void)key;
}

static int64_t available(const struct gpu_work *work)
{
    return work->device->info.memory_bytes - atomic_load(&used);
}

static void trim_work(const struct gpu_work *work)
{
    (void)work;
}

static void drop(struct gpu_work *work)
{
    while (work->blocks > 0) {
        struct block *block = (struct block *)(uintptr_t)work->block[--work->blocks] - 1;
        atomic_fetch_sub(&used, block->bytes);
        free(block);
    }
}

/* clang-format off */
static const struct gpu_memory memory = {
    .take = take, .take_lent = take_lent, .zero = zero, .find = find, .cache = cache,
    .invalidate = invalidate, .available = available, .trim = trim_work, .drop = drop,
};
/* clang-format on */

/* ---- Kernels of our own: there are none ---- */

static bool is_here(const struct gpu_work *work)
{
    (void)work;
    return false;
}

static enum gpu_status fit(struct gpu_work *work, const char *kernel, unsigned threads,
                           unsigned shared_bytes, struct gpu_fit *result)
{
    (void)work, (void)kernel, (void)threads, (void)shared_bytes, (void)result;
    return GPU_UNSUPPORTED;
}

static enum gpu_status launch(struct gpu_work *work, const char *kernel, struct gpu_grid grid,
                              void **arguments)
{
    (void)work, (void)kernel, (void)grid, (void)arguments;
    return GPU_UNSUPPORTED;
}

static const struct gpu_own_kernels own = {.is_here = is_here, .fit = fit, .launch = launch};

/* ---- The device ---- */

static enum gpu_status run(struct gpu_device *device, const struct accel_call *call,
                           struct gpu_host *host)
{
    struct gpu_work work = {.call = call,
                            .host = host,
                            .device = device,
                            .ctx = (struct stream_ctx *)device, /* nobody looks into it */
                            .largest = INT64_MAX};
    const struct accel_gpu *gpu = call->op->gpu;
    struct failure outer;
    if (!gpu)
        return GPU_UNSUPPORTED;
    failure_begin(&outer);
    const enum gpu_status status = gpu->steps ? solver_run_call(&work) : gpu->run(&work);
    drop(&work);
    failure_end(&outer);
    host->blame = GPU_BLAME_ROUTINE;
    return status;
}

static void locate(struct gpu_device *device, struct accel_span *spans, int count, int64_t batch)
{
    (void)device;
    gpu_program_locate(spans, count, batch);
}

/* No operand is on the device before a call. */
static bool fetch(struct gpu_device *device, void *to, const struct accel_span *x)
{
    (void)device, (void)to, (void)x;
    return false;
}

static bool store(struct gpu_device *device, const struct accel_span *x, const void *from)
{
    (void)device, (void)x, (void)from;
    return false;
}

static bool measure_copies(struct gpu_device *device, struct gpu_copy_rates *rates)
{
    (void)device, (void)rates;
    return false;
}

static bool measure_paces(struct gpu_device *device, const struct accel_call *product,
                          double limit_ms, struct block_paces *paces)
{
    (void)device, (void)product, (void)limit_ms;
    *paces = (struct block_paces){.highest = 0};
    return false;
}

static bool has_cached(struct gpu_device *device, const struct gpu_key *key, uint64_t user)
{
    (void)device, (void)key, (void)user;
    return false;
}

static void trim(struct gpu_device *device)
{
    (void)device;
}

/* clang-format off */
static const struct gpu_device_functions functions = {
    .run = run, .locate = locate, .fetch = fetch, .store = store, .measure_copies = measure_copies,
    .measure_paces = measure_paces, .has_cached = has_cached, .trim = trim, .stop = trim,
    .memory = &memory, .copies = &host_copies, .kernels = &host_kernels, .own = &own,
    .solver = &host_solver,
};
/* clang-format on */

struct gpu_device *gpu_start(const struct gpu_config *config, char why[GPU_FAILURE_BYTES])
{
    static struct gpu_device device;
    library = library ? library : dlmopen(LM_ID_NEWLM, "libopenblas.so.0", RTLD_NOW);
    if (device.functions || !library) {
        snprintf(why, GPU_FAILURE_BYTES, "%s", library ? "no other device" : dlerror());
        return NULL;
    }
    device.functions = &functions;
    device.info = (struct gpu_info){.name = "Host",
                                    .id = "host",
                                    .sharers = 1,
                                    .share = 1,
                                    .memory_bytes = config->memory_bytes > 0 ? config->memory_bytes
                                                                             : (int64_t)1 << 30};
    return &device;
}
