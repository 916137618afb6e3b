/*
 * Runs an operation of Level 3 by a schedule (schedule.h): as one kernel on the call's stream if it
 * is small, else in blocks while operands still go up and results come down (pipeline_job.h). After
 * a failure, finished blocks stay, and the program's original computes the others; of one that was
 * overwritten in part, the old values are put back first (level3_recovery.h, of panels).
 *
 * An operation says which kernels add a block's product; scheduled.h, what the schedule's operands
 * are.
 */
#ifndef ACCEL_LEVEL3_H
#define ACCEL_LEVEL3_H

#include "gpu/cache/result_capture.h"
#include "gpu/device/kernels.h"
#include "gpu/exec/executor.h"

struct level3 {
    struct executor executor;
    /* Computes a step on the tiles that level3_tile() tells. */
    enum gpu_status (*compute)(const struct executor *e, const struct schedule_step *step);
    /* level3.c's: */
    struct peer_tiles *peer_tiles; /* see level3_peer_tiles.h */
    struct result_capture result;
    int32_t *slot[SCHEDULE_OPERANDS]; /* of each tile */
    char *recovery; /* host memory for what the original needs after a failure, used then alone */
    char *old[2];   /* host memory for a tile's old values each */
    int finished;   /* blocks of a result in place that are computed */
};

/* Runs the work's call, which has a result that is not empty. Returns the status for gpu_run(). */
enum gpu_status level3_run(struct level3 *b);

/* Returns the triangle of C that is computed, U or L; 0: all of it is. */
char level3_triangle(const struct executor *e);

/* Returns where a tile is. */
struct dmat level3_tile(const struct executor *e, int operand, int i, int j);

#endif
