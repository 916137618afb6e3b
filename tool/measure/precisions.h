/*
 * By how much the GPU's products are faster in the other precisions that it has than in native
 * precision: measured, without copies.
 */
#ifndef ACCEL_TOOL_PRECISIONS_H
#define ACCEL_TOOL_PRECISIONS_H

#include "workload.h"

/* By enum gpu_precision; 0: not measured, as the GPU has it not, or cuBLAS has computed in native
 * precision. */
struct precision_gains {
    double gain[GPU_PRECISIONS];
};

/* Measures, with products that take some milliseconds. */
struct precision_gains precisions_measure(struct gpu_device *device,
                                          struct workload_memory *memory);

#endif
