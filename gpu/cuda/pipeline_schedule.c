/* A schedule's copies and kernels: a pipeline in both directions, beside streams of kernels. */
#include <stdlib.h>

#include "pipeline_steps.h"

/* Divides a ring between the directions. Nothing of the stream context is on a bus now. */
static enum gpu_status divide_ring(struct steps *steps)
{
    struct stream_ctx *ctx = steps->pipeline.ctx;
    struct pipeline_direction *up = &steps->pipeline.up, *down = &steps->pipeline.down;
    const int helpers = ctx->packer ? ctx->packer->helpers : copy_pool_size();
    GPU_TRY(ring_choose(down, ctx, true, 2 * helpers));
    *up = *down;
    up->base = down->buffers /= 2;
    up->buffers -= down->buffers;
    up->stream = ctx->up;
    up->copied = &steps->copied[false];
    down->down = true;
    down->stream = ctx->down;
    down->copied = &steps->copied[true];
    *up->copied = *down->copied = ctx->copied;
    return GPU_OK;
}

/* ---- Kernels ---- */

/* Returns whether one more kernel on its stream would take the event that the next download has to
 * wait for. Kernels are there long before they run: a download that waited for the last of them
 * would come behind all of them. */
static bool is_far_ahead(const struct steps *steps)
{
    const struct schedule *s = steps->job->schedule;
    const int next = steps->next[DOWN];
    const int32_t awaited = next < s->count ? s->step[next].after[COMPUTE] : 0;
    return awaited > 0 && steps->put[COMPUTE] >= awaited + CTX_STEPS - 1;
}

static enum gpu_status put_kernel(struct steps *steps, const struct schedule_step *step)
{
    const bool beside =
        steps->beside && schedule_goes_beside(steps->job->schedule, step->i, step->j);
    struct stream_ctx *ctx = steps->pipeline.ctx;
    GPU_TRY(beside ? stream_ctx_go_beside(ctx) : stream_ctx_go_back(ctx));
    GPU_TRY(steps_await(steps, step));
    GPU_TRY(steps->job->compute(steps->job->context, step));
    return steps_put(steps, step);
}

static bool feed_compute(struct steps *steps, enum gpu_status *status)
{
    const struct schedule_step *step = is_far_ahead(steps) ? NULL : steps_next(steps, COMPUTE);
    if (!step)
        return false;
    steps_find(steps, COMPUTE, steps->next[COMPUTE] + 1);
    *status = put_kernel(steps, step);
    return true;
}

/* ---- The whole ---- */

/* Waits for a moment for what others do. */
static enum gpu_status wait_for_others(const struct pipeline_job *pipeline)
{
    if (!pipeline->wait)
        return GPU_ERROR; /* the schedule cannot go on */
    return pipeline->wait(pipeline->context) ? GPU_OK : GPU_UNSUPPORTED;
}

/* Returns whether others wait for what goes up. */
static bool is_awaited(const struct steps *steps)
{
    const struct pipeline_direction *up = &steps->pipeline.up;
    return steps->job->came_up &&
           (up->ended < up->under_way || steps->put[UP] < steps->job->schedule->steps[UP]);
}

/* Waits for a thread of the copy pool, or for a copy: an upload if a buffer is wanted for the next
 * one. */
static enum gpu_status wait_for_any(struct steps *steps)
{
    struct pipeline *p = &steps->pipeline;
    enum gpu_status status = GPU_OK;
    if (pipeline_attend(p))
        return GPU_OK;
    if (is_awaited(steps)) {
        p->up.ask_ms = 0; /* without delay */
        return pipeline_look_up(p, &status) ? status : wait_for_others(steps->job);
    }
    if (p->up.begun - p->up.ended == p->up.buffers)
        return pipeline_wait_up(p);
    return p->down.under_way < p->down.begun ? pipeline_wait_down(p) : wait_for_others(steps->job);
}

