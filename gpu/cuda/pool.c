#define _GNU_SOURCE
#include "pool.h"

#include "base/thread/clock.h"
#include "device.h"
#include "idle.h"
#include "gpu/cache/admission.h"

/* A block that has been idle for so long goes back to the driver, by the idle thread. */
#define IDLE_MS   1000
#define CACHED_MS 10000
/* Idle blocks are at most a part of the driver's free memory, so that the program's own allocations
 * lack little. The idle thread soon gives back the blocks beyond an eighth; a call gives back those
 * beyond a quarter before it returns. */
#define IDLE_PART       8
#define IDLE_PART_LARGE 4
/* Asks the driver for its free memory again after 50 ms, unless idle blocks are less than a 64th of
 * the last answer. */
#define STALE_MS   50
#define STALE_PART 64

/* A block may have bytes of several users. No user has this number. */
#define OWNER_UNKNOWN UINT64_MAX

void pool_begin(struct cuda_device *device)
{
    pthread_mutex_init(&device->pool.lock, NULL);
    pthread_cond_init(&device->pool.freed, NULL);
    lent_memory_begin(&device->pool.lending, device->number);
}

void pool_end(struct cuda_device *device)
{
    lent_memory_end(&device->pool.lending);
    pthread_cond_destroy(&device->pool.freed);
    pthread_mutex_destroy(&device->pool.lock);
}

/* Rounds up to 8 steps between powers of two, so that a block serves calls of similar size. */
static int64_t round_size(int64_t bytes)
{
    int64_t step = 4096;
    while (step * 16 <= bytes)
        step *= 2;
    return (bytes + step - 1) / step * step;
}

/* ---- Giving back: with the lock, which is released while the driver frees ---- */

/* Releases the lock for cuMemFree, which waits for all work of the context, the program's too:
 * other threads need not wait with it. */
static void free_block(struct pool *pool, int i)
{
    const struct pool_block x = pool->block[i];
    const double asked = pool->free_at;
    pool->block[i] = pool->block[--pool->count];
    pool->idle -= x.bytes;
    pool->leaving += x.bytes;
    pthread_mutex_unlock(&pool->lock);
    if (x.cached)
        admission_evicted(&x.key);
    if (x.lent)
        lent_memory_give_back(&pool->lending, x.ptr);
    else
        CUDA(cuMemFree)(x.ptr); /* fails only with the device itself, as the next call will find */
    pthread_mutex_lock(&pool->lock);
    pool->leaving -= x.bytes;
    pool->total -= x.bytes;
    if (pool->free_at == asked) /* else a newer answer of the driver has counted the block */
        pool->free_bytes += x.bytes;
    pthread_cond_broadcast(&pool->freed);
}

/* Returns the first block that has been idle since then or longer, or -1; -1 also if the process
 * ends: then the driver frees all. */
static int find_idle_since(struct pool *pool, double since, double cached_since)
{
    for (int i = 0; i < pool->count && !gpu_is_gone(); i++)
        if (pool->block[i].users == 0 &&
            pool->block[i].idle_since <= (pool->block[i].cached ? cached_since : since))
            return i;
    return -1;
}

static void free_idle_since(struct pool *pool, double since, double cached_since)
{
    int i;
    while ((i = find_idle_since(pool, since, cached_since)) >= 0)
        free_block(pool, i);
}

/* Frees all idle blocks, and waits for those that other threads are giving back. */
static void free_idle(struct pool *pool)
{
    const double now = accel_now_ms();
    free_idle_since(pool, now, now);
    while (pool->leaving > 0)
        pthread_cond_wait(&pool->freed, &pool->lock);
}

/* Whether an idle block is to be freed rather than another one: the largest first, since a new
 * allocation costs least beside the work on a large block; then cached ones, the one first that has
 * been idle for longest. */
static bool goes_before(const struct pool_block *a, const struct pool_block *b)
{
    if (a->cached != b->cached)
        return b->cached;
    return a->cached ? a->idle_since < b->idle_since : a->bytes > b->bytes;
}

