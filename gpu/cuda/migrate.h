/*
 * Moves host memory that kernels will read where it is to the device (gpu_host.migrates): its pages
 * stay there until the host or the driver moves them back. (CUDA driver API, cuMemPrefetchAsync:
 * also of memory that CUDA has not allocated, on devices that reach it.)
 */
#ifndef ACCEL_MIGRATE_H
#define ACCEL_MIGRATE_H

#include "gpu/device/work.h"

/* Asks for the pages of the call's placed operands, in stream order. A driver that cannot move them
 * leaves them where they are, and kernels read them there. */
void migrate_operands(struct gpu_work *work);

#endif
