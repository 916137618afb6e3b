/* Single copies, on the call's stream: a pipeline of one direction and one copy. */
#define _GNU_SOURCE
#include "base/memory/host_memory.h"
#include "gpu/pack/matrix.h"
#include "pipeline.h"

#include <limits.h>
#include <stdlib.h>

/* One thread packs a chunk of this while the one before is on its way. */
#define ALONE_BYTES (PINNED_BUFFER_BYTES / 2)

static int64_t chunk_bytes(const struct pipeline *p, const struct tile_copy *of)
{
    if (of->host.digest || of->host.trimmed)
        return chunks_of_matrix(&of->host, of->device.ld);
    return p->helped ? chunks_bytes(&of->host, of->device.ld, CHUNKS_OF_MATRIX,
                                    stream_ctx_least_chunk(p->ctx))
                     : ALONE_BYTES;
}

/* Begins a pipeline of one copy. It ends even if that fails. */
static enum gpu_status begin_one_copy(struct pipeline *p, struct stream_ctx *ctx,
                                      struct pipeline_direction *d, struct pipeline_copy *copy)
{
    const struct tile_copy *of = &copy->of;
    const int64_t bytes = pack_matrix_bytes(&of->host, of->device.ld);
    *d = (struct pipeline_direction){
        .down = d == &p->down, .stream = ctx->stream, .copied = &ctx->copied};
    pipeline_begin(p, ctx, NULL, bytes >= PACK_HELPED_BYTES);
    p->is_idle = ctx->copied == ctx->copies; /* as far as is known */
    copy->chunk_bytes = chunk_bytes(p, of);
    pipeline_begin_copy(p, d, copy, bytes >= PACK_STREAMED_BYTES);
    pack_digest_shape(&of->host, of->device.ld);
    const int helpers = ctx->packer ? ctx->packer->helpers : p->job.helpers;
    const enum gpu_status status = ring_choose(d, ctx, p->helped, helpers);
    d->first = d->ring->next;
    return status;
}

/* Ends it. So many of its chunks have gone through buffers. */
static void end_one_copy(struct pipeline *p, const struct pipeline_direction *d, int64_t chunks,
                         enum gpu_status status)
{
    packer_finish(p->ctx->packer);
    copy_pool_end(&p->job);
    d->ring->next = (int)((d->first + chunks) % d->buffers);
    if (status != GPU_OK)
        timing_end(p->ctx, d->stream, d->down ? GPU_STEP_DOWN : GPU_STEP_UP);
}

enum gpu_status stream_ctx_upload(struct stream_ctx *ctx, struct dmat to,
                                  const struct host_rectangle *from)
{
    struct pipeline p; /* not zero: it is large */
    struct pipeline_copy copy = {.of = {*from, to, 0}};
    enum gpu_status status = begin_one_copy(&p, ctx, &p.up, &copy);
    while (status == GPU_OK && p.up.under_way < p.up.all)
        if (!pipeline_feed_up(&p, &status) && !pipeline_handle(&p, &status) && !pipeline_attend(&p))
            status = pipeline_wait_up(&p);
    end_one_copy(&p, &p.up, p.up.under_way, status);
    return status;
}

enum gpu_status stream_ctx_download(struct stream_ctx *ctx, const struct host_rectangle *to,
                                    struct dmat from, int64_t *done_cols, int64_t *done_rows)
{
    struct pipeline p;
    struct pipeline_copy copy = {.of = {*to, from, 0}};
    enum gpu_status status = begin_one_copy(&p, ctx, &p.down, &copy);
    while (status == GPU_OK && p.down.ended < p.down.all)
        if (!pipeline_feed_down(&p, &status) && !pipeline_handle(&p, &status) &&
            !pipeline_look_down(&p, &status))
            pipeline_attend(&p);
    pipeline_finish(&p); /* what has arrived is written */
    end_one_copy(&p, &p.down, p.down.under_way, status);
    *done_cols = p.done_cols;
    *done_rows = p.done_rows;
    return status;
}

