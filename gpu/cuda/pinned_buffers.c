/* The buffers of a ring: pinned memory, and which copies from it or to it are done. */
#include "base/thread/clock.h"
#include "pipeline.h"

/* After the driver has said that a copy is not done, it is not asked about that direction again for
 * so long: a link of 50 GB/s takes that for the smallest chunk. */
#define ASK_MS 0.005

enum gpu_status pinned_ring_prepare(struct pinned_ring *ring, int buffers)
{
    if (!ring->memory) {
        void *memory = NULL;
        GPU_TRY(GPU_CHECK(cuMemHostAlloc, &memory, (size_t)buffers * PINNED_BUFFER_BYTES, 0));
        ring->memory = memory;
    }
    for (int i = 0; i < buffers; i++)
        if (!ring->buffer[i].done)
            GPU_TRY(GPU_CHECK(cuEventCreate, &ring->buffer[i].done, CU_EVENT_DISABLE_TIMING));
    return GPU_OK;
}

void pinned_ring_free(struct pinned_ring *ring)
{
    for (int i = 0; i < WIDE_RING_BUFFERS; i++) {
        if (ring->buffer[i].done)
            CUDA(cuEventDestroy)(ring->buffer[i].done);
        ring->buffer[i].done = NULL;
    }
    if (ring->memory)
        CUDA(cuMemFreeHost)(ring->memory);
    ring->memory = NULL;
}

/* Prepares the ring in the packer's memory, which may be another one at each call, and pinned by
 * another device: it is pinned for all of the process's. The packer may
 * write there at any time: so this process's own matrices go through the wide ring's memory. */
static enum gpu_status prepare_shared(struct stream_ctx *ctx)
{
    struct packer *packer = ctx->packer;
    if (packer->lost)
        return GPU_UNSUPPORTED;
    if (!packer->pinned)
        GPU_TRY(GPU_CHECK(cuMemHostRegister, packer->memory, (size_t)PACKER_RING_BYTES,
                          CU_MEMHOSTREGISTER_PORTABLE));
    packer->pinned = true;
    GPU_TRY(pinned_ring_prepare(&ctx->wide, WIDE_RING_BUFFERS));
    ctx->shared.memory = packer->memory;
    return pinned_ring_prepare(&ctx->shared, WIDE_RING_BUFFERS);
}

/* A ring that few threads fill should stay in their caches. One that memory does not suffice for is
 * not kept half made beside the other. */
enum gpu_status ring_choose(struct pipeline_direction *d, struct stream_ctx *ctx, bool wide,
                            int helpers)
{
    d->ring = ctx->packer ? &ctx->shared : &ctx->wide;
    d->buffers = (int)accel_min(WIDE_RING_BUFFERS, NARROW_RING_BUFFERS + helpers);
    if (ctx->packer)
        return prepare_shared(ctx);
    const enum gpu_status status =
        wide ? pinned_ring_prepare(d->ring, WIDE_RING_BUFFERS) : GPU_NO_MEMORY;
    if (status != GPU_NO_MEMORY)
        return status;
    if (wide)
        pinned_ring_free(d->ring);
    d->ring = &ctx->narrow;
    d->buffers = NARROW_RING_BUFFERS;
    return pinned_ring_prepare(d->ring, NARROW_RING_BUFFERS);
}

bool pinned_buffer_look(struct pipeline_direction *d, const struct pinned_buffer *buffer,
                        enum gpu_status *status)
{
    if (buffer->copy <= *d->copied)
        return true;
    if (!buffer->marked)
        return false;
    const double now = d->ask_ms > 0 ? accel_now_ms() : 0;
    if (now < d->ask_ms)
        return false;
    const CUresult result = CUDA(cuEventQuery)(buffer->done);
    d->ask_ms = 0;
    if (result == CUDA_ERROR_NOT_READY) {
        d->ask_ms = accel_now_ms() + ASK_MS;
        return false;
    }
    *status = gpu_check(result, "cuEventQuery");
    if (*status == GPU_OK)
        *d->copied = buffer->copy;
    return *status == GPU_OK;
}

/* The event of a later copy tells that this one is done, too; without one, wait for the stream. */
enum gpu_status pinned_buffer_wait(struct stream_ctx *ctx, struct pipeline_direction *d,
                                   const struct pinned_buffer *buffer)
{
    const struct pinned_buffer *marked = NULL;
    for (int i = 0; i < WIDE_RING_BUFFERS; i++) {
        const struct pinned_buffer *other = &d->ring->buffer[i];
        if (other->marked && other->copy >= buffer->copy && (!marked || other->copy < marked->copy))
            marked = other;
    }
    if (!marked)
        return stream_ctx_wait(ctx);
    GPU_TRY(GPU_CHECK_FINAL(cuEventSynchronize, marked->done));
    *d->copied = marked->copy;
    return GPU_OK;
}
