/*
 * The measurements of a calibration: calls of every routine in several shapes, on the CPU and on
 * the GPU, in a given time. The GPU gets half of it at most. The cheapest call comes first, of any
 * routine: so all routines get as far as the time allows. In the last quarter of the time all calls
 * are measured again, the shortest first; the lesser time counts. A shape that takes longer than a
 * larger one of its kind is measured again before that, and is left out if it still does.
 */
#ifndef ACCEL_TOOL_SURVEY_H
#define ACCEL_TOOL_SURVEY_H

#include "first_calls.h"
#include "precisions.h"
#include "solve_survey.h"
#include "svd_survey.h"
#include "workload.h"

enum { SURVEY_SHAPES = 27 };

enum survey_kind { SURVEY_SQUARE, SURVEY_SKINNY, SURVEY_TALL, SURVEY_KINDS };

struct survey_shape {
    enum survey_kind kind;
    int64_t size[ACCEL_DIMENSIONS]; /* 0: the routine has no such size */
    double flops;
    double ms;        /* measured, with copies; 0: not measured */
    double copies_ms; /* the copies' part, by the measured rates */
    double kernel_ms; /* of a call that a schedule divides, in one kernel; 0: of another call */
    double model_ms;  /* without copies */
};

/* One routine on one side. */
struct survey_track {
    const struct accel_routine *routine;
    bool gpu;
    struct library_function function;         /* the CPU's */
    struct survey_shape shape[SURVEY_SHAPES]; /* by flops */
    int shapes, next;
    int least; /* how many are measured at any rate */
};

struct survey;
/* Is told of each shape before it is measured. */
typedef void survey_progress(const struct survey *survey, const struct survey_track *track,
                             const struct survey_shape *shape);

struct survey {
    const struct libraries *library;
    struct gpu_device *device;    /* NULL: there is none, or another survey has it */
    bool gpu;                     /* the device is measured; becomes false if it fails */
    struct gpu_copy_rates copies; /* the GPU's */
    double place_gbps;            /* 0: the GPU cannot read the host's memory in place */
    struct first_calls first;     /* the GPU's */
    struct precision_gains gains; /* the GPU's */
    struct solve_survey solves;   /* the GPU's */
    struct block_paces paces[ACCEL_DTYPES];
    /* By how much calls took longer than their schedules say; 0: not known */
    double schedule_ratio;
    struct svd_survey svd;  /* the GPU's */
    double start, deadline; /* by survey_now(); the smallest shapes are measured at any rate */
    struct workload_memory memory;
    survey_progress *progress; /* may be NULL */
    struct survey_track *track;
    int tracks;
    int discarded; /* shapes that took longer than larger ones each time */
};

/* Returns the seconds of a monotonic clock. */
double survey_now(void);

/* Makes a track of each routine that the library has, and that the GPU can run. False if memory
 * runs out. */
bool survey_open(struct survey *survey);
void survey_close(struct survey *survey);

/* Measures until the deadline. */
void survey_run(struct survey *survey);

#endif
