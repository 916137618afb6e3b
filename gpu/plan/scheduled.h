/*
 * A call of Level 3 as its schedule (schedule.h) sees it: what the schedule's operands are, and how
 * long the schedule says that the call takes. The run (level3.h) and the decision ask here, so that
 * they speak of the same schedule.
 */
#ifndef ACCEL_SCHEDULED_H
#define ACCEL_SCHEDULED_H

#include "call/call.h"
#include "schedule.h"

/* The most products of a batch: they are a dimension of a kernel's grid, which has no more (CUDA
 * C++ Programming Guide, Technical Specifications per Compute Capability), and no BLAS says that it
 * divides longer batches. */
#define KERNEL_BATCH_MOST 65535

enum { SCHEDULED_OWN = 2 };

struct scheduled {
    const struct accel_call *of; /* the call that it describes */
    struct schedule_call call;
    struct scheduled_operand {
        /* Of the call; NULL: it does not have it, or does not read it */
        const struct accel_span *x;
        bool across; /* the schedule's rows are X's columns */
    } operand[SCHEDULE_OPERANDS];
    /* Device memory that the kernels need besides; a batch: first for pointers to its matrices, if
     * they are not a stride apart. */
    int64_t own_bytes[SCHEDULED_OWN];
    /* Rank-k: so many rows of its operands, and columns of C, lie between the first call.head ones
     * and the others. */
    int64_t gap;
    bool keeps_old; /* a panel's old values must be kept until it is whole */
};

/* Describes a valid call. Its operation says what the operands are (op->gpu->scheduled); a batch is
 * one of its products, and how they share matrices. Returns false if the call is neither of Level 3
 * nor a batch, or has an empty result. */
bool scheduled_describe(const struct accel_call *call, struct scheduled *scheduled);

/* Returns how many different matrices so many products of a batch have of an operand. */
int64_t scheduled_distinct(const struct accel_span *x, int64_t batch);

/* Returns whether all matrices that a batch of so many products uses of an operand are side by side
 * in memory, so that they are one matrix: *all, which is no batch's. */
bool scheduled_side_by_side(const struct accel_span *x, int64_t batch, struct accel_span *all);

/* Returns whether a schedule divides the call, and so makes copies and kernels overlap. Others are
 * one kernel where memory allows. */
bool scheduled_is_divided(const struct scheduled *scheduled);

/* Returns a tile of the call's schedule as it is stored in its operand. */
struct schedule_tile scheduled_stored(const struct scheduled *scheduled, const struct schedule *s,
                                      int operand, int i, int j);

/* Returns what the schedule's tiles may have of the device's memory. */
int64_t scheduled_memory(const struct scheduled *scheduled, int64_t device_bytes);

/* Returns whether the products of a batch are faster one after the other, by their own schedules,
 * than by the batch's, or there is none. */
bool scheduled_runs_alone(const struct scheduled *scheduled, const struct schedule_rates *rates,
                          int64_t device_bytes);

/* Return the milliseconds that the schedule of a call takes, negative if there is none, or no host
 * memory; and a time that no schedule is below. kept: operands of the call that are on the device
 * already, as bits 1 << enum accel_matrix. */
double scheduled_ms(const struct scheduled *scheduled, const struct schedule_rates *rates,
                    int64_t device_bytes, unsigned kept);
double scheduled_floor_ms(const struct scheduled *scheduled, const struct schedule_rates *rates,
                          unsigned kept);

#endif
