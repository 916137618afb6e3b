#include "pool.h"

#include "base/clock.h"
#include "device.h"
#include "idle.h"

/* So long a block lies idle. */
#define IDLE_MS 1000
/* Idle blocks take no more than a part of what is free beside them: what the program's own allocation does not find is little. What is
 * beyond the small part goes back soon, by the idle thread; what is beyond the large one, before the call returns. */
#define IDLE_PART       8
#define IDLE_PART_LARGE 4
/* An old answer is not believed any more, where idle blocks are not next to nothing. */
#define STALE_MS   50
#define STALE_PART 64

void pool_begin(struct cuda_device *device)
{
    pthread_mutex_init(&device->pool.lock, NULL);
    pthread_cond_init(&device->pool.freed, NULL);
}

void pool_end(struct cuda_device *device)
{
    pthread_cond_destroy(&device->pool.freed);
    pthread_mutex_destroy(&device->pool.lock);
}

/* Sizes that recur: 1/8 steps between powers of two, so that a block serves calls of similar size.
 */
static int64_t round_size(int64_t bytes)
{
    int64_t step = 4096;
    while (step * 16 <= bytes)
        step *= 2;
    return (bytes + step - 1) / step * step;
}

/* ---- Giving back: with the lock, which is let go while the driver frees ---- */

/* cuMemFree waits for all work of the context, the program's too: other threads' calls need not wait with it. */
static void free_block(struct pool *pool, int i)
{
    const struct pool_block x = pool->block[i];
    const double asked = pool->free_at;
    pool->block[i] = pool->block[--pool->count];
    pool->idle -= x.bytes;
    pool->leaving += x.bytes;
    pthread_mutex_unlock(&pool->lock);
    CUDA(cuMemFree)(x.ptr); /* fails only with the device itself, as the next call will find */
    pthread_mutex_lock(&pool->lock);
    pool->leaving -= x.bytes;
    pool->total -= x.bytes;
    if (pool->free_at == asked) /* else it has been counted */
        pool->free_bytes += x.bytes;
    pthread_cond_broadcast(&pool->freed);
}

/* The first block that has been idle since then or longer; -1: none. What is there when the process ends, the driver frees. */
static int find_idle_since(struct pool *pool, double since)
{
    for (int i = 0; i < pool->count && !gpu_is_gone(); i++)
        if (!pool->block[i].used && pool->block[i].idle_since <= since)
            return i;
    return -1;
}

static void free_idle_since(struct pool *pool, double since)
{
    int i;
    while ((i = find_idle_since(pool, since)) >= 0)
        free_block(pool, i);
}

/* What other threads are giving back is waited for. */
static void free_idle(struct pool *pool)
{
    free_idle_since(pool, accel_now_ms());
    while (pool->leaving > 0)
        pthread_cond_wait(&pool->freed, &pool->lock);
}

/* The largest first: to get them anew costs least beside what is done with them. */
static void keep_idle_small(struct pool *pool, int part)
{
    while (pool->idle > pool->free_bytes / part && !gpu_is_gone()) {
        int largest = -1;
        for (int i = 0; i < pool->count; i++)
            if (!pool->block[i].used &&
                (largest < 0 || pool->block[i].bytes > pool->block[largest].bytes))
                largest = i;
        free_block(pool, largest);
    }
}

/* ---- Getting ---- */

static void ask_for_free(struct pool *pool)
{
    size_t left = 0, all = 0;
    if (CUDA(cuMemGetInfo)(&left, &all) == CUDA_SUCCESS)
        pool->free_bytes = (int64_t)left;
    pool->free_at = accel_now_ms();
}

static struct pool_block *best_idle(struct pool *pool, int64_t bytes)
{
    struct pool_block *best = NULL;
    for (int i = 0; i < pool->count; i++)
        if (!pool->block[i].used && pool->block[i].bytes >= bytes &&
            pool->block[i].bytes <= 2 * bytes && (!best || pool->block[i].bytes < best->bytes))
            best = &pool->block[i];
    return best;
}

static bool has_room_for(const struct cuda_device *device, int64_t bytes)
{
    const struct pool *pool = &device->pool;
    return pool->total + bytes <= device->budget && pool->count + pool->coming < POOL_BLOCKS;
}

