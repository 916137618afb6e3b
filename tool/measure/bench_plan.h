/*
 * The measurements of a calibration: calls of every routine in several shapes, on the CPU and on
 * the GPU, in a given time. The GPU gets half of it at most. The cheapest call comes first, of any
 * routine: so all routines get as far as the time allows. In the last quarter of the time all calls
 * are measured again, the shortest first; the lesser time counts. A shape that takes longer than a
 * larger one of its kind is measured again before that, and is left out if it still does.
 */
#ifndef ACCEL_TOOL_BENCH_PLAN_H
#define ACCEL_TOOL_BENCH_PLAN_H

#include "first_calls.h"
#include "precisions.h"
#include "solve_bench.h"
#include "svd_bench.h"
#include "workload.h"

enum { BENCH_SHAPES = 27 };

enum bench_kind { BENCH_SQUARE, BENCH_SKINNY, BENCH_TALL, BENCH_KINDS };

struct bench_shape {
    enum bench_kind kind;
    int64_t size[ACCEL_DIMENSIONS]; /* 0: the routine has no such size */
    double flops;
    double ms;        /* measured, with copies; 0: not measured */
    double copies_ms; /* the copies' part, by the measured rates */
    double kernel_ms; /* of a call that a schedule divides, in one kernel; 0: of another call */
    double model_ms;  /* without copies */
};

/* One routine on one side. */
struct bench_track {
    const struct accel_routine *routine;
    bool gpu;
    struct library_function function;       /* the CPU's */
    struct bench_shape shape[BENCH_SHAPES]; /* by flops */
    int shapes, next;
    int least; /* how many are measured at any rate */
};

struct bench_plan;
/* Is told of each shape before it is measured. */
typedef void bench_progress(const struct bench_plan *plan, const struct bench_track *track,
                            const struct bench_shape *shape);

struct bench_plan {
    const struct libraries *library;
    struct gpu_device *device;    /* NULL: there is none, or another bench plan has it */
    bool gpu;                     /* the device is measured; becomes false if it fails */
    struct gpu_copy_rates copies; /* the GPU's */
    double place_gbps;            /* 0: the GPU cannot read the host's memory in place */
    struct first_calls first;     /* the GPU's */
    double start_ms;              /* CUDA's */
    struct precision_gains gains; /* the GPU's */
    struct solve_bench solves;    /* the GPU's */
    struct block_paces paces[ACCEL_DTYPES];
    /* By how much calls took longer than their schedules say; 0: not known */
    double schedule_ratio;
    struct svd_bench svd;   /* the GPU's */
    double start, deadline; /* by bench_now(); the smallest shapes are measured at any rate */
    struct workload_memory memory;
    bench_progress *progress; /* may be NULL */
    struct bench_track *track;
    int tracks;
    int discarded; /* shapes that took longer than larger ones each time */
};

/* Returns the seconds of a monotonic clock. */
double bench_now(void);

/* Makes a track of each routine that the library has, and that the GPU can run. False if memory
 * runs out. */
bool bench_plan_open(struct bench_plan *plan);
void bench_plan_close(struct bench_plan *plan);

/* Measures until the deadline. */
void bench_plan_run(struct bench_plan *plan);

#endif