/* ---- All or nothing ---- */

/* Sets *landing to pinned memory in which `bytes` bytes can arrive at once, a whole ring; NULL:
 * there is none. */
static enum gpu_status prepare_landing(struct stream_ctx *ctx, int64_t bytes, char **landing)
{
    const bool narrow = bytes <= NARROW_RING_BUFFERS * PINNED_BUFFER_BYTES;
    struct pinned_ring *ring = narrow ? &ctx->narrow : &ctx->wide;
    *landing = NULL;
    if (bytes > LANDING_BYTES)
        return GPU_OK;
    enum gpu_status status =
        pinned_ring_prepare(ring, narrow ? NARROW_RING_BUFFERS : WIDE_RING_BUFFERS);
    *landing = ring->memory;
    return status == GPU_NO_MEMORY && !narrow ? GPU_OK : status;
}

/* Downloads through the buffers to memory of our own, and copies from there. */
static enum gpu_status download_aside(struct stream_ctx *ctx, const struct host_rectangle *to,
                                      struct dmat from)
{
    int64_t done_cols, done_rows;
    struct host_rectangle aside = host_whole(malloc((size_t)(to->rows * to->cols * to->size) + 1),
                                             to->rows, to->cols, to->rows, to->size);
    if (!aside.host)
        return GPU_NO_MEMORY;
    host_memory_prefer_huge(aside.host, to->rows * to->cols * to->size);
    /* Of what comes down, with the device's leading dimension */
    aside.digest = to->uplo ? NULL : to->digest;
    enum gpu_status status = stream_ctx_download(ctx, &aside, from, &done_cols, &done_rows);
    struct host_rectangle digested = *to;
    digested.digest = NULL;
    if (status == GPU_OK)
        pack_matrix_unpack(&digested, aside.host, to->rows);
    free(aside.host);
    return status;
}

enum gpu_status stream_ctx_download_whole(struct stream_ctx *ctx, const struct host_rectangle *to,
                                          struct dmat from)
{
    char *landing;
    int64_t done_cols, done_rows;
    const int64_t bytes = pack_matrix_bytes(to, from.ld);
    if (bytes == 0)
        return GPU_OK;
    if (packer_of(ctx->packer, to->host)) /* whose client keeps all or nothing */
        return stream_ctx_download(ctx, to, from, &done_cols, &done_rows);
    GPU_TRY(prepare_landing(ctx, bytes, &landing));
    if (!landing)
        return download_aside(ctx, to, from);
    stream_ctx_copies(ctx, ctx->stream, GPU_STEP_DOWN, to, to->rows * to->cols * to->size);
    const enum gpu_status sent =
        GPU_CHECK(cuMemcpyDtoHAsync, landing, from.ptr, (size_t)bytes, stream_ctx_stream(ctx));
    timing_end(ctx, ctx->stream, GPU_STEP_DOWN);
    GPU_TRY(sent);
    GPU_TRY(stream_ctx_wait(ctx));
    pack_matrix_unpack(to, landing, from.ld);
    return GPU_OK;
}

enum gpu_status stream_ctx_copy(struct stream_ctx *ctx, struct dmat to, struct dmat from,
                                int64_t rows, int64_t cols, int64_t size)
{
    const CUDA_MEMCPY2D plane = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
                                 .srcDevice = from.ptr,
                                 .srcPitch = (size_t)(from.ld * size),
                                 .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                                 .dstDevice = to.ptr,
                                 .dstPitch = (size_t)(to.ld * size),
                                 .WidthInBytes = (size_t)(rows * size),
                                 .Height = (size_t)cols};
    if ((from.ld | to.ld) > INT_MAX / 16) /* CU_DEVICE_ATTRIBUTE_MAX_PITCH */
        return GPU_UNSUPPORTED;
    return GPU_CHECK(cuMemcpy2DAsync, &plane, stream_ctx_stream(ctx));
}
