/*
 * cuBLAS's math modes: they are set only where the user has asked for another precision than the
 * caller's, and for one call. For device.c and run.c. A stream context belongs to one thread.
 */
#ifndef ACCEL_CUDA_PRECISION_H
#define ACCEL_CUDA_PRECISION_H

#include "device.h"

/* For one call on a stream context. */
struct call_precision {
    CUdeviceptr workspace; /* of cuBLAS, from the pool; 0: its own */
    CUdeviceptr bits;      /* an int, in the same block: what cuBLAS says of the emulation */
};

/* Sets the precisions that a device has for products of each kind, as bits 1 << enum gpu_precision,
 * with cuBLAS of this version (130100). */
void precision_all(unsigned char all[GPU_PRODUCTS], CUdevice device, int cublas_version);

/* Sets the stream context's cuBLAS to work->host->precision, and gives it the workspace. */
enum gpu_status precision_begin(struct call_precision *precision, struct gpu_work *work);

/* After the call's work: if that is done, asks what cuBLAS did; takes the workspace from it. The
 * caller puts that back to the pool, when the stream context is quiet. No failure here undoes the
 * call, whose result is in place: cuBLAS then keeps the workspace for good. */
void precision_end(struct call_precision *precision, struct gpu_work *work, bool done);

#endif
