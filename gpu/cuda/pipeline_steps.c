#include "pipeline_steps.h"

#include <stdlib.h>

/* ---- Streams ---- */

static enum gpu_status make_stream(CUstream *stream)
{
    return *stream ? GPU_OK : GPU_CHECK(cuStreamCreate, stream, CU_STREAM_NON_BLOCKING);
}

/* Counts the kernels that go beside, if there is memory for their workspace. */
static enum gpu_status count_beside(struct steps *steps)
{
    const struct schedule *s = steps->job->schedule;
    const enum gpu_status status =
        steps->job->has_sides ? stream_ctx_prepare_beside(steps->pipeline.ctx) : GPU_UNSUPPORTED;
    if (status == GPU_NO_MEMORY || status == GPU_UNSUPPORTED)
        return GPU_OK;
    steps->beside = calloc((size_t)s->steps[COMPUTE] + 1, sizeof *steps->beside);
    for (int n = 0, kernels = 0; steps->beside && n < s->count; n++)
        if (s->step[n].engine == COMPUTE) {
            const bool goes = schedule_goes_beside(s, s->step[n].i, s->step[n].j);
            steps->beside[kernels + 1] = steps->beside[kernels] + goes;
            kernels++;
        }
    return steps->beside ? status : GPU_NO_MEMORY;
}

enum gpu_status steps_prepare(struct steps *steps)
{
    struct stream_ctx *ctx = steps->pipeline.ctx;
    GPU_TRY(count_beside(steps));
    const int streams = steps->beside ? CTX_STREAMS : SCHEDULE_ENGINES;
    ctx->made = ctx->made || !ctx->down;
    GPU_TRY(make_stream(&ctx->up));
    GPU_TRY(make_stream(&ctx->down));
    for (int e = 0; e < streams * CTX_STEPS; e++)
        if (!ctx->step[e / CTX_STEPS][e % CTX_STEPS])
            GPU_TRY(GPU_CHECK(cuEventCreate, &ctx->step[e / CTX_STEPS][e % CTX_STEPS],
                              CU_EVENT_DISABLE_TIMING));
    for (int e = 0; e < SCHEDULE_ENGINES; e++)
        steps_find(steps, e, 0);
    return GPU_OK;
}

/* ---- The next step ---- */

void steps_find(struct steps *steps, int engine, int next)
{
    const struct schedule *s = steps->job->schedule;
    while (next < s->count && s->step[next].engine != engine)
        next++;
    steps->next[engine] = next;
}

const struct schedule_step *steps_next(const struct steps *steps, int engine)
{
    const struct pipeline_job *pipeline = steps->job;
    const struct schedule *s = pipeline->schedule;
    if (steps->next[engine] == s->count)
        return NULL;
    const struct schedule_step *step = &s->step[steps->next[engine]];
    for (int e = 0; e < SCHEDULE_ENGINES; e++)
        if (e != engine && step->after[e] > steps->put[e])
            return NULL;
    if (engine == UP && ((pipeline->reads_results && step->after[DOWN] > steps->unpacked) ||
                         (pipeline->is_there && !pipeline->is_there(pipeline->context, step))))
        return NULL;
    return step;
}

/* Begins a step that copies a tile: describes it. */
static void begin_copy(struct steps *steps, struct pipeline_direction *d,
                       const struct schedule_step *step, char *old)
{
    struct pipeline_job *pipeline = steps->job;
    struct pipeline_copy *copy =
        &steps->copy[d->down][steps->copies[d->down]++ % WIDE_RING_BUFFERS];
    const struct host_rectangle *host = &copy->of.host;
    *copy = (struct pipeline_copy){.step = step, .old = old};
    steps_find(steps, step->engine, steps->next[step->engine] + 1);
    pipeline->copy_of(pipeline->context, step, &copy->of);
    copy->chunk_bytes = host->digest || host->trimmed
                            ? chunks_of_tile(host, copy->of.device.ld)
                            : chunks_bytes(host, copy->of.device.ld, CHUNKS_OF_TILE,
                                           stream_ctx_least_chunk(steps->pipeline.ctx));
    pipeline_begin_copy(&steps->pipeline, d, copy, pipeline->result_bytes >= PACK_STREAMED_BYTES);
}

