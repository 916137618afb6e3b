#define _GNU_SOURCE
#include "block_cache.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "base/thread/clock.h"
#include "base/thread/forks.h"
#include "base/thread/thread_spawn.h"

#ifndef MADV_FREE
#    define MADV_FREE 8
#endif

/* Blocks in use at once: calls of as many threads. Further ones have none. */
enum { MOST = 16, HUGE_BYTES = 2 << 20, STACK_BYTES = 256 << 10 };

#define KEPT_MS 10e3
#define LOOK_S  1

struct cached_block {
    char *memory;
    int64_t bytes;
    bool reused;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
FORKS_LOCK(lock);
static struct cached_block used[MOST], kept;
static double since_ms; /* when it was given back */
static bool watched;    /* a thread will give it back to the kernel */

/* Without the lock: that of a large block takes long. */
static void unmap(struct cached_block block)
{
    if (block.memory)
        munmap(block.memory, (size_t)block.bytes);
}

/* With the lock. */
static struct cached_block take_kept(void)
{
    const struct cached_block block = kept;
    kept = (struct cached_block){NULL, 0, false};
    return block;
}

static void *watch(void *unused)
{
    const struct timespec pause = {LOOK_S, 0};
    bool more = true;
    (void)unused;
    thread_spawn_begin("accel-idle");
    while (more) {
        struct cached_block old = {NULL, 0, false};
        nanosleep(&pause, NULL);
        pthread_mutex_lock(&lock);
        if (accel_now_ms() - since_ms >= KEPT_MS)
            old = take_kept();
        watched = more = kept.memory != NULL;
        pthread_mutex_unlock(&lock);
        unmap(old);
    }
    return NULL;
}

/* In the child of a fork, in which nobody watches it. Another thread may have been about to change
 * it: the child leaves it where it is. */
static void forget_kept_block(void)
{
    take_kept();
    watched = false;
}
FORKS_CHILD(forget_kept_block);

static struct cached_block map(int64_t bytes)
{
    const int64_t whole = (bytes + HUGE_BYTES - 1) / HUGE_BYTES * HUGE_BYTES;
    void *memory =
        mmap(NULL, (size_t)whole, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return (struct cached_block){NULL, 0, false};
    madvise(memory, (size_t)whole, MADV_HUGEPAGE); /* a kernel without them refuses */
    return (struct cached_block){memory, whole, false};
}

/* With the lock. Returns the place of a block in use, or a free place for NULL; NULL: there is
 * none. */
static struct cached_block *find_used(const void *memory)
{
    for (int i = 0; i < MOST; i++)
        if (used[i].memory == memory)
            return &used[i];
    return NULL;
}

/* Puts a new block in a free place, if there is one. */
static void *add_used(struct cached_block block)
{
    pthread_mutex_lock(&lock);
    struct cached_block *place = block.memory ? find_used(NULL) : NULL;
    if (place)
        *place = block;
    pthread_mutex_unlock(&lock);
    if (!place)
        unmap(block);
    return place ? block.memory : NULL;
}

void *block_cache_take(int64_t bytes)
{
    const int before = errno;
    if (bytes < BLOCK_CACHE_LEAST || bytes > INT64_MAX - HUGE_BYTES)
        return NULL;
    pthread_mutex_lock(&lock);
    struct cached_block block = take_kept();
    pthread_mutex_unlock(&lock);
    block.reused = true;
    if (block.bytes < bytes || block.bytes / 2 > bytes) {
        unmap(block); /* two would be more than a call needs */
        block = map(bytes);
    }
    void *memory = add_used(block);
    errno = before;
    return memory;
}

/* Returns whether memory that the process does not use may stay with it: not if its address space
 * is limited, or the kernel counts what is promised. */
static bool may_keep(void)
{
    struct rlimit limit;
    char policy = '0';
    const int fd = open("/proc/sys/vm/overcommit_memory", O_RDONLY | O_CLOEXEC);
    const bool known = fd >= 0 && read(fd, &policy, 1) == 1;
    if (fd >= 0)
        close(fd);
    return (!known || policy != '2') && getrlimit(RLIMIT_AS, &limit) == 0 &&
           limit.rlim_cur == RLIM_INFINITY && getrlimit(RLIMIT_DATA, &limit) == 0 &&
           limit.rlim_cur == RLIM_INFINITY;
}

/* With the lock. Returns whether a thread sees to the block that is kept. */
static bool has_watch(void)
{
    watched = watched || thread_spawn(watch, NULL, STACK_BYTES);
    return watched;
}

/* Keeps a block that is no longer in use, or the one that is kept, whichever is larger. */
static void keep_unused(struct cached_block block)
{
    const bool may = may_keep() && madvise(block.memory, (size_t)block.bytes, MADV_FREE) == 0;
    pthread_mutex_lock(&lock);
    if (may && kept.bytes <= block.bytes && has_watch()) {
        const struct cached_block old = kept;
        kept = block;
        since_ms = accel_now_ms();
        block = old;
    }
    pthread_mutex_unlock(&lock);
    unmap(block);
}

bool block_cache_give_back(void *memory)
{
    const int before = errno;
    struct cached_block block = {NULL, 0, false};
    pthread_mutex_lock(&lock);
    struct cached_block *place = memory ? find_used(memory) : NULL;
    if (place) {
        block = *place;
        *place = (struct cached_block){NULL, 0, false};
    }
    pthread_mutex_unlock(&lock);
    if (block.memory)
        keep_unused(block);
    errno = before;
    return block.memory != NULL;
}

int64_t block_cache_bytes(void)
{
    pthread_mutex_lock(&lock);
    const int64_t bytes = kept.bytes;
    pthread_mutex_unlock(&lock);
    return bytes;
}

int64_t block_cache_reused_bytes(void)
{
    int64_t bytes = 0;
    pthread_mutex_lock(&lock);
    for (int i = 0; i < MOST; i++)
        bytes += used[i].reused ? used[i].bytes : 0;
    pthread_mutex_unlock(&lock);
    return bytes;
}