/* Frees the idle block that is to go first. Returns false if there is none, or the process ends. */
static bool free_next(struct pool *pool)
{
    int next = -1;
    for (int i = 0; i < pool->count && !gpu_is_gone(); i++)
        if (pool->block[i].users == 0 &&
            (next < 0 || goes_before(&pool->block[i], &pool->block[next])))
            next = i;
    if (next >= 0)
        free_block(pool, next);
    return next >= 0;
}

/* Frees idle blocks beyond a part of the driver's free memory. */
static void keep_idle_small(struct pool *pool, int part)
{
    while (pool->idle > pool->free_bytes / part && free_next(pool))
        continue;
}

/* ---- Getting ---- */

static void ask_for_free(struct pool *pool)
{
    size_t left = 0, all = 0;
    if (CUDA(cuMemGetInfo)(&left, &all) == CUDA_SUCCESS)
        pool->free_bytes = (int64_t)left;
    pool->free_at = accel_now_ms();
}

/* Whether a block is to be taken rather than another one: the user's own needs no clearing. */
static bool fits_better(const struct pool_block *a, const struct pool_block *b, uint64_t user)
{
    const bool is_own = a->owner == user;
    return is_own != (b->owner == user) ? is_own : a->bytes < b->bytes;
}

static struct pool_block *best_idle(struct pool *pool, const struct pool_wish *wish, int64_t bytes)
{
    struct pool_block *best = NULL;
    for (int i = 0; i < pool->count; i++) {
        struct pool_block *const x = &pool->block[i];
        if (x->users == 0 && !x->cached && x->lent == wish->lent && x->bytes >= bytes &&
            x->bytes <= 2 * bytes && (!best || fits_better(x, best, wish->user.id)))
            best = x;
    }
    return best;
}

static bool has_room_for(const struct cuda_device *device, int64_t bytes)
{
    const struct pool *pool = &device->pool;
    return pool->total + bytes <= device->budget && pool->count + pool->coming < POOL_BLOCKS;
}

/* With the lock, which it releases meanwhile: has the driver allocate a new block, in use. */
static enum gpu_status allocate(struct pool *pool, int64_t bytes, const struct pool_wish *wish,
                                CUdeviceptr *ptr)
{
    pool->total += bytes;
    pool->coming++;
    pthread_mutex_unlock(&pool->lock);
    enum gpu_status status = wish->lent ? lent_memory_take(&pool->lending, bytes, ptr)
                                        : GPU_CHECK(cuMemAlloc, ptr, (size_t)bytes);
    pthread_mutex_lock(&pool->lock);
    pool->coming--;
    if (status == GPU_OK)
        pool->block[pool->count++] =
            (struct pool_block){.ptr = *ptr,
                                .bytes = bytes,
                                .owner = pool->shared ? OWNER_UNKNOWN : wish->user.id,
                                .users = 1,
                                .lent = wish->lent};
    else
        pool->total -= bytes;
    return status;
}

/* With the lock. */
static enum gpu_status get_new(struct cuda_device *device, int64_t bytes,
                               const struct pool_wish *wish, struct pool_taken *taken)
{
    struct pool *pool = &device->pool;
    while (!has_room_for(device, bytes) && free_next(pool))
        continue;
    while (!has_room_for(device, bytes) && pool->leaving > 0)
        pthread_cond_wait(&pool->freed, &pool->lock);
    if (!has_room_for(device, bytes))
        return GPU_NO_MEMORY;
    taken->grew = true;
    /* Blocks that are given back may have gone before the driver refuses us. */
    const bool more = pool->count > 0 || pool->leaving > 0;
    enum gpu_status status = allocate(pool, bytes, wish, &taken->block);
    if (status == GPU_NO_MEMORY && (more || pool->count > 0 || pool->leaving > 0)) {
        free_idle(pool);
        status = has_room_for(device, bytes) ? allocate(pool, bytes, wish, &taken->block)
                                             : GPU_NO_MEMORY;
    }
    if (status == GPU_OK)
        ask_for_free(pool);
    return status;
}

/* ---- Users: with the lock ---- */

