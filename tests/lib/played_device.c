#include "tests/lib/played_device.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static struct played_device *played_by(struct gpu_device *gpu)
{
    return (struct played_device *)gpu;
}

static enum gpu_status run(struct gpu_device *gpu, const struct accel_call *call,
                           struct gpu_host *host)
{
    struct played_device *const played = played_by(gpu);
    return played->run ? played->run(played, call, host) : GPU_OK;
}

static bool is_in(const void *ptr, const char *memory, size_t bytes)
{
    return memory && (const char *)ptr >= memory && (const char *)ptr < memory + bytes;
}

static void locate(struct gpu_device *gpu, struct accel_span *spans, int count, int64_t batch)
{
    const struct played_device *const played = played_by(gpu);
    (void)batch;
    for (int i = 0; i < count; i++)
        if (spans[i].ptr)
            spans[i].place = is_in(spans[i].ptr, played->own, played->own_bytes) ? ACCEL_DEVICE
                             : is_in(spans[i].ptr, played->remote, played->remote_bytes)
                                 ? ACCEL_REMOTE
                                 : ACCEL_HOST;
}

/* Copies a matrix from its memory to a packed one, or back. */
static void copy(const struct accel_span *x, char *packed, bool back)
{
    const size_t column = (size_t)x->rows * accel_dtype_size(x->dtype);
    for (int64_t j = 0; j < x->cols; j++)
        memcpy(back ? gpu_element(x, 0, j) : packed + (size_t)j * column,
               back ? packed + (size_t)j * column : gpu_element(x, 0, j), column);
}

static bool fetch(struct gpu_device *gpu, void *host, const struct accel_span *x)
{
    struct played_device *const played = played_by(gpu);
    played->fetched++;
    if (!played->fails)
        copy(x, host, false);
    return !played->fails;
}

static bool store(struct gpu_device *gpu, const struct accel_span *x, const void *host)
{
    struct played_device *const played = played_by(gpu);
    played->stored++;
    if (!played->fails)
        copy(x, (char *)(uintptr_t)host, true);
    return !played->fails;
}

static bool has_cached(struct gpu_device *gpu, const struct gpu_key *key, uint64_t user)
{
    (void)gpu, (void)key, (void)user;
    return false;
}

static void trim(struct gpu_device *gpu)
{
    played_by(gpu)->trimmed++;
}

void play_device(struct played_device *played, struct dispatch_device *device, int index)
{
    static const struct gpu_device_functions functions = {.run = run,
                                                          .locate = locate,
                                                          .fetch = fetch,
                                                          .store = store,
                                                          .has_cached = has_cached,
                                                          .trim = trim};
    memset(played, 0, sizeof *played);
    memset(device, 0, sizeof *device);
    played->gpu.functions = &functions;
    played->device = device;
    played->number = index;
    played->gpu.info = (struct gpu_info){
        .index = index, .sharers = 1, .share = 1, .memory_bytes = (int64_t)1 << 37};
    snprintf(played->gpu.info.name, sizeof played->gpu.info.name, "Played");
    strcpy(played->gpu.info.id, "played");
    snprintf(device->name, sizeof device->name, "gpu%d", index);
    snprintf(device->cpu_name, sizeof device->cpu_name, "gpu%d+cpu", index);
    device->memory_bytes = played->gpu.info.memory_bytes;
    device->sharers = 1;
    atomic_store(&device->gpu, &played->gpu);
    atomic_store(&device->starter, getpid());
    atomic_store(&device->state, DEVICE_READY);
}
