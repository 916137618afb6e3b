/*
 * A pipeline: copies go in chunks through the pinned buffers of a ring, up or down. The copy pool
 * (base/thread/copy_pool.h) packs chunks, or unpacks them, while others are on the bus; the calling
 * thread alone uses CUDA. It serves a single copy on the call's stream (pipeline_copy.c), or a
 * schedule's copies beside its kernels (pipeline_schedule.c). Where the matrix is another
 * process's, that packs and unpacks (gpu/pack/packer.h), and the copy pool's task is to do nothing.
 */
#ifndef ACCEL_PIPELINE_H
#define ACCEL_PIPELINE_H

#include "base/thread/copy_pool.h"
#include "check.h"
#include "gpu/device/pipeline_job.h"
#include "gpu/pack/staged_chunk.h"
#include "stream_ctx.h"

/* A copy under way: a step's, or a single one. */
struct pipeline_copy {
    struct tile_copy of;
    const struct schedule_step *step;
    int64_t chunk_bytes;
    char *old; /* gets what a download overwrites, packed by columns of its rows; or NULL */
};

/* What is in a buffer of the ring. */
struct pipeline_chunk {
    struct staged_chunk pack;
    const struct pipeline_copy *copy;
    struct pinned_buffer *buffer;
    bool down, first, last; /* first, last: of its copy */
    int left;               /* tasks that are not taken yet */
    int64_t early;          /* up: parts that have been sent before the chunk was packed */
};

/* One that the copy pool does, or a packer. */
struct pipeline_task {
    struct pipeline_chunk *chunk;
    int part;
    struct pack_seen seen;
    int64_t posted; /* its number among the tasks of the chunk's packer, if it has one */
};

/* Chunks pass from one count to the next, in their order. */
struct pipeline_direction {
    bool down;
    CUstream stream;
    struct pinned_ring *ring;
    int base, first, buffers; /* from buffer number `base` of the ring on; chunk 0 is in `first` */
    /* up: let be packed; sent; the buffer is free again. down: sent for; arrived, and let be
     * unpacked; unpacked. */
    int64_t begun, under_way, ended;
    int64_t *copied;                  /* the last copy of the direction that is known to be done */
    double ask_ms;                    /* from when on to ask the driver again for another */
    const struct pipeline_copy *copy; /* that is being begun */
    int64_t next, all;                /* its chunks */
    int parts;                        /* of each: tasks */
};

struct pipeline {
    struct stream_ctx *ctx;
    struct steps *steps; /* of a schedule; NULL: there is a single copy */
    struct pipeline_direction up, down;
    struct pipeline_chunk chunk[WIDE_RING_BUFFERS]; /* by their buffers */
    bool is_idle;                                   /* nothing was on the bus when it began */
    bool helped;
    struct copy_pool_job job;
    int64_t tasks, known_done, taken;
    struct pipeline_task task[COPY_POOL_TASKS]; /* by their numbers */
    int64_t done_cols, done_rows; /* of the copy down that is under way: certain to be written */
};

/* ---- Buffers (pinned_buffers.c) ---- */

/* Chooses a direction's ring and its buffers, and makes them ready: of the wide one as many as
 * there are helpers for, of the narrow one if it is not wanted, or there is no memory for it. */
enum gpu_status ring_choose(struct pipeline_direction *d, struct stream_ctx *ctx, bool wide,
                            int helpers);

/* Returns whether a buffer is known to be free of copies. Each question to the driver takes the
 * calling thread from its other work: after a no, it is not asked again for a moment. */
bool pinned_buffer_look(struct pipeline_direction *d, const struct pinned_buffer *buffer,
                        enum gpu_status *status);

/* Waits until a buffer is free, of which that is not known. */
enum gpu_status pinned_buffer_wait(struct stream_ctx *ctx, struct pipeline_direction *d,
                                   const struct pinned_buffer *buffer);

/* ---- The driver's copies (pipeline_send.c) ---- */

/* Puts the copy of a chunk on a stream: up from its buffer, or down to it, or from the memory of
 * another device. */
enum gpu_status send_chunk(CUstream stream, const struct pipeline_chunk *chunk);

/* Puts the copies of a chunk's parts on a stream, up from its buffer, below part number `done`:
 * before the whole chunk is packed. Neighbours go as one copy. */
enum gpu_status send_parts(CUstream stream, struct pipeline_chunk *chunk, int64_t done);

/* ---- Stages (pipeline.c): each returns whether it did something, or failed ---- */

/* Begins a pipeline without copies. copy_pool_end() ends it. */
void pipeline_begin(struct pipeline *p, struct stream_ctx *ctx, struct steps *steps, bool helped);

/* Begins a copy, whose members are set. streamed: it is of one that the caches do not hold. */
void pipeline_begin_copy(struct pipeline *p, struct pipeline_direction *d,
                         struct pipeline_copy *copy, bool streamed);

/* Lets chunks be packed whose buffers are free; has one sent for. */
bool pipeline_feed_up(struct pipeline *p, enum gpu_status *status);
bool pipeline_feed_down(struct pipeline *p, enum gpu_status *status);

/* Sends a chunk that is packed, or frees the buffer of one that is unpacked. */
bool pipeline_handle(struct pipeline *p, enum gpu_status *status);

/* Lets a chunk that has arrived be unpacked: from now on it is certain to be written. For a single
 * copy, waits for it if there is nothing else to do. */
bool pipeline_look_down(struct pipeline *p, enum gpu_status *status);

/* Notes which chunks on their way up are there, as far as the driver says so. */
bool pipeline_look_up(struct pipeline *p, enum gpu_status *status);

/* ---- Waiting (pipeline.c) ---- */

/* Waits until all tasks are done. */
void pipeline_finish(struct pipeline *p);

/* Does a task, or waits for one, for a moment if a packer does it. Returns false if there is
 * none. */
bool pipeline_attend(struct pipeline *p);

/* Wait for the next chunk that comes down, and for the buffer of the next one that goes up. */
enum gpu_status pipeline_wait_down(struct pipeline *p);
enum gpu_status pipeline_wait_up(struct pipeline *p);

/* ---- Of a schedule (pipeline_steps.c) ---- */

/* Begin the copy of the next step, if it may begin. */
bool steps_begin_up(struct steps *steps);
bool steps_begin_down(struct steps *steps, enum gpu_status *status);

/* Makes the step's stream wait for what the step waits for; notes that it is on its stream. */
enum gpu_status steps_await(struct steps *steps, const struct schedule_step *step);
enum gpu_status steps_put(struct steps *steps, const struct schedule_step *step);

/* Tell that a step's tile has come up, has arrived, or is in host memory. */
void steps_came_up(struct steps *steps, const struct schedule_step *step);
void steps_arrived(struct steps *steps, const struct schedule_step *step);
void steps_unpacked(struct steps *steps, const struct schedule_step *step);

#endif