/* Notes who asks. What the driver has got back may be anybody's as soon as two have asked. */
static void note_user(struct pool *pool, uint64_t user)
{
    if (pool->first_owner == 0)
        pool->first_owner = user;
    pool->shared = pool->shared || pool->first_owner != user;
}

/* Returns the bytes that a user's calls under way have. */
static int64_t used_by(const struct pool *pool, uint64_t user)
{
    int64_t bytes = 0;
    for (int i = 0; i < pool->count; i++)
        if (pool->block[i].users > 0 && pool->block[i].taker == user)
            bytes += pool->block[i].bytes;
    return bytes;
}

/* Returns what a user may take beside what its calls have. */
static int64_t left_to(const struct pool *pool, const struct gpu_user *user)
{
    return user->memory_most > 0 ? user->memory_most - used_by(pool, user->id) : INT64_MAX;
}

static struct pool_block *block_at(struct pool *pool, CUdeviceptr ptr)
{
    for (int i = 0; i < pool->count; i++)
        if (pool->block[i].ptr == ptr)
            return &pool->block[i];
    return NULL;
}

/* ---- A wish ---- */

/* With the lock. */
static enum gpu_status take(struct cuda_device *device, const struct pool_wish *wish,
                            struct pool_taken *taken)
{
    struct pool *pool = &device->pool;
    const int64_t bytes = round_size(wish->bytes);
    note_user(pool, wish->user.id);
    if (wish->bytes > left_to(pool, &wish->user))
        return GPU_NO_MEMORY;
    struct pool_block *found = best_idle(pool, wish, bytes);
    if (found) {
        found->users = 1;
        pool->idle -= found->bytes;
        taken->block = found->ptr;
    } else {
        GPU_TRY(get_new(device, bytes, wish, taken));
        found = block_at(pool, taken->block);
    }
    found->taker = wish->user.id;
    taken->bytes = found->bytes;
    taken->unclean = found->owner != wish->user.id;
    if (taken->unclean)
        found->owner = OWNER_UNKNOWN; /* until it is cleared */
    return GPU_OK;
}

enum gpu_status pool_take(struct cuda_device *device, const struct pool_wish *wish,
                          struct pool_taken *taken)
{
    struct pool *pool = &device->pool;
    *taken = (struct pool_taken){.grew = false};
    if (wish->bytes > device->budget)
        return GPU_NO_MEMORY;
    pthread_mutex_lock(&pool->lock);
    const enum gpu_status status = take(device, wish, taken);
    pthread_mutex_unlock(&pool->lock);
    return status;
}

void pool_cleared(struct cuda_device *device, CUdeviceptr block, uint64_t user)
{
    struct pool *pool = &device->pool;
    pthread_mutex_lock(&pool->lock);
    struct pool_block *const found = block_at(pool, block);
    if (found)
        found->owner = user;
    pthread_mutex_unlock(&pool->lock);
}

static enum gpu_status get(struct cuda_device *device, const struct pool_wish *wish,
                           CUdeviceptr *block, bool *grew)
{
    struct pool_taken taken;
    const enum gpu_status status = pool_take(device, wish, &taken);
    *grew = taken.grew;
    if (status == GPU_OK)
        *block = taken.block;
    return status;
}

enum gpu_status pool_get(struct cuda_device *device, int64_t bytes, CUdeviceptr *block, bool *grew)
{
    return get(device, &(struct pool_wish){.bytes = bytes}, block, grew);
}

enum gpu_status pool_get_lent(struct cuda_device *device, int64_t bytes, CUdeviceptr *block,
                              bool *grew)
{
    return get(device, &(struct pool_wish){.bytes = bytes, .lent = true}, block, grew);
}

void pool_put(struct cuda_device *device, CUdeviceptr block)
{
    struct pool *pool = &device->pool;
    pthread_mutex_lock(&pool->lock);
    for (int i = 0; i < pool->count; i++)
        if (pool->block[i].ptr == block && --pool->block[i].users == 0) {
            pool->block[i].idle_since = accel_now_ms();
            pool->idle += pool->block[i].bytes;
        }
    pthread_mutex_unlock(&pool->lock);
}