bool steps_begin_up(struct steps *steps)
{
    const struct schedule_step *step = steps_next(steps, UP);
    if (step)
        begin_copy(steps, &steps->pipeline.up, step, NULL);
    return step;
}

/* The tile must be finished, and the memory for what it overwrites no longer used. */
bool steps_begin_down(struct steps *steps, enum gpu_status *status)
{
    struct pipeline_direction *down = &steps->pipeline.down;
    const struct pipeline_job *pipeline = steps->job;
    const struct schedule_step *step = steps_next(steps, DOWN);
    const int number = steps->copies[true], turn = number % 2;
    if (!step || (pipeline->old[0] && down->ended < steps->ends[turn]))
        return false;
    if (number == 0 && pipeline->may_leave)
        *status = pipeline->may_leave(pipeline->context);
    if (*status != GPU_OK)
        return false;
    begin_copy(steps, down, step, pipeline->old[turn]);
    steps->ends[turn] = down->begun + down->all;
    return true;
}

/* ---- Events ---- */

/* Returns the stream of the engine's steps, by its number: of kernels, that on which the stream
 * context is. */
static int number_of(const struct steps *steps, int engine)
{
    return engine == COMPUTE && steps->pipeline.ctx->is_beside ? CTX_BESIDE : engine;
}

static CUstream stream_of(struct steps *steps, int engine)
{
    return engine == UP     ? steps->pipeline.up.stream
           : engine == DOWN ? steps->pipeline.down.stream
                            : stream_ctx_stream(steps->pipeline.ctx);
}

/* Makes the engine's stream wait for the first `after` steps of another stream. A newer event
 * implies the older one. */
static enum gpu_status await_stream(struct steps *steps, int engine, int other, int after)
{
    int *awaited = &steps->awaited[number_of(steps, engine)][other];
    if (after <= *awaited)
        return GPU_OK;
    *awaited = after;
    return GPU_CHECK(cuStreamWaitEvent, stream_of(steps, engine),
                     steps->pipeline.ctx->step[other][after % CTX_STEPS], 0);
}

/* Of kernels, on both of their streams, but not for those on its own. */
enum gpu_status steps_await(struct steps *steps, const struct schedule_step *step)
{
    const int engine = step->engine, own = number_of(steps, engine);
    for (int e = 0; e < SCHEDULE_ENGINES; e++) {
        const int beside = e == COMPUTE && steps->beside ? steps->beside[step->after[e]] : 0;
        if (own != e)
            GPU_TRY(await_stream(steps, engine, e, step->after[e] - beside));
        if (own != CTX_BESIDE)
            GPU_TRY(await_stream(steps, engine, CTX_BESIDE, beside));
    }
    return GPU_OK;
}

enum gpu_status steps_put(struct steps *steps, const struct schedule_step *step)
{
    const int engine = step->engine, number = number_of(steps, engine);
    steps->put[engine]++;
    return GPU_CHECK(cuEventRecord,
                     steps->pipeline.ctx->step[number][++steps->on[number] % CTX_STEPS],
                     stream_of(steps, engine));
}

/* ---- Who is told ---- */

void steps_came_up(struct steps *steps, const struct schedule_step *step)
{
    if (steps->job->came_up)
        steps->job->came_up(steps->job->context, step);
}

void steps_arrived(struct steps *steps, const struct schedule_step *step)
{
    steps->job->written++;
    steps->job->arrived(steps->job->context, step);
    steps->pipeline.done_cols = steps->pipeline.done_rows = 0;
}

void steps_unpacked(struct steps *steps, const struct schedule_step *step)
{
    steps->unpacked++;
    if (steps->job->unpacked)
        steps->job->unpacked(steps->job->context, step);
}
