/*
 * How the GPU computes an operation. What its functions take of other layers is declared here
 * alone.
 */
#ifndef ACCEL_OP_GPU_H
#define ACCEL_OP_GPU_H

#include "call.h"
#include "status.h"

struct decomposition;
struct gpu_work;
struct panels_call;
struct scheduled;
struct solver;

/* LAPACK: how a call goes through a device whose memory is too small for its operands: see
 * ops/lapack/in_panels.h. */
struct lapack_panels {
    /* Describes the call's jobs, two at most, and returns how many there are; 0: it cannot. */
    int (*calls)(const struct accel_call *call, struct panels_call *panels);
    /* In place of op->gpu->steps. All operands are in host memory. */
    void (*steps)(struct solver *s);
};

/* The ways to run a call on the GPU: run(), or of LAPACK steps(). */
struct accel_gpu {
    /* LAPACK: looks at a few elements of operands in host memory, and returns whether the original
     * will have to report on the matrix (INFO > 0). Then nothing goes up. NULL: it does not. */
    bool (*is_hopeless)(const struct accel_call *call);
    /* Returns whether the GPU's libraries can do it with these flags and sizes. NULL: with all. */
    bool (*is_supported)(const struct accel_call *call);
    /* Runs a valid, non-empty call on a stream context, and returns when the result is in place:
     * see gpu/device/work.h. NULL: `steps` does. */
    enum gpu_status (*run)(struct gpu_work *work);
    /* Of another library: frees what run() has left, because the result was wrong; the call is not
     * completed. NULL: nothing is left. */
    void (*discard)(const struct accel_call *call);
    /* Level 3, and a batch of one product: fills in the kind of the schedule, its sizes, operations
     * and operands, and device memory that the kernels need besides (gpu/plan/scheduled.h), for a
     * valid call. NULL: it has no schedule. */
    void (*scheduled)(const struct accel_call *call, struct scheduled *scheduled);
    /* Over several devices: returns where a valid call may be cut, as bits: enum accel_cuts
     * (cut.h). NULL: a call runs on one. */
    unsigned (*cuts)(const struct accel_call *call);
    /* LAPACK: makes the steps of gpu/exec/lapack/solver.h that solver_run() takes. */
    void (*steps)(struct solver *s);
    /* NULL: what exceeds the device's memory stays on the CPU */
    const struct lapack_panels *in_panels;
    /* Why the device must have the whole matrix at once, as docs/limits.md has it; NULL: there is
     * in_panels or decompose, or the operation `moves`, or there is no `steps`. */
    const char *whole;
    /* LAPACK: what exceeds that, all operands in host memory, by inner calls (decompose.h). *done:
     * the call with results in memory of its own, which decomposition_free() frees; the operands
     * are only read. NULL: not so. */
    enum gpu_status (*decompose)(struct decomposition *c, const struct accel_call *call,
                                 struct accel_call *done);
};

#endif
