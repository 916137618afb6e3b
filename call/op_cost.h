/*
 * What the cost model and a calibration know of an operation.
 */
#ifndef ACCEL_OP_COST_H
#define ACCEL_OP_COST_H

#include "call.h"

/* Operations that stand for others when the machine is measured. */
enum accel_sample {
    ACCEL_NO_SAMPLE,
    ACCEL_SAMPLE_PRODUCT, /* for all others, by its rate */
    ACCEL_SAMPLE_SVD,     /* for all that compute singular values, by its fastest algorithm */
    ACCEL_SAMPLE_SOLVE    /* for all that solve by a triangle */
};

/* For machines without a calibration: the share of a large product's rate that the operation
 * reaches, and milliseconds for each of its steps (struct accel_effort). Those of BLAS and LAPACK
 * are the order's, because panels wait for each other. */
struct accel_nominal {
    double cpu_share, gpu_share, gpu_step_ms, cpu_step_ms;
};

/* The work of a call on one side: real operations, and steps that wait for each other. */
struct accel_effort {
    double operations, steps;
};

/* What a call's time depends on. What stands behind `sample` is for functions of other libraries:
 * of BLAS and LAPACK the routine's row says it. */
struct accel_cost {
    struct accel_nominal nominal;
    enum accel_sample sample;
    int dimensions; /* how many sizes typical() looks at */
    /* Returns the ACCEL_DIMENSIONS sizes that the cost depends on; 0: no such size. */
    const int64_t *(*sizes)(const struct accel_call *call);
    /* Returns the call's real floating-point operations. */
    double (*flops)(const struct accel_call *call);
    /* Returns the expected work on the CPU, or on the device, if they differ: one may compute what
     * the other leaves out. Of the CPU rather too little, of the device rather too much. NULL:
     * flops() on both, and no steps. */
    struct accel_effort (*effort)(const struct accel_call *call, bool device);
    /* Fills in call->own and the shapes of the spans for a call of these sizes, its other arguments
     * as programs mostly pass them. All else is set as for parse(). NULL: a calibration has no
     * lines of the function. */
    void (*typical)(struct accel_call *call, const int64_t size[ACCEL_DIMENSIONS]);
    /* The exported name of the function whose measured elements and steps take as long as this
     * operation's. NULL: there is none. */
    const char *measured_as;
};

#endif
