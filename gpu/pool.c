#include "pool.h"

#include <pthread.h>

/* Three operands a call, a few calls at once, and some idle ones. */
#define BLOCKS_MAX 256

static struct block {
    CUdeviceptr ptr;
    int64_t bytes;
    bool used;
} blocks[BLOCKS_MAX];
static int count;
static int64_t total;
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

static void free_idle(void)
{
    int kept = 0;
    for (int i = 0; i < count; i++) {
        if (blocks[i].used) {
            blocks[kept++] = blocks[i];
        } else {
            total -= blocks[i].bytes;
            CUDA(cuMemFree)(blocks[i].ptr); /* fails only with the device itself */
        }
    }
    count = kept;
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
                *found = (struct block){ptr, bytes, false};
                total += bytes;
            }
        }
    }
    if (status == GPU_OK) {
        found->used = true;
        *block = found->ptr;
    }
    pthread_mutex_unlock(&lock);
    return status;
}

void pool_put(CUdeviceptr block)
{
    pthread_mutex_lock(&lock);
    for (int i = 0; i < count; i++)
        if (blocks[i].ptr == block)
            blocks[i].used = false;
    pthread_mutex_unlock(&lock);
}

int64_t pool_available(void)
{
    size_t free_bytes = 0, all = 0;
    int64_t used = 0;
    pthread_mutex_lock(&lock);
    for (int i = 0; i < count; i++)
        used += blocks[i].used ? blocks[i].bytes : 0;
    int64_t idle = total - used;
    pthread_mutex_unlock(&lock);
    int64_t available = gpu_device.budget - used;
    if (CUDA(cuMemGetInfo)(&free_bytes, &all) == CUDA_SUCCESS &&
        available > (int64_t)free_bytes + idle)
        available = (int64_t)free_bytes + idle;
    return available;
}

void pool_trim(void)
{
    pthread_mutex_lock(&lock);
    free_idle();
    pthread_mutex_unlock(&lock);
}
