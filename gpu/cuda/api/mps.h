/*
 * CUDA's Multi-Process Service: with it, kernels of several processes run on a device at the same
 * time; without it, the processes take turns. (NVIDIA, "Multi-Process Service".)
 */
#ifndef ACCEL_MPS_H
#define ACCEL_MPS_H

#include "cuda_api.h"
#include "gpu/device/gpu.h"

/* Returns the folder of the service's pipes: a variable's, or its default. */
const char *mps_folder(void);

/* Returns whether the service's control daemon has put its pipe there. It may have ended since. */
bool mps_has_pipe(void);

/* Returns whether contexts of the device go through the service: what the driver says; of an older
 * driver, which cannot be asked, whether the pipe is there, as that driver looks for it, too. */
bool mps_serves(CUdevice device);

#endif