static enum gpu_status run_steps(struct steps *steps)
{
    struct pipeline *p = &steps->pipeline;
    const struct schedule *s = steps->job->schedule;
    enum gpu_status status = GPU_OK;
    while (status == GPU_OK &&
           (steps->put[COMPUTE] < s->steps[COMPUTE] || steps->put[DOWN] < s->steps[DOWN] ||
            p->down.ended < p->down.begun)) {
        /* Finished tasks come first. Then the copy pool gets work, as to start a kernel may take
         * long; then kernels: their tiles are on their way. */
        if (pipeline_feed_down(p, &status) ||
            (steps->job->came_up && pipeline_look_up(p, &status)) || pipeline_feed_up(p, &status) ||
            feed_compute(steps, &status) || pipeline_handle(p, &status) ||
            pipeline_look_down(p, &status))
            continue;
        status = wait_for_any(steps);
    }
    if (status != GPU_OK)
        return status;
    steps->copied[false] = p->ctx->copies; /* the downloads have waited for all that has come up */
    pipeline_look_up(p, &status);
    return status;
}

/* After a failure: what was finished before, and is on its way down, still arrives. */
static void take_rest(struct pipeline *p)
{
    do
        pipeline_finish(p); /* so there is room */
    while (p->down.under_way < p->down.begun && pipeline_wait_down(p) == GPU_OK);
}

/* Waits for copies up that nothing else has waited for: without downloads, so that the ring is
 * free; after a failure, so that none reads what others lend. */
static enum gpu_status settle(struct steps *steps, enum gpu_status status)
{
    struct stream_ctx *ctx = steps->pipeline.ctx;
    const bool comes_down = steps->job->schedule->steps[DOWN] > 0;
    if (status == GPU_OK && !comes_down)
        status = GPU_CHECK_FINAL(cuStreamSynchronize, ctx->up);
    else if (status != GPU_OK && steps->job->came_up)
        CUDA(cuStreamSynchronize)(ctx->up);
    ctx->aside = status != GPU_OK;
    if (status == GPU_OK) {
        ctx->quiet = ctx->quiet || comes_down; /* the last download waited for everything */
        ctx->copied = ctx->copies;
        return GPU_OK;
    }
    timing_end(ctx, ctx->up, GPU_STEP_UP); /* the call may run again */
    timing_end(ctx, ctx->down, GPU_STEP_DOWN);
    return status;
}

static enum gpu_status run_schedule(struct steps *steps, struct stream_ctx *ctx)
{
    struct pipeline *p = &steps->pipeline;
    GPU_TRY(stream_ctx_wait(ctx));
    GPU_TRY(steps_prepare(steps));
    GPU_TRY(divide_ring(steps));
    pipeline_begin(p, ctx, steps, true);
    p->is_idle = true;
    enum gpu_status status = run_steps(steps);
    /* The call may run again, or go on with cuBLAS: not on a stream that the stream context has
     * not. */
    if (stream_ctx_go_back(ctx) != GPU_OK && status != GPU_LOST)
        status = GPU_ERROR;
    if (status != GPU_OK && status != GPU_LOST)
        take_rest(p);
    pipeline_finish(p);
    copy_pool_end(&p->job);
    return settle(steps, status);
}

/* The thread's stack may be small. */
enum gpu_status stream_ctx_pipeline(struct stream_ctx *ctx, struct pipeline_job *pipeline)
{
    struct steps *steps = calloc(1, sizeof *steps);
    pipeline->written = 0;
    pipeline->done_cols = pipeline->done_rows = 0;
    if (!steps)
        return GPU_NO_MEMORY;
    steps->pipeline.ctx = ctx;
    steps->job = pipeline;
    const enum gpu_status status = run_schedule(steps, ctx);
    pipeline->done_cols = steps->pipeline.done_cols;
    pipeline->done_rows = steps->pipeline.done_rows;
    free(steps->beside);
    free(steps);
    return status;
}
