#include "pipeline_job.h"

static enum gpu_status copy_up(const struct gpu_copies *copies, struct stream_ctx *ctx,
                               struct pipeline_job *pipeline, const struct schedule_step *step)
{
    struct tile_copy copy;
    pipeline->copy_of(pipeline->context, step, &copy);
    const enum gpu_status status = copies->upload(ctx, copy.device, &copy.host);
    if (status == GPU_OK && pipeline->came_up)
        pipeline->came_up(pipeline->context, step);
    return status;
}

static enum gpu_status copy_down(const struct gpu_copies *copies, struct stream_ctx *ctx,
                                 struct pipeline_job *pipeline, const struct schedule_step *step)
{
    struct tile_copy copy;
    enum gpu_status status = GPU_OK;
    if (pipeline->written == 0 && pipeline->may_leave)
        status = pipeline->may_leave(pipeline->context);
    if (status != GPU_OK)
        return status;
    pipeline->copy_of(pipeline->context, step, &copy);
    const struct pack_chunk all = {0, copy.host.cols, 0, copy.host.rows};
    char *old = pipeline->old[pipeline->written % 2];
    if (old)
        pack_from_host(old, &copy.host, &all, copy.host.rows);
    status = pipeline->all_or_nothing
                 ? copies->download_whole(ctx, &copy.host, copy.device)
                 : copies->download(ctx, &copy.host, copy.device, &pipeline->done_cols,
                                    &pipeline->done_rows);
    if (status != GPU_OK)
        return status;
    pipeline->written++;
    pipeline->done_cols = pipeline->done_rows = 0;
    pipeline->arrived(pipeline->context, step);
    if (pipeline->unpacked)
        pipeline->unpacked(pipeline->context, step);
    return GPU_OK;
}

enum gpu_status pipeline_in_order(const struct gpu_copies *copies, struct stream_ctx *ctx,
                                  struct pipeline_job *pipeline)
{
    const struct schedule *s = pipeline->schedule;
    enum gpu_status status = GPU_OK;
    pipeline->written = 0;
    pipeline->done_cols = pipeline->done_rows = 0;
    for (int n = 0; status == GPU_OK && n < s->count; n++) {
        const struct schedule_step *step = &s->step[n];
        status = step->engine == SCHEDULE_UP     ? copy_up(copies, ctx, pipeline, step)
                 : step->engine == SCHEDULE_DOWN ? copy_down(copies, ctx, pipeline, step)
                                                 : pipeline->compute(pipeline->context, step);
    }
    return status;
}
