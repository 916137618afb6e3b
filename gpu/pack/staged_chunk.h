/*
 * A chunk of a matrix on its way through a pinned buffer: the copy pool (base/thread/copy_pool.h)
 * packs it there, or unpacks it from there, as a whole or in parts. A digest and a scan of the
 * numbers are made in the same pass; whoever takes the parts over in their order joins what they
 * have seen.
 */
#ifndef ACCEL_STAGED_CHUNK_H
#define ACCEL_STAGED_CHUNK_H

#include "chunks.h"

/* Threads help with copies of at least this: one thread takes several times as long for it as to
 * wake another up. */
#define PACK_HELPED_BYTES (1 << 20)

/* What is larger does not stay in the processor's caches. */
#define PACK_STREAMED_BYTES (4 << 20)

struct staged_chunk {
    const struct host_rectangle *host; /* the matrix */
    int64_t device_ld, bytes;          /* of its packed form; of each of its chunks, but the last */
    struct pack_chunk chunk;
    char *packed; /* its packed form */
    int64_t ld;   /* of that */
    char *old;    /* gets what unpacking overwrites, packed by the matrix's rows; or NULL */
    int parts;    /* that are done one by one; 1: the chunk is one task */
    struct gpu_key digest; /* of the parts that are taken; {0, 0} at first */
};

/* Returns a chunk of a matrix, by its number: one task, whose packed form is to be set. */
static inline struct staged_chunk staged_chunk_at(const struct host_rectangle *host,
                                                  int64_t device_ld, int64_t bytes, int64_t number)
{
    return (struct staged_chunk){.host = host,
                                 .device_ld = device_ld,
                                 .bytes = bytes,
                                 .chunk = pack_chunk(host, device_ld, bytes, number),
                                 .parts = 1};
}

/* Returns a part: see pack_part(). */
static inline struct pack_chunk staged_chunk_part(const struct staged_chunk *c, int64_t number)
{
    return pack_part(c->host, c->device_ld, c->bytes, &c->chunk, number);
}

/* What one task has seen. */
struct pack_seen {
    struct gpu_scan scan;
    struct gpu_key digest;
};

/* Does a task of a chunk, and tells what it has seen. To read is to look at `packed`, which may be
 * the matrix itself, alone. */
enum pack_action { PACK_TO_BUFFER, PACK_FROM_BUFFER, PACK_READ };
void staged_chunk_do(const struct staged_chunk *chunk, enum pack_action action, int task,
                     struct pack_seen *seen);

/* Joins what a task has seen to the matrix's scan and to the chunk's digest. */
void staged_chunk_take(struct staged_chunk *chunk, int task, const struct pack_seen *seen);

/* Sets a matrix's digest, if one is wanted, to what it is before the first chunk: the shape's. */
void pack_digest_shape(const struct host_rectangle *r, int64_t device_ld);

/* Joins the digest of a chunk that is done to its matrix's, if one is wanted. */
static inline void pack_digest_add(const struct host_rectangle *r, struct gpu_key chunk)
{
    if (r->digest)
        *r->digest = gpu_digest_join(*r->digest, chunk);
}

#endif
