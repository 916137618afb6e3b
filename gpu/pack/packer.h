/*
 * A process whose memory this one cannot read, and whose calls it runs (`accel serve`): it packs
 * and unpacks its matrices itself, when it is asked to, through memory that both share. Addresses
 * of its matrices stand for its memory here: nobody reads or writes there. A packer is of one call
 * at a time, and of the thread that runs it.
 */
#ifndef ACCEL_PACKER_H
#define ACCEL_PACKER_H

#include "base/thread/copy_pool.h"
#include "staged_chunk.h"

/* The shared memory: a wide ring of pinned buffers, and what the device does not use. */
#define PACKER_RING_BYTES ((int64_t)48 << 20)
#define PACKER_BYTES      (PACKER_RING_BYTES + ((int64_t)1 << 20))

struct packer {
    /* Has it do a task of a chunk, whose `packed` is in `memory`, unless it only reads. At most
     * COPY_POOL_TASKS are not taken. */
    void (*post)(struct packer *packer, const struct staged_chunk *chunk, enum pack_action action,
                 int part);
    /* Looks how many of its tasks are done, from the first on: `done`. Waits for a moment if those
     * below `wanted` are not. */
    void (*look)(struct packer *packer, int64_t wanted);
    /* What a task that is done has seen. */
    void (*take)(const struct packer *packer, int64_t number, struct pack_seen *seen);
    const char *first; /* the addresses that stand for its memory */
    int64_t bytes;
    char *memory;         /* PACKER_BYTES */
    bool pinned;          /* the device may copy from there and to there: gpu_unpin() */
    int helpers;          /* threads that may help it */
    int64_t posted, done; /* tasks; as far as is known */
    /* It answers no more, or wrongly: its tasks count as done, and the call ends without a
     * result. */
    bool gone;
    bool lost; /* the device may still copy there, after a failure: no other call may use the
                  memory, and nobody free it */
};

/* Returns who packs what is at an address: NULL: this process. */
static inline struct packer *packer_of(struct packer *packer, const void *address)
{
    const char *at = address;
    return packer && at >= packer->first && at < packer->first + packer->bytes ? packer : NULL;
}

/* Returns whether a task is done, by its number. Does not wait. */
bool packer_has_done(struct packer *packer, int64_t number);

/* Waits for a moment until it is. */
void packer_await(struct packer *packer, int64_t number);

/* Copy a matrix of its to memory of this process, packed (ld = rows), and back. One with a leading
 * dimension that is 1 more than the matrix's, and one row, is a diagonal. Return false if the
 * packer is gone. */
bool packer_read(struct packer *packer, const struct host_rectangle *from, void *to);
bool packer_write(struct packer *packer, const struct host_rectangle *to, const void *from);

/* Waits until all of its tasks are done. */
void packer_finish(struct packer *packer);

#endif
