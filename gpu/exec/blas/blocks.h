/*
 * Runs an operation of Level 3 by a schedule (schedule.h): in one piece on the lane's stream if it
 * is small, else in blocks while operands still go up and results come down (flow.h). After a
 * failure, finished blocks stay, and the program's original computes the others; of one that was
 * overwritten in part, the old values are put back first (blocks_rest.h, of panels).
 *
 * An operation says which kernels add a block's product; scheduled.h, what the schedule's operands
 * are.
 */
#ifndef ACCEL_BLOCKS_H
#define ACCEL_BLOCKS_H

#include "gpu/cache/staying.h"
#include "gpu/device/kernels.h"
#include "gpu/exec/executor.h"

struct blocks {
    struct executor executor;
    /* Computes a step on the tiles that blocks_tile() tells. */
    enum gpu_status (*compute)(const struct executor *e, const struct schedule_step *step);
    /* blocks.c's: */
    struct peers *peers; /* see blocks_lent.h */
    struct staying result;
    int32_t *place[SCHEDULE_OPERANDS]; /* of each cell */
    char *aside;  /* host memory for what the original needs after a failure, used then alone */
    char *old[2]; /* host memory for a cell's old values each */
    int finished; /* blocks of a result in place that are computed */
};

/* Runs the work's call, which has a result that is not empty. Returns the status for gpu_run(). */
enum gpu_status blocks_run(struct blocks *b);

/* Returns the triangle of C that is computed, U or L; 0: all of it is. */
char blocks_triangle(const struct executor *e);

/* Returns where a cell is. */
struct gpu_tile blocks_tile(const struct executor *e, int operand, int i, int j);

#endif
