/*
 * A CPU library, as the cost model knows it and reaches it.
 */
#ifndef ACCEL_CPU_LIBRARY_H
#define ACCEL_CPU_LIBRARY_H

#include "call/call.h"
#include "cpu_kernels.h"

/* A CPU library: the one that has the originals of its callers. Constant, except for threads();
 * thread-safe. */
struct dispatch_library {
    const char *name; /* in a calibration: its file's name and size */
    const char *path; /* from the dynamic linker; empty: the program itself, NULL: not known */
    const char *file; /* the same without symbolic links */
    /* Returns the number of threads that it is set to now; at least 1. */
    int (*threads)(const struct dispatch_library *library);
    /* Runs a call of BLAS. False if it has no such routine. */
    bool (*run)(const struct dispatch_library *library, const struct accel_call *call);
    enum cpu_kernels kernels;
    const char *kernels_name; /* as the library says it ("CORE2"); NULL: it does not say */
};

#endif
