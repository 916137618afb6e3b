/*
 * Measures trainings of the system's libsvm and liblinear, for a calibration: what an element, a
 * kernel value or a row takes on this CPU, and the same trainings on a device. Programs with a copy
 * of these libraries of their own are judged by it, too.
 */
#ifndef ACCEL_TOOL_ML_BENCH_H
#define ACCEL_TOOL_ML_BENCH_H

#include "ops/svm/libsvm.h"
#include "bench_plan.h"

/* A device that trains in place of a library. */
struct ml_device {
    struct gpu_device *device;
    double up_gbps, down_gbps;
    const struct accel_routine *routine;
    int layout;       /* what the operation's accepts() says of the library */
    double copies_ms; /* of the last training's, by the rates */
};

/* The functions of a library that is there. */
struct ml_library {
    void *(*train)(const void *problem, const void *parameter);
    void (*destroy)(void **model);
    struct ml_device *device; /* NULL: the library itself trains */
};

/* Rows of two classes, 1 and -1, that overlap so that a third of them or so lie between. The
 * nodes of both libraries are alike. */
struct ml_bench_rows {
    int rows, features;
    struct libsvm_node *nodes;
    void *x; /* pointers to the rows */
    double *y;
};

/* A function that trains. */
struct ml_bench {
    const char *routine, *library;
    const char *version, *destroy, *set_print; /* what the library must have besides */
    void (*print)(const char *text);           /* gets the library's lines */
    /* Returns the milliseconds of a training of the size, which has these rows; 0: the device
     * cannot. */
    double (*measure)(const struct ml_library *library, const struct ml_bench_rows *made,
                      const int64_t size[ACCEL_DIMENSIONS]);
    const int64_t (*size)[ACCEL_DIMENSIONS]; /* by work */
    int sizes;
    double (*work)(const int64_t size[ACCEL_DIMENSIONS]);
};

extern const struct ml_bench ml_bench_svm, ml_bench_linear;

/* Makes a bench plan of one track, of which bench_plan_close() frees the memory: trainings of
 * growing size, until the next one would take more than the seconds left. No tracks: the library is
 * not there. False if memory runs out. */
bool ml_bench_run(const struct ml_bench *one, struct bench_plan *plan, double seconds);

/* The same on a device, as a track of its own, without shapes if the library is not there, or the
 * device cannot. */
bool ml_bench_run_on(const struct ml_bench *one, struct gpu_device *device, double up_gbps,
                     double down_gbps, struct bench_track *track, double seconds);

/* Returns the milliseconds of a training: of the library's in CPU time of this thread, which trains
 * alone, so that what else runs does not count; of a device's all of it. 0: the device cannot. */
double ml_bench_train(const struct ml_library *library, const void *problem, const void *parameter);

#endif
