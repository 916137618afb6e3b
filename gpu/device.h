/*
 * A device in use: what is known of it, how it has failed, and what it can do, as a table of functions, so that gpu.h's functions
 * reach any kind of device. Each kind has a structure of its own that begins with this one. Names no CUDA.
 */
#ifndef ACCEL_DEVICE_H
#define ACCEL_DEVICE_H

#include "gpu.h"

/* What a device does: as gpu.h's functions of the same names say. */
struct gpu_device_functions {
    enum gpu_status (*run)(struct gpu_device *device, const struct accel_call *call,
                           struct gpu_host *host);
    void (*locate)(struct gpu_device *device, struct accel_span *spans, int count, int64_t batch);
    bool (*fetch)(struct gpu_device *device, void *host, const struct accel_span *x);
    bool (*store)(struct gpu_device *device, const struct accel_span *x, const void *host);
    bool (*measure_copies)(struct gpu_device *device, double *up_gbps, double *down_gbps);
    void (*trim)(struct gpu_device *device);
    void (*stop)(struct gpu_device *device); /* frees the structure, too */
};

/* The first failure is the one that tells; later ones follow from it. One of a library tells until the device fails. Each is written
 * once, under failure.c's lock. */
struct gpu_failures {
    char of_device[GPU_FAILURE_BYTES], of_library[GPU_FAILURE_BYTES];
};

struct gpu_device {
    const struct gpu_device_functions *functions;
    struct gpu_info info; /* constant */
    struct gpu_failures failures;
    /* enum gpu_svd: which algorithm a matrix gets, by type, with vectors or without, and octave. */
    _Atomic unsigned char svd[ACCEL_DTYPES][2][GPU_SVD_OCTAVES];
};

#endif
