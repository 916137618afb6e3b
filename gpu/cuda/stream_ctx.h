/*
 * A stream context is all that one calling thread needs to use the device: a stream, a cuBLAS
 * handle, and a ring of pinned buffers through which host memory goes up and down (pipeline.h).
 * Stream contexts are few, and one call after the other uses them. Each device has its own.
 */
#ifndef ACCEL_STREAM_CTX_H
#define ACCEL_STREAM_CTX_H

#include <pthread.h>
#include <stdatomic.h>

#include "gpu/cuda/api/cuda_api.h"
#include "gpu/pack/chunks.h"
#include "gpu/pack/packer.h"
#include "gpu/plan/schedule.h"
#include "gpu/device/copies.h"
#include "timing.h"

struct cuda_device;
struct pool_taken;

/* A thread alone packs into the narrow ring. The wide ring serves the copy pool
 * (base/thread/copy_pool.h), as many buffers of it as there are threads for, and panels that must
 * arrive at once, in whole lines (level2_panel()). */
#define NARROW_RING_BUFFERS 4
#define WIDE_RING_BUFFERS   12
#define LANDING_BYTES       (WIDE_RING_BUFFERS * PINNED_BUFFER_BYTES)
_Static_assert(LANDING_BYTES == PACKER_RING_BYTES, "a packer's memory has a wide ring");

/* Events behind the last steps on each stream of a schedule. A stream that waits for an older step
 * waits longer than it needs to. */
#define CTX_STEPS 64

/* A schedule has a stream for each engine, and one more for kernels that run beside others. */
enum { CTX_BESIDE = SCHEDULE_ENGINES, CTX_STREAMS };

struct pinned_buffer {
    CUevent done;
    int64_t copy; /* the number of the last copy from it or to it that is on the stream */
    bool marked;  /* the event is behind that copy */
};

struct pinned_ring {
    char *memory; /* pinned, one buffer behind the other; NULL until needed */
    int next;
    struct pinned_buffer buffer[WIDE_RING_BUFFERS];
};

struct stream_ctx {
    struct cuda_device *device;
    CUstream stream; /* non-blocking: the program's default stream does not wait for it */
    cublasHandle_t cublas;
    cublasMath_t math;           /* of cuBLAS */
    cusolverDnHandle_t cusolver; /* NULL until needed */
    cusolverDnParams_t params;
    CUevent joined; /* recorded on the program's default stream, if operands lie on the device */
    struct pinned_ring narrow, wide;
    /* Of the call under way, or NULL; and the ring in its memory */
    struct packer *packer;
    struct pinned_ring shared;
    /* For schedules, NULL until needed: the streams of copies, one of kernels, and events behind
     * steps. */
    CUstream up, down, beside;
    CUevent step[CTX_STREAMS][CTX_STEPS];
    bool aside;     /* something may be on these streams that nothing waited for */
    bool is_beside; /* `stream` and `beside` have changed places */
    bool astray;    /* the handle of cuBLAS may have another stream than the stream context */
    CUdeviceptr workspace; /* of cuBLAS on the stream beside; 0 until needed */
    int64_t workspace_bytes;
    uint64_t user;          /* whose calls it has run last (gpu_user.id) */
    int64_t copies, copied; /* put on its streams; of these, done */
    bool made;              /* handles have been made since a call acquired the stream context */
    int unmarked; /* copies without an event of their own since the last wait for the stream */
    bool quiet;   /* nothing has been put on the stream since the last wait */
    struct step_timing timing;
};

/* More threads than this wait: further streams would only share the copy engines and the device. */
enum { STREAM_CTXS_MAX = 8 };

/* For stream_ctx.c alone. */
struct stream_ctxs {
    pthread_mutex_t lock;
    pthread_cond_t released;
    struct stream_ctx ctx[STREAM_CTXS_MAX];
    /* CTX_CHANGING: a thread makes or destroys the stream context without the lock. */
    enum stream_ctx_state { CTX_NONE, CTX_CHANGING, CTX_IDLE, CTX_USED } state[STREAM_CTXS_MAX];
    atomic_bool cusolver_is_broken; /* cuSOLVER does not start, though there is memory */
};

/* Make a new device's stream contexts, none yet; and end them when none is left. The device is zero
 * elsewhere; needs no context. Not thread-safe. */
void stream_ctxs_begin(struct cuda_device *device);
void stream_ctxs_end(struct cuda_device *device);

/* Acquires a free stream context of a device, or makes one. Waits for a free one if STREAM_CTXS_MAX
 * exist, or if no further one can be made, for whatever reason; without `waits`, returns GPU_BUSY
 * then. While another thread makes a stream context, does not wait for it if one is free. The
 * device's context must be current. */
