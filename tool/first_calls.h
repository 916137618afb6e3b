/*
 * What first calls take on this GPU beyond the calls themselves: of a routine, whose kernels are loaded, and of LAPACK, with
 * which cuSOLVER is opened. Only the process that has made no calls yet can measure that, and with its files in the page cache
 * where another has used them before.
 */
#ifndef ACCEL_TOOL_FIRST_CALLS_H
#define ACCEL_TOOL_FIRST_CALLS_H

#include "workload.h"

/* Milliseconds, above 0; 0: not measured. */
struct first_calls {
    double kernels_ms; /* on average of the routines of BLAS */
    double solver_ms;
};

/* The device has run no call. */
struct first_calls first_calls_measure(struct gpu_device *device, struct workload_memory *memory);

#endif
