/*
 * Runs a batch of products by a schedule (schedule.h): in one kernel if it is small, else in
 * groups, of which one goes up, one is computed, and one comes down at the same time
 * (pipeline_job.h). Products that are so large that two have no room, or that overlap better alone,
 * run one after the other by their own schedules. After a failure, finished columns stay, and the
 * program's original computes the rest.
 */
#ifndef ACCEL_BATCH_H
#define ACCEL_BATCH_H

#include "gpu/device/kernels.h"
#include "gpu/exec/executor.h"

struct batch_group {
    int64_t count;
    /* Of each operand: its first matrix, and the elements to the next one; or with pointers, a
     * device array of where they are. */
    struct dmat at[SCHEDULE_OPERANDS];
    int64_t stride[SCHEDULE_OPERANDS];
    bool pointers;
};

struct batch {
    struct executor executor;
    /* Puts the kernel of a group on the stream. Where the call only scales C, A and B are zeros:
     * see gpu_kernels.gemm_strided(). */
    enum gpu_status (*compute)(const struct executor *e, const struct batch_group *group);
    /* Runs a call of one product. */
    enum gpu_status (*alone)(struct gpu_work *work);
    /* batch.c's: */
    int64_t finished; /* products that ran alone */
};

/* Runs the work's call, a batch of several products whose result is not empty. Returns the status
 * for gpu_run(). */
enum gpu_status batch_run(struct batch *p);

#endif
