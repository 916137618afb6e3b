/*
 * How fast kernels read the host's memory where it is, on a device that uses the host's page
 * tables.
 */
#ifndef ACCEL_TOOL_IN_PLACE_H
#define ACCEL_TOOL_IN_PLACE_H

#include "workload.h"

/* Returns the rate in 10^9 bytes a second, of a matrix times a vector, which reads each element
 * once: the best of some. 0: the device cannot, or it fails. */
double in_place_measure(struct gpu_device *device, struct workload_memory *memory);

#endif