/* With the lock, which is let go while the driver is asked: a new block, in use. */
static enum gpu_status allocate(struct pool *pool, int64_t bytes, CUdeviceptr *ptr)
{
    pool->total += bytes;
    pool->coming++;
    pthread_mutex_unlock(&pool->lock);
    enum gpu_status status = GPU_CHECK(cuMemAlloc, ptr, (size_t)bytes);
    pthread_mutex_lock(&pool->lock);
    pool->coming--;
    if (status == GPU_OK)
        pool->block[pool->count++] = (struct pool_block){*ptr, bytes, true, 0};
    else
        pool->total -= bytes;
    return status;
}

/* With the lock. */
static enum gpu_status get_new(struct cuda_device *device, int64_t bytes, CUdeviceptr *ptr,
                               bool *grew)
{
    struct pool *pool = &device->pool;
    if (!has_room_for(device, bytes))
        free_idle(pool);
    if (!has_room_for(device, bytes))
        return GPU_NO_MEMORY;
    *grew = true;
    const bool more =
        pool->count > 0 || pool->leaving > 0; /* it may have gone by the time that we are refused */
    enum gpu_status status = allocate(pool, bytes, ptr);
    if (status == GPU_NO_MEMORY && (more || pool->count > 0 || pool->leaving > 0)) {
        free_idle(pool);
        status = has_room_for(device, bytes) ? allocate(pool, bytes, ptr) : GPU_NO_MEMORY;
    }
    if (status == GPU_OK)
        ask_for_free(pool);
    return status;
}

enum gpu_status pool_get(struct cuda_device *device, int64_t bytes, CUdeviceptr *block, bool *grew)
{
    struct pool *pool = &device->pool;
    enum gpu_status status = GPU_OK;
    *grew = false;
    if (bytes > device->budget)
        return GPU_NO_MEMORY;
    bytes = round_size(bytes);
    pthread_mutex_lock(&pool->lock);
    struct pool_block *found = best_idle(pool, bytes);
    if (found) {
        found->used = true;
        pool->idle -= found->bytes;
        *block = found->ptr;
    } else {
        CUdeviceptr ptr = 0;
        status = get_new(device, bytes, &ptr, grew);
        if (status == GPU_OK)
            *block = ptr;
    }
    pthread_mutex_unlock(&pool->lock);
    return status;
}

void pool_put(struct cuda_device *device, CUdeviceptr block)
{
    struct pool *pool = &device->pool;
    pthread_mutex_lock(&pool->lock);
    for (int i = 0; i < pool->count; i++)
        if (pool->block[i].ptr == block) {
            pool->block[i].used = false;
            pool->block[i].idle_since = accel_now_ms();
            pool->idle += pool->block[i].bytes;
        }
    pthread_mutex_unlock(&pool->lock);
}

void pool_settle(struct cuda_device *device)
{
    struct pool *pool = &device->pool;
    pthread_mutex_lock(&pool->lock);
    if (pool->idle > pool->free_bytes / STALE_PART && accel_now_ms() - pool->free_at > STALE_MS)
        ask_for_free(pool);
    keep_idle_small(pool, IDLE_PART_LARGE);
    bool any = pool->idle > 0;
    pthread_mutex_unlock(&pool->lock);
    if (any)
        idle_watch(device);
}

bool pool_has_idle(struct cuda_device *device)
{
    struct pool *pool = &device->pool;
    pthread_mutex_lock(&pool->lock);
    bool any = pool->idle > 0;
    pthread_mutex_unlock(&pool->lock);
    return any;
}

bool pool_give_back(struct cuda_device *device)
{
    struct pool *pool = &device->pool;
    pthread_mutex_lock(&pool->lock);
    free_idle_since(pool, accel_now_ms() - IDLE_MS);
    if (pool->idle > 0) {
        ask_for_free(pool);
        keep_idle_small(pool, IDLE_PART);
    }
    bool any = pool->idle > 0;
    pthread_mutex_unlock(&pool->lock);
    return any;
}

int64_t pool_available(struct cuda_device *device)
{
    struct pool *pool = &device->pool;
    pthread_mutex_lock(&pool->lock);
    /* Who needs what is leaving waits for it: get_new(). */
    const int64_t spare = pool->idle + pool->leaving;
    int64_t available = device->budget - (pool->total - spare);
    pool->free_bytes = INT64_MAX / 2; /* where the driver does not tell */
    ask_for_free(pool);
    if (available > pool->free_bytes + spare)
        available = pool->free_bytes + spare;
    pthread_mutex_unlock(&pool->lock);
    return available;
}

void pool_trim(struct cuda_device *device)
{
    struct pool *pool = &device->pool;
    pthread_mutex_lock(&pool->lock);
    free_idle(pool);
    pthread_mutex_unlock(&pool->lock);
}
