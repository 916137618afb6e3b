#include "timing.h"

#include "base/thread/clock.h"
#include "device.h"

/* Failures of these events are none of the call's: a step is not timed then. */

enum { LEFT_OUT = -1 }; /* in place of a step's number, while its chunks come */

static bool record(CUevent *event, CUstream stream)
{
    return (*event || CUDA(cuEventCreate)(event, CU_EVENT_DEFAULT) == CUDA_SUCCESS) &&
           CUDA(cuEventRecord)(*event, stream) == CUDA_SUCCESS;
}

void timing_start(struct stream_ctx *ctx)
{
    struct step_timing *t = &ctx->timing;
    t->count = 0;
    t->left_out = 0;
    for (int kind = 0; kind < GPU_STEP_KINDS; kind++)
        t->open[kind] = 0;
    t->before_ms = accel_now_ms();
    t->on = CUDA(cuEventElapsedTime) && record(&t->zero, ctx->stream) &&
            CUDA(cuEventSynchronize)(t->zero) == CUDA_SUCCESS;
    t->after_ms = accel_now_ms();
}

static int side_of(const struct stream_ctx *ctx, enum gpu_step_kind kind)
{
    return kind == GPU_STEP_COMPUTE && ctx->is_beside;
}

/* Begins a step, or what it has on one more stream. */
static bool begin_side(struct step_timing *t, int number, int side, CUstream stream)
{
    t->event[number].has[side] = record(&t->event[number].begin[side], stream);
    t->event[number].ended[side] = false;
    return t->event[number].has[side];
}

void timing_begin(struct stream_ctx *ctx, CUstream stream, const struct gpu_step *step)
{
    struct step_timing *t = &ctx->timing;
    const int side = side_of(ctx, step->kind), number = t->open[step->kind] - 1;
    if (!t->on)
        return;
    if (t->open[step->kind] == LEFT_OUT)
        return;
    if (t->open[step->kind]) { /* more of it follows */
        t->event[number].ended[side] = false;
        if (!t->event[number].has[side])
            begin_side(t, number, side, stream);
        return;
    }
    if (step->kind != GPU_STEP_COMPUTE)
        timing_wait(ctx);
    if (t->count == TIMING_STEPS || !begin_side(t, t->count, side, stream)) {
        t->left_out++;
        t->open[step->kind] = LEFT_OUT;
        return;
    }
    t->event[t->count].has[!side] = false;
    t->step[t->count] = *step;
    t->open[step->kind] = ++t->count;
}

void timing_end(struct stream_ctx *ctx, CUstream stream, enum gpu_step_kind kind)
{
    struct step_timing *t = &ctx->timing;
    const int number = t->open[kind];
    if (!t->on || !number)
        return;
    const int side = side_of(ctx, kind);
    if (number != LEFT_OUT)
        t->event[number - 1].ended[side] = record(&t->event[number - 1].end[side], stream);
    if (kind != GPU_STEP_COMPUTE)
        t->open[kind] = 0;
}

void timing_wait(struct stream_ctx *ctx)
{
    struct step_timing *t = &ctx->timing;
    const int number = t->open[GPU_STEP_COMPUTE], here = side_of(ctx, GPU_STEP_COMPUTE);
    for (int side = 0; number && number != LEFT_OUT && side < 2; side++)
        if (t->event[number - 1].has[side] && !t->event[number - 1].ended[side])
            t->event[number - 1].ended[side] =
                record(&t->event[number - 1].end[side], side == here ? ctx->stream : ctx->beside);
    t->open[GPU_STEP_COMPUTE] = 0;
}

/* Sets the milliseconds from the call's begin to an event. */
static bool read_clock(const struct step_timing *t, CUevent event, double *ms)
{
    float since;
    const bool read = event && CUDA(cuEventElapsedTime)(&since, t->zero, event) == CUDA_SUCCESS;
    *ms = read ? (double)since : 0;
    return read;
}

/* Sets when a step began and ended. */
static bool read_step(const struct step_timing *t, int number, struct gpu_step *step)
{
    bool any = false, read = true;
    for (int side = 0; side < 2 && read; side++) {
        double begin_ms, end_ms;
        if (!t->event[number].has[side])
            continue;
        read = t->event[number].ended[side] &&
               read_clock(t, t->event[number].begin[side], &begin_ms) &&
               read_clock(t, t->event[number].end[side], &end_ms);
        if (!read)
            break;
        step->start_ms = any && step->start_ms < begin_ms ? step->start_ms : begin_ms;
        step->end_ms = any && step->end_ms > end_ms ? step->end_ms : end_ms;
        any = true;
    }
    return any && read;
}

/* The error of the two clocks must not take a step out of the call, nor into another one of its
 * kind. */
static double between(double low, double ms, double high)
{
    return ms < low ? low : ms > high ? high : ms;
}

/* Returns when the call began on the device: after the thread asked for it, before it knew of it,
 * and so early that the last step has ended by now. A thread that is not woken up at once knows
 * late. */
static double begin_of(const struct step_timing *t, double latest_ms)
{
    return (t->before_ms + between(t->before_ms, latest_ms, t->after_ms)) / 2;
}

void timing_report(struct stream_ctx *ctx, struct gpu_host *host)
{
    struct step_timing *t = &ctx->timing;
    struct gpu_steps steps = {.step = t->step,
                              .device = ctx->device->common.info.index,
                              .lane = (int)(ctx - ctx->device->ctxs.ctx),
                              .left_out = t->left_out};
    double last[GPU_STEP_KINDS], longest = 0;
    const double now = accel_now_ms();
    timing_wait(ctx);
    for (int i = 0; t->on && i < t->count; i++) {
        struct gpu_step step = t->step[i];
        if (!read_step(t, i, &step)) {
            steps.left_out++;
            continue;
        }
        longest = step.end_ms > longest ? step.end_ms : longest;
        t->step[steps.count++] = step;
    }
    const double zero_ms = begin_of(t, now - longest);
    for (int kind = 0; kind < GPU_STEP_KINDS; kind++)
        last[kind] = t->before_ms;
    for (int i = 0; i < steps.count; i++) {
        struct gpu_step *step = &t->step[i];
        step->start_ms = between(last[step->kind], zero_ms + step->start_ms, now);
        step->end_ms = between(step->start_ms, zero_ms + step->end_ms, now);
        last[step->kind] = step->end_ms;
    }
    t->on = false;
    pool_count(ctx->device, NULL, &steps.device_bytes, &steps.cached_bytes);
    host->steps(host->context, &steps);
}

void timing_destroy(struct step_timing *timing)
{
    if (timing->zero)
        CUDA(cuEventDestroy)(timing->zero);
    for (int i = 0; i < TIMING_STEPS; i++) {
        for (int side = 0; side < 2; side++) {
            if (timing->event[i].begin[side])
                CUDA(cuEventDestroy)(timing->event[i].begin[side]);
            if (timing->event[i].end[side])
                CUDA(cuEventDestroy)(timing->event[i].end[side]);
        }
    }
}
