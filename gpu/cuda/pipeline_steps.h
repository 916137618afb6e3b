/*
 * The steps of a schedule under way: which may go to its stream now, which streams wait for which
 * events, and who is told of a copy.
 */
#ifndef ACCEL_PIPELINE_STEPS_H
#define ACCEL_PIPELINE_STEPS_H

#include "pipeline.h"

enum { UP = SCHEDULE_UP, COMPUTE = SCHEDULE_COMPUTE, DOWN = SCHEDULE_DOWN };

struct steps {
    struct pipeline pipeline;
    struct pipeline_job *job;
    /* Copies of steps in both directions: more than have chunks in buffers at once */
    struct pipeline_copy copy[2][WIDE_RING_BUFFERS];
    int copies[2];
    int64_t copied[2]; /* of the directions */
    int unpacked;      /* downloads that are in host memory as a whole */
    /* The chunks up to the last download with an even number, and with an odd one */
    int64_t ends[2];
    int next[SCHEDULE_ENGINES];            /* of the schedule's steps: the engine's next one */
    int put[SCHEDULE_ENGINES];             /* steps of the engine that are on its streams */
    int on[CTX_STREAMS];                   /* steps that are on the stream */
    int awaited[CTX_STREAMS][CTX_STREAMS]; /* steps of the second that the first one waits for */
    int32_t *beside; /* of the first kernels, by their number, so many go beside; NULL: none does */
};

/* Makes the streams ready, and events behind their steps; chooses the kernels that go beside. */
enum gpu_status steps_prepare(struct steps *steps);

/* Finds the engine's next step, from `next` on. */
void steps_find(struct steps *steps, int engine, int next);

/* Returns the engine's next step if all that it waits for is on the streams; else NULL. */
const struct schedule_step *steps_next(const struct steps *steps, int engine);

#endif