enum gpu_status stream_ctx_acquire(struct cuda_device *device, bool waits, struct stream_ctx **ctx);

/* Releases a stream context. broken: the device has failed; leaves its stream, handles and memory
 * to the driver. */
void stream_ctx_release(struct stream_ctx *ctx, bool broken);

/* Returns the least bytes of a chunk of a copy: see gpu_set_chunk(). None is larger than a
 * buffer. */
int64_t stream_ctx_least_chunk(const struct stream_ctx *ctx);

/* Makes the buffers of a ring ready (pinned_buffers.c). */
enum gpu_status pinned_ring_prepare(struct pinned_ring *ring, int buffers);

/* Gives back what there is of a ring that no copy uses. */
void pinned_ring_free(struct pinned_ring *ring);

/* Begin a step of the call, if it is timed: one of kernels; one that copies a rectangle of so many
 * bytes, with its first chunk. */
static inline void stream_ctx_computes(struct stream_ctx *ctx)
{
    if (ctx->timing.on)
        timing_begin(ctx, ctx->stream, &(struct gpu_step){.kind = GPU_STEP_COMPUTE});
}
static inline void stream_ctx_copies(struct stream_ctx *ctx, CUstream stream,
                                     enum gpu_step_kind kind, const struct host_rectangle *r,
                                     int64_t bytes)
{
    if (ctx->timing.on)
        timing_begin(ctx, stream, &(struct gpu_step){kind, r->name, bytes, 0, 0});
}

/* Return the stream and the handles, to put something on the stream: with a handle, kernels. */
static inline CUstream stream_ctx_stream(struct stream_ctx *ctx)
{
    ctx->quiet = false;
    return ctx->stream;
}
static inline cublasHandle_t stream_ctx_cublas(struct stream_ctx *ctx)
{
    ctx->quiet = false;
    stream_ctx_computes(ctx);
    return ctx->cublas;
}
static inline cusolverDnHandle_t stream_ctx_cusolver(struct stream_ctx *ctx)
{
    ctx->quiet = false;
    stream_ctx_computes(ctx);
    return ctx->cusolver;
}

/* Returns whether nothing can be put on the current context's default stream, because another
 * stream captures. */
bool stream_ctx_default_stream_is_closed(void);

/* Makes the call's stream wait for the work that the program has put on its default stream so
 * far. */
enum gpu_status stream_ctx_join_default_stream(struct stream_ctx *ctx);

/* Makes the stream beside ready, with a workspace of its own for cuBLAS: else products on two
 * streams at once need not give the same bits each time (cuBLAS, Results Reproducibility). It is as
 * large whatever the call, so these bits depend on nothing else. Returns GPU_NO_MEMORY, or
 * GPU_UNSUPPORTED, if there is none. */
enum gpu_status stream_ctx_prepare_beside(struct stream_ctx *ctx);

/* Clears memory of the pool's for a user, if it is unclean, and waits for that. */
enum gpu_status stream_ctx_clear(struct stream_ctx *ctx, const struct pool_taken *taken,
                                 uint64_t user);

/* Begins a call of a user: clears what a call of another one has left in the workspace. */
enum gpu_status stream_ctx_serve(struct stream_ctx *ctx, uint64_t user);

/* Put what follows on the stream beside, which is ready; and back. If that fails, the stream
 * context ends when it is released. */
enum gpu_status stream_ctx_go_beside(struct stream_ctx *ctx);
enum gpu_status stream_ctx_go_back(struct stream_ctx *ctx);

/* Each does what gpu_copies says of its namesake (gpu/device/copies.h). */
enum gpu_status stream_ctx_wait(struct stream_ctx *ctx);
enum gpu_status stream_ctx_use_solver(struct stream_ctx *ctx);
enum gpu_status stream_ctx_upload(struct stream_ctx *ctx, struct dmat to,
                                  const struct host_rectangle *from);
enum gpu_status stream_ctx_download(struct stream_ctx *ctx, const struct host_rectangle *to,
                                    struct dmat from, int64_t *done_cols, int64_t *done_rows);
enum gpu_status stream_ctx_download_whole(struct stream_ctx *ctx, const struct host_rectangle *to,
                                          struct dmat from);
enum gpu_status stream_ctx_copy(struct stream_ctx *ctx, struct dmat to, struct dmat from,
                                int64_t rows, int64_t cols, int64_t size);
enum gpu_status stream_ctx_pipeline(struct stream_ctx *ctx, struct pipeline_job *pipeline);

/* Destroys the device's idle stream contexts. Its context must be current. */
void stream_ctx_free_idle(struct cuda_device *device);

#endif