/* With the lock. Returns NULL if the user has nothing cached under the key. */
static struct pool_block *find_cached(struct pool *pool, const struct gpu_key *key, uint64_t user)
{
    for (int i = 0; i < pool->count; i++)
        if (pool->block[i].cached && pool->block[i].owner == user &&
            gpu_key_is(&pool->block[i].key, key))
            return &pool->block[i];
    return NULL;
}

bool pool_has(struct cuda_device *device, const struct gpu_key *key, uint64_t user)
{
    struct pool *pool = &device->pool;
    pthread_mutex_lock(&pool->lock);
    const bool has = find_cached(pool, key, user);
    pthread_mutex_unlock(&pool->lock);
    return has;
}

void pool_count(struct cuda_device *device, const uint64_t *user, int64_t *held, int64_t *cached)
{
    struct pool *pool = &device->pool;
    pthread_mutex_lock(&pool->lock);
    *held = user ? 0 : pool->total;
    *cached = 0;
    for (int i = 0; i < pool->count; i++) {
        const struct pool_block *x = &pool->block[i];
        if (user && x->owner != *user)
            continue;
        *held += user ? x->bytes : 0;
        *cached += x->cached ? x->bytes : 0;
    }
    pthread_mutex_unlock(&pool->lock);
}

int pool_list_cached(struct cuda_device *device, uint64_t user, uint64_t *word, int most)
{
    struct pool *pool = &device->pool;
    int count = 0;
    pthread_mutex_lock(&pool->lock);
    for (int i = 0; i < pool->count && count < most; i++)
        if (pool->block[i].cached && pool->block[i].owner == user)
            word[count++] = pool->block[i].key.word[0];
    pthread_mutex_unlock(&pool->lock);
    return count;
}

bool pool_find(struct cuda_device *device, const struct gpu_key *key, uint64_t user, int64_t bytes,
               CUdeviceptr *block)
{
    struct pool *pool = &device->pool;
    pthread_mutex_lock(&pool->lock);
    struct pool_block *found = find_cached(pool, key, user);
    found = found && found->bytes >= bytes ? found : NULL;
    if (found) {
        if (found->users++ == 0)
            pool->idle -= found->bytes;
        found->taker = user;
        *block = found->ptr;
    }
    pthread_mutex_unlock(&pool->lock);
    return found;
}

void pool_cache(struct cuda_device *device, CUdeviceptr block, const struct gpu_key *key)
{
    struct pool *pool = &device->pool;
    pthread_mutex_lock(&pool->lock);
    struct pool_block *const x = block_at(pool, block);
    if (x && !x->lent && x->owner != OWNER_UNKNOWN && !find_cached(pool, key, x->owner)) {
        x->cached = true;
        x->key = *key;
    }
    pthread_mutex_unlock(&pool->lock);
}

void pool_invalidate(struct cuda_device *device, const struct gpu_key *key, uint64_t user)
{
    struct pool *pool = &device->pool;
    pthread_mutex_lock(&pool->lock);
    struct pool_block *found = find_cached(pool, key, user);
    if (found)
        found->cached = false;
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
    const double now = accel_now_ms();
    free_idle_since(pool, now - IDLE_MS, now - CACHED_MS);
    if (pool->idle > 0) {
        ask_for_free(pool);
        keep_idle_small(pool, IDLE_PART);
    }
    bool any = pool->idle > 0;
    pthread_mutex_unlock(&pool->lock);
    return any;
}

int64_t pool_available(struct cuda_device *device, const struct gpu_user *user)
{
    struct pool *pool = &device->pool;
    pthread_mutex_lock(&pool->lock);
    /* Counts blocks that are leaving: get_new() waits for them. */
    const int64_t spare = pool->idle + pool->leaving;
    int64_t available = device->budget - (pool->total - spare);
    pool->free_bytes = INT64_MAX / 2; /* if the driver does not answer */
    ask_for_free(pool);
    if (available > pool->free_bytes + spare)
        available = pool->free_bytes + spare;
    available = accel_min(available, accel_max(left_to(pool, user), 0));
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
