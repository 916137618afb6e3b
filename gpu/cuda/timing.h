/*
 * When the steps of a call ran on the device, for those who ask (gpu_host.steps): an event of
 * CUDA's before each step, and one behind it. They are on the device's clock, which an event at the
 * call's begin puts on the host's. Without a question there are no events.
 */
#ifndef ACCEL_TIMING_H
#define ACCEL_TIMING_H

#include "gpu/cuda/api/cuda_api.h"
#include "gpu/device/gpu.h"

struct stream_ctx;

enum { TIMING_STEPS = 256 };

/* Of a stream context, zero at first; made when needed. */
struct step_timing {
    bool on;
    CUevent zero;               /* the call's begin */
    double before_ms, after_ms; /* on the host's clock: it was between them */
    int count;
    int64_t left_out;         /* further steps */
    int open[GPU_STEP_KINDS]; /* the number of a step that goes on, from 1; 0: none */
    struct {
        /* A step of kernels has those beside, too (stream_ctx.h): by side. */
        CUevent begin[2], end[2];
        bool has[2];   /* something of the step, behind its event `begin` */
        bool ended[2]; /* there is an event behind all that the step has so far */
    } event[TIMING_STEPS];
    struct gpu_step step[TIMING_STEPS];
};

/* Begin to time a stream context's call, whose stream is empty; and end, when all its streams are
 * empty: the call's link gets the steps. */
void timing_start(struct stream_ctx *ctx);
void timing_report(struct stream_ctx *ctx, struct gpu_host *host);

/* Destroys the events that were made. */
void timing_destroy(struct step_timing *timing);

/* Begins a step of this kind here on a stream, if none goes on; a copy ends the kernels before it.
 * Does nothing if the call is not timed. */
void timing_begin(struct stream_ctx *ctx, CUstream stream, const struct gpu_step *step);
/* Ends the step of this kind here. Kernels go on: further ones belong to them, until there is a
 * copy, or a wait. */
void timing_end(struct stream_ctx *ctx, CUstream stream, enum gpu_step_kind kind);
/* Ends the kernels. */
void timing_wait(struct stream_ctx *ctx);

#endif
