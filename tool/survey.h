/*
 * The measurements of a calibration: calls of every routine in several shapes, on the CPU and on the GPU, in a given
 * time, half of it at most for the GPU. What is cheapest comes first, whatever it is a call of, so that all routines get
 * as far as the time allows, and what cheap ones do not need the others have. In the last quarter of the time what was
 * measured is measured again, the cheapest first: the lesser time counts. A shape that takes longer than a larger one of its kind
 * is measured again before that, and left out where it still does.
 */
#ifndef ACCEL_TOOL_SURVEY_H
#define ACCEL_TOOL_SURVEY_H

#include "first_calls.h"
#include "svd_survey.h"
#include "workload.h"

enum { SURVEY_SHAPES = 27 };

enum survey_kind { SURVEY_SQUARE, SURVEY_SKINNY, SURVEY_TALL, SURVEY_KINDS };

struct survey_shape {
    enum survey_kind kind;
    int64_t size[ACCEL_DIMENSIONS]; /* 0 where the routine has none */
    double flops;
    double ms;        /* what it took, copies included; 0: not measured */
    double copies_ms; /* what those should take, at the measured rates */
    double model_ms;  /* without the copies */
};

/* One routine on one side. */
struct survey_track {
    const struct accel_routine *routine;
    bool gpu;
    struct library_function function;         /* the CPU's */
    struct survey_shape shape[SURVEY_SHAPES]; /* in the order of their operations */
    int shapes, next;
    int least; /* that are measured at any rate */
};

struct survey {
    const struct libraries *library;
    struct gpu_device *device; /* NULL: none, or another survey's */
    bool gpu;                  /* it is measured; false from when it fails */
    double up_gbps, down_gbps;
    struct first_calls first; /* the GPU's */
    struct svd_survey svd;    /* the GPU's */
    double start, deadline;   /* by survey_now(); the smallest shapes are measured anyway */
    struct workload_memory memory;
    struct survey_track *track;
    int tracks;
    int discarded; /* shapes that took longer than larger ones, each time */
};

/* Seconds of a clock that only goes forward. */
double survey_now(void);

/* Makes the tracks of the library's routines, and of the GPU's where there is one. False without memory. */
bool survey_open(struct survey *survey);
void survey_close(struct survey *survey);

/* Told of each shape before it is measured. */
typedef void survey_progress(const struct survey *survey, const struct survey_track *track,
                             const struct survey_shape *shape);

/* Measures. progress: NULL where it is not wanted. */
void survey_run(struct survey *survey, survey_progress *progress);

#endif
