/*
 * The kernels of our own on one device: see gpu/device/own.h.
 */
#ifndef ACCEL_CUDA_OWN_H
#define ACCEL_CUDA_OWN_H

#include <pthread.h>
#include <stdatomic.h>

#include "gpu/cuda/api/cuda_api.h"

struct cuda_device;

/* For own.c alone. */
struct own_module {
    pthread_mutex_t lock; /* of the load */
    _Atomic enum { OWN_UNTRIED, OWN_LOADED, OWN_MISSING } state;
    CUmodule module;
};

/* Make a new device's kernels, not loaded; and end them, which needs the device. The device is zero
 * elsewhere. Not thread-safe. */
void own_begin(struct cuda_device *device);
void own_end(struct cuda_device *device);

#endif
