/*
 * Runs a batch of products by a schedule (schedule.h): in one kernel if it is small, else in
 * groups, of which one goes up, one is computed, and one comes down at the same time (flow.h).
 * Products that are so large that two have no room, or that overlap better alone, run one after the
 * other by their own schedules. After a failure, finished columns stay, and the program's original
 * computes the rest.
 */
#ifndef ACCEL_PRODUCTS_H
#define ACCEL_PRODUCTS_H

#include "gpu/cache/factors.h"
#include "gpu/device/kernels.h"

struct products_group {
    int64_t count;
    /* Of each operand: its first matrix, and the elements to the next one; or with pointers, a
     * device array of where they are. */
    struct gpu_tile at[SCHEDULE_OPERANDS];
    int64_t stride[SCHEDULE_OPERANDS];
    bool pointers;
};

struct products {
    struct gpu_work *work;
    /* Puts the kernel of a group on the stream. Where the call only scales C, A and B are zeros:
     * kernel_gemm_strided(). */
    enum gpu_status (*compute)(const struct products *p, const struct products_group *group);
    /* Runs a call of one product. */
    enum gpu_status (*alone)(struct gpu_work *work);
    /* products_run()'s, for compute(): */
    struct scheduled scheduled;
    /* products.c's: */
    struct schedule schedule;
    struct factors factors;
    gpu_address memory[SCHEDULE_OPERANDS], zeros;
    gpu_address pointers; /* three for each product: all of A, of B, of C */
    int settled;          /* groups of a result in place that are there for certain */
};

/* Runs the work's call, a batch of several products whose result is not empty. Returns the status
 * for gpu_run(). */
enum gpu_status products_run(struct products *p);

#endif
