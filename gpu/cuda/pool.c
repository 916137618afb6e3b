#include "pool.h"

#include <pthread.h>

#include "base/clock.h"
#include "idle.h"

/* Three operands a call, a few calls at once, and some idle ones. */
#define BLOCKS_MAX 256

static struct block {
    CUdeviceptr ptr;
    int64_t bytes;
    bool used;
    double idle_since; /* milliseconds; where it is not used */
} blocks[BLOCKS_MAX];
static int count, coming; /* coming: blocks that the driver is being asked for */
/* Bytes: of all, with what comes and leaves; of idle blocks; of those that are being freed. */
static int64_t total, idle, leaving;

/* What the driver had left when it was asked last, in milliseconds of the clock. */
static int64_t free_bytes;
static double free_at;

/* So long a block lies idle. */
#define IDLE_MS 1000
/* Idle blocks take no more than a part of what is free beside them: what the program's own allocation does not find is little. What is
 * beyond the small part goes back soon, by the idle thread; what is beyond the large one, before the call returns. */
#define IDLE_PART       8
#define IDLE_PART_LARGE 4
/* An old answer is not believed any more, where idle blocks are not next to nothing. */
#define STALE_MS   50
#define STALE_PART 64
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t freed = PTHREAD_COND_INITIALIZER;

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
static void free_block(int i)
{
    const struct block x = blocks[i];
    const double asked = free_at;
    blocks[i] = blocks[--count];
    idle -= x.bytes;
    leaving += x.bytes;
    pthread_mutex_unlock(&lock);
    CUDA(cuMemFree)(x.ptr); /* fails only with the device itself, as the next call will find */
    pthread_mutex_lock(&lock);
    leaving -= x.bytes;
    total -= x.bytes;
    if (free_at == asked) /* else it has been counted */
        free_bytes += x.bytes;
    pthread_cond_broadcast(&freed);
}

/* The first block that has been idle since then or longer; -1: none. What is there when the process ends, the driver frees. */
static int find_idle_since(double since)
{
    for (int i = 0; i < count && !gpu_is_gone(); i++)
        if (!blocks[i].used && blocks[i].idle_since <= since)
            return i;
    return -1;
}

static void free_idle_since(double since)
{
    int i;
    while ((i = find_idle_since(since)) >= 0)
        free_block(i);
}

/* What other threads are giving back is waited for. */
static void free_idle(void)
{
    free_idle_since(accel_now_ms());
    while (leaving > 0)
        pthread_cond_wait(&freed, &lock);
}

/* The largest first: to get them anew costs least beside what is done with them. */
static void keep_idle_small(int part)
{
    while (idle > free_bytes / part && !gpu_is_gone()) {
        int largest = -1;
        for (int i = 0; i < count; i++)
            if (!blocks[i].used && (largest < 0 || blocks[i].bytes > blocks[largest].bytes))
                largest = i;
        free_block(largest);
    }
}

/* ---- Getting ---- */

static void ask_for_free(void)
{
    size_t left = 0, all = 0;
    if (CUDA(cuMemGetInfo)(&left, &all) == CUDA_SUCCESS)
        free_bytes = (int64_t)left;
    free_at = accel_now_ms();
}

static struct block *best_idle(int64_t bytes)
{
    struct block *best = NULL;
    for (int i = 0; i < count; i++)
        if (!blocks[i].used && blocks[i].bytes >= bytes && blocks[i].bytes <= 2 * bytes &&
            (!best || blocks[i].bytes < best->bytes))
            best = &blocks[i];
    return best;
}

static bool has_room_for(int64_t bytes)
{
    return total + bytes <= gpu_device.budget && count + coming < BLOCKS_MAX;
}

/* With the lock, which is let go while the driver is asked: a new block, in use. */
static enum gpu_status allocate(int64_t bytes, CUdeviceptr *ptr)
{
    total += bytes;
    coming++;
    pthread_mutex_unlock(&lock);
    enum gpu_status status = GPU_CHECK(cuMemAlloc, ptr, (size_t)bytes);
    pthread_mutex_lock(&lock);
    coming--;
    if (status == GPU_OK)
        blocks[count++] = (struct block){*ptr, bytes, true, 0};
    else
        total -= bytes;
    return status;
}

/* With the lock. */
static enum gpu_status get_new(int64_t bytes, CUdeviceptr *ptr, bool *grew)
{
    if (!has_room_for(bytes))
        free_idle();
    if (!has_room_for(bytes))
        return GPU_NO_MEMORY;
    *grew = true;
    enum gpu_status status = allocate(bytes, ptr);
    if (status == GPU_NO_MEMORY && (count > 0 || leaving > 0)) {
        free_idle();
        status = has_room_for(bytes) ? allocate(bytes, ptr) : GPU_NO_MEMORY;
    }
    if (status == GPU_OK)
        ask_for_free();
    return status;
}

enum gpu_status pool_get(int64_t bytes, CUdeviceptr *block, bool *grew)
{
    enum gpu_status status = GPU_OK;
    *grew = false;
    if (bytes > gpu_device.budget)
        return GPU_NO_MEMORY;
    bytes = round_size(bytes);
    pthread_mutex_lock(&lock);
    struct block *found = best_idle(bytes);
    if (found) {
        found->used = true;
        idle -= found->bytes;
        *block = found->ptr;
    } else {
        CUdeviceptr ptr = 0;
        status = get_new(bytes, &ptr, grew);
        if (status == GPU_OK)
            *block = ptr;
    }
    pthread_mutex_unlock(&lock);
    return status;
}

void pool_put(CUdeviceptr block)
{
    pthread_mutex_lock(&lock);
    for (int i = 0; i < count; i++)
        if (blocks[i].ptr == block) {
            blocks[i].used = false;
            blocks[i].idle_since = accel_now_ms();
            idle += blocks[i].bytes;
        }
    pthread_mutex_unlock(&lock);
}

void pool_settle(void)
{
    pthread_mutex_lock(&lock);
    if (idle > free_bytes / STALE_PART && accel_now_ms() - free_at > STALE_MS)
        ask_for_free();
    keep_idle_small(IDLE_PART_LARGE);
    bool any = idle > 0;
    pthread_mutex_unlock(&lock);
    if (any)
        idle_watch();
}

bool pool_has_idle(void)
{
    pthread_mutex_lock(&lock);
    bool any = idle > 0;
    pthread_mutex_unlock(&lock);
    return any;
}

bool pool_give_back(void)
{
    pthread_mutex_lock(&lock);
    free_idle_since(accel_now_ms() - IDLE_MS);
    if (idle > 0) {
        ask_for_free();
        keep_idle_small(IDLE_PART);
    }
    bool any = idle > 0;
    pthread_mutex_unlock(&lock);
    return any;
}

int64_t pool_available(void)
{
    pthread_mutex_lock(&lock);
    int64_t available = gpu_device.budget - (total - idle);
    free_bytes = INT64_MAX / 2; /* where the driver does not tell */
    ask_for_free();
    if (available > free_bytes + idle)
        available = free_bytes + idle;
    pthread_mutex_unlock(&lock);
    return available;
}

void pool_trim(void)
{
    pthread_mutex_lock(&lock);
    free_idle();
    pthread_mutex_unlock(&lock);
}
