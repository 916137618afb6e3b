#include "device.h"

#include <stdatomic.h>

#include "gpu/pack/packer.h"

enum gpu_status gpu_run(struct gpu_device *device, const struct accel_call *call,
                        struct gpu_host *host)
{
    return device->functions->run(device, call, host);
}

struct gpu_load gpu_load(struct gpu_device *device, const struct accel_call *call)
{
    return device->functions->load ? device->functions->load(device, call)
                                   : (struct gpu_load){.slower = 1};
}

void gpu_locate(struct gpu_device *device, struct accel_span *spans, int count, int64_t batch)
{
    if (device)
        device->functions->locate(device, spans, count, batch);
    else
        gpu_program_locate(spans, count, batch);
}

bool gpu_fetch(struct gpu_device *device, void *host, const struct accel_span *x)
{
    return device && device->functions->fetch(device, host, x);
}

bool gpu_store(struct gpu_device *device, const struct accel_span *x, const void *host)
{
    return device && device->functions->store(device, x, host);
}

bool gpu_measure_copies(struct gpu_device *device, struct gpu_copy_rates *rates)
{
    return device->functions->measure_copies(device, rates);
}

bool gpu_measure_paces(struct gpu_device *device, const struct accel_call *product, double limit_ms,
                       struct block_paces *paces)
{
    return device->functions->measure_paces(device, product, limit_ms, paces);
}

double gpu_peer_gbps(struct gpu_device *reader, struct gpu_device *owner)
{
    if (reader == owner || reader->functions != owner->functions || !reader->functions->peer_gbps)
        return 0;
    return reader->functions->peer_gbps(reader, owner);
}

const int64_t gpu_chunk_sizes[GPU_CHUNKS] = {GPU_CHUNK_USUAL / 4, GPU_CHUNK_USUAL / 2,
                                             GPU_CHUNK_USUAL, 2 * GPU_CHUNK_USUAL};

void gpu_set_chunk(struct gpu_device *device, int64_t bytes)
{
    for (int i = 0; i < GPU_CHUNKS; i++)
        if (bytes == gpu_chunk_sizes[i])
            atomic_store_explicit(&device->chunk, bytes, memory_order_relaxed);
}

int64_t gpu_chunk(const struct gpu_device *device)
{
    const int64_t bytes = atomic_load_explicit(&device->chunk, memory_order_relaxed);
    return bytes > 0 ? bytes : GPU_CHUNK_USUAL;
}

void gpu_count_memory(struct gpu_device *device, const uint64_t *user, int64_t *held,
                      int64_t *cached)
{
    *held = *cached = 0;
    if (device->functions->count_memory)
        device->functions->count_memory(device, user, held, cached);
}

int gpu_list_cached(struct gpu_device *device, uint64_t user, uint64_t *word, int most)
{
    return device->functions->list_cached ? device->functions->list_cached(device, user, word, most)
                                          : 0;
}

void gpu_trim(struct gpu_device *device)
{
    device->functions->trim(device);
}

void gpu_unpin(struct gpu_device *device, struct packer *packer)
{
    if (packer->pinned && !packer->lost)
        device->functions->unpin(device, packer);
}

void gpu_stop(struct gpu_device *device)
{
    if (device)
        device->functions->stop(device);
}

const struct gpu_info *gpu_info(const struct gpu_device *device)
{
    return &device->info;
}
