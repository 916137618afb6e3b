/*
 * What a machine can do at most, as a calibration has measured it: the rates of large products on
 * the CPU and on the GPU, and that of copies.
 */
#ifndef ACCEL_TOOL_CEILINGS_H
#define ACCEL_TOOL_CEILINGS_H

#include "dispatch/cost/calibration.h"

struct ceilings {
    /* 10^9 operations a second, [0] in single, [1] in double precision; 0: not measured. */
    double cpu_gflops[2], gpu_gflops[2];
    double up_gbps;                                              /* 0: not measured */
    char cpu[CALIBRATION_KEY_BYTES], gpu[CALIBRATION_KEY_BYTES]; /* the sections; empty: none */
};

/* Finds them in a calibration: the CPU's in its fastest section of this machine, the GPU's in that
 * of this name, or in the first one (NULL). */
void ceilings_find(struct ceilings *ceilings, const struct calibration *file, const char *gpu_name);

#endif
