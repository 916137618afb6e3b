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
static int count;
static int64_t total, used;

/* What the driver had left when it was asked last, in milliseconds of the clock. */
static int64_t free_bytes;
static double free_at;

/* So long a block lies idle. */
#define IDLE_MS 1000
/* Idle blocks take no more than a part of what is free beside them: what the program's own allocation does not find is little. */
#define IDLE_PART 8
/* An old answer is not believed any more, where idle blocks are not next to nothing. */
#define STALE_MS   50
#define STALE_PART 64
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* Sizes that recur: 1/8 steps between powers of two, so that a block serves calls of similar size.
 */
static int64_t round_size(int64_t bytes)
{
    int64_t step = 4096;
    while (step * 16 <= bytes)
        step *= 2;
    return (bytes + step - 1) / step * step;
}

static void free_block(int i)
{
    total -= blocks[i].bytes;
    free_bytes += blocks[i].bytes;
    CUDA(cuMemFree)(blocks[i].ptr); /* fails only with the device itself */
    blocks[i] = blocks[--count];
}

/* Those that have been idle since then or longer. */
static void free_idle_since(double since)
{
    for (int i = count - 1; i >= 0; i--)
        if (!blocks[i].used && blocks[i].idle_since <= since)
            free_block(i);
}

static void free_idle(void)
{
    free_idle_since(accel_now_ms());
}

static void ask_for_free(void)
{
    size_t left = 0, all = 0;
    if (CUDA(cuMemGetInfo)(&left, &all) == CUDA_SUCCESS)
        free_bytes = (int64_t)left;
    free_at = accel_now_ms();
}

/* The largest first: to get them anew costs least beside what is done with them. */
static void keep_idle_small(void)
{
    while (total - used > free_bytes / IDLE_PART) {
        int largest = -1;
        for (int i = 0; i < count; i++)
            if (!blocks[i].used && (largest < 0 || blocks[i].bytes > blocks[largest].bytes))
                largest = i;
        free_block(largest);
    }
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

enum gpu_status pool_get(int64_t bytes, CUdeviceptr *block, bool *grew)
{
    enum gpu_status status = GPU_OK;
    *grew = false;
    if (bytes > gpu_device.budget)
        return GPU_NO_MEMORY;
    bytes = round_size(bytes);
    pthread_mutex_lock(&lock);
    struct block *found = best_idle(bytes);
    if (!found) {
        if (total + bytes > gpu_device.budget || count == BLOCKS_MAX)
            free_idle();
        if (total + bytes > gpu_device.budget || count == BLOCKS_MAX) {
            status = GPU_NO_MEMORY;
        } else {
            CUdeviceptr ptr = 0;
            *grew = true;
            status = GPU_CHECK(cuMemAlloc, &ptr, (size_t)bytes);
            if (status == GPU_NO_MEMORY && count > 0) {
                free_idle();
                status = GPU_CHECK(cuMemAlloc, &ptr, (size_t)bytes);
            }
            if (status == GPU_OK) {
                found = &blocks[count++];
                *found = (struct block){ptr, bytes, false, 0};
                total += bytes;
                ask_for_free();
            }
        }
    }
    if (status == GPU_OK) {
        found->used = true;
        used += found->bytes;
        *block = found->ptr;
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
            used -= blocks[i].bytes;
        }
    pthread_mutex_unlock(&lock);
}

void pool_settle(void)
{
    pthread_mutex_lock(&lock);
    int64_t idle = total - used;
    if (idle > free_bytes / STALE_PART && accel_now_ms() - free_at > STALE_MS)
        ask_for_free();
    keep_idle_small();
    bool any = total > used;
    pthread_mutex_unlock(&lock);
    if (any)
        idle_watch();
}

bool pool_has_idle(void)
{
    pthread_mutex_lock(&lock);
    bool any = total > used;
    pthread_mutex_unlock(&lock);
    return any;
}

bool pool_give_back(void)
{
    pthread_mutex_lock(&lock);
    free_idle_since(accel_now_ms() - IDLE_MS);
    if (total > used) {
        ask_for_free();
        keep_idle_small();
    }
    bool any = total > used;
    pthread_mutex_unlock(&lock);
    return any;
}

int64_t pool_available(void)
{
    pthread_mutex_lock(&lock);
    int64_t available = gpu_device.budget - used;
    free_bytes = INT64_MAX / 2; /* where the driver does not tell */
    ask_for_free();
    if (available > free_bytes + total - used)
        available = free_bytes + total - used;
    pthread_mutex_unlock(&lock);
    return available;
}

void pool_trim(void)
{
    pthread_mutex_lock(&lock);
    free_idle();
    pthread_mutex_unlock(&lock);
}
