/*
 * What the executors of all kinds of calls do alike: they take device memory, with less at each
 * retry, run a schedule, and after a failure have the program's original compute what is missing. A
 * kind supplies the functions that differ.
 */
#ifndef ACCEL_EXECUTOR_H
#define ACCEL_EXECUTOR_H

#include "gpu/cache/cached_inputs.h"
#include "gpu/device/pipeline_job.h"

/* ---- Device memory ---- */

struct executor_memory {
    /* Plans the call for so many bytes. Returns false if they, and fewer, have no plan. */
    bool (*plan)(void *context, int64_t bytes);
    /* Takes the plan's memory. first: at the first attempt, it looks for cached inputs. */
    enum gpu_status (*take)(void *context, bool first);
    /* NULL, or: goes on without the cached inputs, as memory is short. */
    void (*leave)(void *context);
};

/* Plans a call for the device's memory and takes what the plan needs; while that is
 * GPU_NO_MEMORY, gives back what the call has taken, and plans for less. Nothing of the call is on
 * the stream yet. */
enum gpu_status executor_prepare(struct gpu_work *work, const struct executor_memory *memory,
                                 void *context);

/* Returns the rates of a call, or those of any device. */
const struct schedule_rates *executor_rates(const struct gpu_work *work);

/* ---- After a failure ---- */

struct executor_rest {
    bool in_place; /* kernels write to the program's own result */
    bool reads;    /* the result depends on its old values */
    bool written;  /* a part of it is in the program's memory */
    /* Has the original compute what is missing. Returns false on a failure. */
    bool (*by_original)(const void *context);
};

/* Returns the status for gpu_run() after a failure: nothing was written, or the original has done
 * the rest, or neither, because a kernel may have changed a result that is in place. A result that
 * does not depend on its old values can be computed anew, once no kernel writes to it. */
enum gpu_status executor_recover(struct gpu_work *work, enum gpu_status failure,
                                 const struct executor_rest *rest, const void *context);

/* Have the original compute a part of a call's result, if it is not empty; and what is missing of a
 * part, of which so many columns are finished, and so many rows of the next one. Return false on a
 * failure. */
bool executor_part_by_original(const struct gpu_work *work, const struct accel_call *call,
                               struct schedule_tile part);
bool executor_rest_of_part(const struct gpu_work *work, const struct accel_call *call,
                           struct schedule_tile part, int64_t done_cols, int64_t done_rows);

/* ---- Calls that run by a schedule ---- */

struct executor;

struct executor_kind {
    /* Makes the schedule for so many bytes of device memory. Returns false if there is none. */
    bool (*make)(struct executor *e, int64_t bytes);
    /* NULL, or: takes the memory of an operand. */
    enum gpu_status (*take)(struct executor *e, int operand, int64_t bytes, gpu_address *memory);
    /* Has the original compute what pipeline.written, done_cols and done_rows leave. Returns false
     * on a failure. */
    bool (*rest_by_original)(const void *e);
};

/* The first member of the kind's own struct. */
struct executor {
    struct gpu_work *work;
    const struct executor_kind *kind;
    struct scheduled scheduled;
    struct schedule schedule;
    struct cached_inputs cached;
    gpu_address memory[SCHEDULE_OPERANDS], own[SCHEDULED_OWN];
    gpu_address zeros;            /* where the call only scales its result: see kernels_zeros() */
    struct pipeline_job pipeline; /* its context is this */
    int settled;                  /* units of a result in place that are there for certain */
};

/* Describes the work's call. Returns false if no schedule can run it. */
bool executor_describe(struct executor *e);

/* Makes the schedule as if all operands came from the host, so that the result does not depend on
 * what is on the device, and takes its memory. The caller frees the schedule. */
enum gpu_status executor_take(struct executor *e);

/* Runs the pipeline: in its own order, or as uploads, kernels and downloads come about. */
enum gpu_status executor_run(struct executor *e, bool in_order);

/* Waits for so many units of a result in place: the caller may read it as soon as we return. */
enum gpu_status executor_settle(struct executor *e, int units);

/* Recovers from a failure of the pipeline. */
enum gpu_status executor_end_failed(struct executor *e, enum gpu_status failure);

/* Returns where a tile that a step copies is on the device. */
static inline gpu_address executor_slot(const struct executor *e, const struct schedule_step *step)
{
    const int64_t bytes = e->schedule.slot_bytes[step->operand];
    return e->memory[step->operand] + (gpu_address)(step->slot * bytes);
}

/* Returns where the whole of an operand is that the schedule does not bring up: where the program
 * has it, or a cached copy. */
struct dmat executor_whole(const struct executor *e, int operand);
bool executor_is_cached(const struct executor *e, int operand);

#endif
