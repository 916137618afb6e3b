/* Copies, and schedules one step after the other. */
#include <string.h>

#include "gpu/device/pipeline_job.h"
#include "gpu/pack/matrix.h"
#include "host_device.h"

static enum gpu_status wait(struct stream_ctx *ctx)
{
    (void)ctx;
    return GPU_OK;
}

static enum gpu_status upload(struct stream_ctx *ctx, struct dmat to,
                              const struct host_rectangle *from)
{
    (void)ctx;
    const struct pack_chunk all = {0, from->cols, 0, from->rows};
    pack_from_host((char *)(uintptr_t)to.ptr, from, &all, to.ld);
    if (from->digest)
        *from->digest = pack_matrix_digest(from, to.ld);
    return GPU_OK;
}

static enum gpu_status download_whole(struct stream_ctx *ctx, const struct host_rectangle *to,
                                      struct dmat from)
{
    (void)ctx;
    const struct pack_chunk all = {0, to->cols, 0, to->rows};
    pack_to_host(to, &all, (char *)(uintptr_t)from.ptr, from.ld);
    if (to->digest)
        *to->digest = pack_matrix_digest(to, from.ld);
    return GPU_OK;
}

static enum gpu_status download(struct stream_ctx *ctx, const struct host_rectangle *to,
                                struct dmat from, int64_t *done_cols, int64_t *done_rows)
{
    *done_cols = to->cols;
    *done_rows = 0;
    return download_whole(ctx, to, from);
}

static enum gpu_status copy(struct stream_ctx *ctx, struct dmat to, struct dmat from, int64_t rows,
                            int64_t cols, int64_t size)
{
    (void)ctx;
    for (int64_t j = 0; j < cols; j++)
        memcpy((char *)(uintptr_t)to.ptr + j * to.ld * size,
               (char *)(uintptr_t)from.ptr + j * from.ld * size, (size_t)(rows * size));
    return GPU_OK;
}

static enum gpu_status pipeline(struct stream_ctx *ctx, struct pipeline_job *f)
{
    return pipeline_in_order(&host_copies, ctx, f);
}

const struct gpu_copies host_copies = {.wait = wait,
                                       .use_solver = wait,
                                       .upload = upload,
                                       .download = download,
                                       .download_whole = download_whole,
                                       .copy = copy,
                                       .pipeline = pipeline};
