/*
 * The extra time of first calls on this GPU: a routine's first call loads its kernels, the first
 * call of LAPACK opens cuSOLVER. Only a process that has made no call can measure it. The
 * libraries' files may be in the page cache already.
 */
#ifndef ACCEL_TOOL_FIRST_CALLS_H
#define ACCEL_TOOL_FIRST_CALLS_H

#include "workload.h"

/* Milliseconds; 0: not measured. */
struct first_calls {
    double kernels_ms; /* mean of the BLAS routines */
    double solver_ms;
};

/* Measures. The device must not have run a call. */
struct first_calls first_calls_measure(struct gpu_device *device, struct workload_memory *memory);

#endif
