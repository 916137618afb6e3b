/*
 * Device memory, kept from call to call: an allocation costs more than a small product (LIBXSTREAM
 * measured 6.7 times at n = 4096). The program may want device memory, too, so little stays idle,
 * and not for long. Each device has its pool. Thread-safe; the device's context must be current.
 * While one thread has the driver allocate or free, which may wait for the program's work on the
 * device, other threads can take and put back blocks.
 */
#ifndef ACCEL_POOL_H
#define ACCEL_POOL_H

#include <pthread.h>

#include "gpu/cuda/api/cuda_api.h"
#include "gpu/device/work.h"
#include "lent_memory.h"

struct cuda_device;

/* Enough for three operands a call, a few calls at once, and some idle blocks. */
enum { POOL_BLOCKS = 256 };

/* For pool.c alone. */
struct pool {
    pthread_mutex_t lock;
    pthread_cond_t freed;
    struct pool_block {
        CUdeviceptr ptr;
        int64_t bytes;
        uint64_t owner;    /* the user whose bytes are in it (gpu_user.id) */
        uint64_t taker;    /* the user whose calls have it */
        int users;         /* calls that have it; more than one only of a cached block */
        double idle_since; /* in milliseconds of the clock, if it has no user */
        bool lent;         /* other devices may use it */
        bool cached;       /* it is in the device cache, under the key */
        struct gpu_key key;
    } block[POOL_BLOCKS];
    uint64_t first_owner; /* the first user who has asked; 0: nobody has, or the process's own */
    bool shared;          /* others have: what the driver gives may have been anybody's */
    int count, coming;    /* coming: blocks that the driver is being asked for */
    /* Bytes: of all blocks, with those that the driver is allocating or freeing; of idle blocks; of
     * those that it is freeing. */
    int64_t total, idle, leaving;
    int64_t free_bytes; /* the driver's free memory when it was asked last */
    double free_at;     /* when that was, in milliseconds of the clock */
    struct lent_memory lending;
};

/* Make a new device's pool, empty; and end it when no block is left. The device is zero elsewhere;
 * needs no context. Not thread-safe. */
void pool_begin(struct cuda_device *device);
void pool_end(struct cuda_device *device);

/* What is asked for: at least so many bytes, for a user, aligned for any operand. lent: other
 * devices may use it, those that lent_memory_open_to() has been called for; such a block goes to
 * nobody who does not ask for one. */
struct pool_wish {
    int64_t bytes;
    struct gpu_user user;
    bool lent;
};
struct pool_taken {
    CUdeviceptr block;
    int64_t bytes; /* of the block, at least those that were wished for */
    bool grew;     /* the driver was asked for a new block */
    bool unclean;  /* there may be bytes of another user's in it: see pool_cleared() */
};

/* Takes a block. Returns GPU_NO_MEMORY beyond the budget, or what the user may have, or if the
 * driver has no more; GPU_UNSUPPORTED if the device has no memory to lend. As long as one user
 * alone asks, no block is unclean. */
enum gpu_status pool_take(struct cuda_device *device, const struct pool_wish *wish,
                          struct pool_taken *taken);

/* The caller has cleared all of a block that was unclean, and waited for that: it is the user's.
 * One that is put back before stays unclean for everybody. */
void pool_cleared(struct cuda_device *device, CUdeviceptr block, uint64_t user);

/* The same for the process itself, which alone writes there and reads what it has written. */
enum gpu_status pool_get(struct cuda_device *device, int64_t bytes, CUdeviceptr *block, bool *grew);
enum gpu_status pool_get_lent(struct cuda_device *device, int64_t bytes, CUdeviceptr *block,
                              bool *grew);

/* Finds a user's block that is cached under a key, and takes it; others may have it at the same
 * time, and none may write to it. Returns false if there is none of so many bytes at least. */
bool pool_find(struct cuda_device *device, const struct gpu_key *key, uint64_t user, int64_t bytes,
               CUdeviceptr *block);

/* Returns whether a block of a user's is cached under a key. Needs no context. */
bool pool_has(struct cuda_device *device, const struct gpu_key *key, uint64_t user);

/* Caches a block that the caller has, under a key, which tells its contents: when it is put back it
 * stays idle for longer than others, though not where memory is short, and pool_take() does not
 * give it to anybody. Does nothing if its user has one with this key, nor with lent memory. */
void pool_cache(struct cuda_device *device, CUdeviceptr block, const struct gpu_key *key);

/* Invalidates what a user has cached under a key: its block is an ordinary one from here on. */
void pool_invalidate(struct cuda_device *device, const struct gpu_key *key, uint64_t user);

/* Puts a block back. No work that uses it may be pending on any stream. */
void pool_put(struct cuda_device *device, CUdeviceptr block);

/* Returns the bytes that a user could take: idle blocks, and the driver's free memory within the
 * budget, or what is left of what the user may have. */
int64_t pool_available(struct cuda_device *device, const struct gpu_user *user);

/* Lists the first words of the keys under which a user has cached blocks, `most` at most. Returns
 * how many. Needs no context. */
int pool_list_cached(struct cuda_device *device, uint64_t user, uint64_t *word, int most);

/* Counts the bytes of a user's blocks, NULL: of all, and of those that are cached. Needs no
 * context. */
void pool_count(struct cuda_device *device, const uint64_t *user, int64_t *held, int64_t *cached);

/* Call it after a call has put its blocks back. Frees idle blocks, the largest first, while they
 * are more than a quarter of the driver's free memory, which an allocation of the program's could
 * need; the idle thread (idle.h) later frees those beyond an eighth, and those that have been idle
 * for a second, or for ten if they are cached. Cached blocks are the last, and of those the one
 * that was used last. */
void pool_settle(struct cuda_device *device);

/* For the idle thread: returns whether a block is idle, in any context; frees those that the idle
 * thread must, and returns whether one is still idle. */
bool pool_has_idle(struct cuda_device *device);
bool pool_give_back(struct cuda_device *device);

/* Gives all idle blocks back to the driver; waits for those that other threads are giving back,
 * too. */
void pool_trim(struct cuda_device *device);

#endif
