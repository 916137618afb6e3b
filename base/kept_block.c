#define _GNU_SOURCE
#include "kept_block.h"

#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"
#include "forks.h"
#include "quiet_thread.h"

#ifndef MADV_FREE
#    define MADV_FREE 8
#endif

/* Blocks in use at once: calls of as many threads. Further ones have none. */
enum { MOST = 16, HUGE_BYTES = 2 << 20, STACK_BYTES = 256 << 10 };

#define KEPT_MS 10e3
#define LOOK_S  1

struct block {
    char *memory;
    int64_t bytes;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
FORKS_LOCK(lock);
static struct block used[MOST], kept;
static double since_ms; /* when it was given back */
static bool watched;    /* a thread will give it back to the kernel */

static void unmap(struct block *block)
{
    if (block->memory)
        munmap(block->memory, (size_t)block->bytes);
    *block = (struct block){NULL, 0};
}

static void *watch(void *unused)
{
    const struct timespec pause = {LOOK_S, 0};
    bool more = true;
    int none;
    (void)unused;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &none);
    pthread_setname_np(pthread_self(), "accel-idle");
    while (more) {
        nanosleep(&pause, NULL);
        pthread_mutex_lock(&lock);
        if (accel_now_ms() - since_ms >= KEPT_MS)
            unmap(&kept);
        watched = more = kept.memory != NULL;
        pthread_mutex_unlock(&lock);
    }
    return NULL;
}

/* In the child of a fork, in which nobody watches it. Another thread may have been about to change it: the child leaves it where it is. */
static void forget(void)
{
    kept = (struct block){NULL, 0};
    watched = false;
}
FORKS_CHILD(forget);

static struct block map(int64_t bytes)
{
    const int64_t whole = (bytes + HUGE_BYTES - 1) / HUGE_BYTES * HUGE_BYTES;
    void *memory =
        mmap(NULL, (size_t)whole, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return (struct block){NULL, 0};
    madvise(memory, (size_t)whole, MADV_HUGEPAGE); /* a kernel without them refuses */
    return (struct block){memory, whole};
}

/* With the lock. Returns the place of a block in use, or a free place for NULL; NULL: there is none. */
static struct block *find(const void *memory)
{
    for (int i = 0; i < MOST; i++)
        if (used[i].memory == memory)
            return &used[i];
    return NULL;
}

void *kept_block_take(int64_t bytes)
{
    const int before = errno;
    void *memory = NULL;
    if (bytes < KEPT_BLOCK_LEAST || bytes > INT64_MAX - HUGE_BYTES)
        return NULL;
    pthread_mutex_lock(&lock);
    struct block *place = find(NULL);
    if (place && kept.memory && kept.bytes >= bytes && kept.bytes / 2 <= bytes) {
        *place = kept;
        kept = (struct block){NULL, 0};
    } else if (place) {
        unmap(&kept); /* two would be more than a call needs */
        *place = map(bytes);
    }
    memory = place ? place->memory : NULL;
    pthread_mutex_unlock(&lock);
    errno = before;
    return memory;
}

/* With the lock. */
static void keep(struct block *block)
{
    const bool free_to_take = madvise(block->memory, (size_t)block->bytes, MADV_FREE) == 0;
    watched = watched || (free_to_take && quiet_thread(watch, NULL, STACK_BYTES));
    if (!free_to_take || !watched || (kept.memory && kept.bytes > block->bytes)) {
        unmap(block);
        return;
    }
    unmap(&kept);
    kept = *block;
    since_ms = accel_now_ms();
    *block = (struct block){NULL, 0};
}

bool kept_block_give_back(void *memory)
{
    const int before = errno;
    pthread_mutex_lock(&lock);
    struct block *block = memory ? find(memory) : NULL;
    if (block)
        keep(block);
    pthread_mutex_unlock(&lock);
    errno = before;
    return block != NULL;
}

int64_t kept_block_bytes(void)
{
    pthread_mutex_lock(&lock);
    const int64_t bytes = kept.bytes;
    pthread_mutex_unlock(&lock);
    return bytes;
}
