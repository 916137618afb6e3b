/*
 * A job of the crew (base/thread/crew.h) on one matrix in host memory: it is packed, unpacked or
 * digested in pieces, and a piece in parts. A digest and a scan of the numbers are made in the same
 * pass.
 *
 * The calling thread opens pieces, and takes over what their parts have seen, in their order. A job
 * belongs to that thread; the items run on any of the crew.
 */
#ifndef ACCEL_PACK_JOB_H
#define ACCEL_PACK_JOB_H

#include "base/thread/crew.h"
#include "cells.h"
#include "pieces.h"

/* What is larger does not stay in the processor's caches. */
#define PACK_STREAMED_BYTES (4 << 20)

struct pack_job {
    struct lane_rectangle host;
    int64_t device_ld; /* of the packed form */
    int64_t piece_bytes, count;
    int64_t parts; /* items of a piece: its parts, or 1 */
    bool fresh;    /* its pages, to which it writes: see pack_is_fresh() */
    int helpers;
    const struct gpu_cells *cells; /* of a matrix that is digested by them */
    struct gpu_scan seen[CREW_ITEMS];
    struct gpu_key digest[CREW_ITEMS]; /* of the items, in turn */
    struct crew_job job;
};

/* Begins a job with host, device_ld and fresh set. item(context, number) is called for each item,
 * by pack_job_open(); context is the job. least_piece: of copies by a device (gpu_set_piece()); 0:
 * there is no device, and a piece is one item. crew_end() ends it. */
void pack_job_begin(struct pack_job *p, void (*item)(void *, int64_t), int64_t least_piece);

/* Returns the piece of a number. */
static inline struct pack_piece pack_job_piece(const struct pack_job *p, int64_t number)
{
    return pack_piece(&p->host, p->device_ld, p->piece_bytes, number);
}

/* Do an item: pack its part to a slot of its piece, or unpack it from there. */
void pack_job_pack(struct pack_job *p, int64_t item, char *slot);
void pack_job_unpack(struct pack_job *p, int64_t item, const char *slot);

/* Returns whether the parts of one more piece have room among the items that are not done yet. */
static inline bool pack_job_has_room(const struct pack_job *p, int64_t opened, int64_t done)
{
    return (opened - done + 1) * p->parts <= CREW_ITEMS;
}

/* Lets the crew do the pieces below `opened`. */
static inline void pack_job_open(struct pack_job *p, int64_t opened)
{
    crew_open(&p->job, opened * p->parts);
}

/* Return how many pieces are done, from the first on; how many parts of the first piece, if it has
 * several. */
static inline int64_t pack_job_done(struct pack_job *p)
{
    return crew_done(&p->job) / p->parts;
}
static inline int64_t pack_job_parts_done(struct pack_job *p)
{
    return p->parts > 1 ? accel_min(crew_done(&p->job), p->parts) : 0;
}

/* Sets the digest, if one is wanted, to what it is before the first piece: the shape's. */
void pack_job_digest_shape(const struct pack_job *p);

/* Takes over what the items of a piece have seen, which are done; of all pieces below `done`. */
void pack_job_take_seen(struct pack_job *p, int64_t number);
void pack_job_take_all_seen(struct pack_job *p, int64_t *taken, int64_t done);

/* ---- Whole matrices. The crew helps. ---- */

/* Returns the bytes of the packed form, from the first element to the last. */
int64_t pack_matrix_bytes(const struct lane_rectangle *r, int64_t packed_ld);

/* Returns the digest that a device's upload gives for a whole rectangle with these elements, or for
 * its triangle: from->digest. Reads them once, or with from->scan, which wants them aligned,
 * twice. */
struct gpu_key pack_matrix_digest(const struct lane_rectangle *from, int64_t device_ld);

/* The same for a matrix that has come down in cells, each digested by the device's flow
 * (flow_copy.host.digest, 0 at first): their digests, by their numbers, joined to cells_shape(). */
struct gpu_key pack_matrix_digest_cells(const struct lane_rectangle *from,
                                        const struct gpu_cells *cells);

/* Writes a rectangle from its packed form in host memory. */
void pack_matrix_unpack(const struct lane_rectangle *to, const void *packed, int64_t packed_ld);

#endif
