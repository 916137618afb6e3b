/*
 * A second kind of device, for tests: the host. Its memory is the host's, its streams are the
 * calling thread, and its BLAS and LAPACK are an OpenBLAS in a namespace of its own, which nothing
 * interposes. A libaccel with it in place of gpu/cuda/ (hostdevice.mk) proves that no other folder
 * knows CUDA.
 */
#ifndef ACCEL_TEST_HOST_DEVICE_H
#define ACCEL_TEST_HOST_DEVICE_H

#include "gpu/device/kernels.h"
#include "gpu/device/own.h"
#include "gpu/exec/lapack/solver.h"

/* Returns OpenBLAS's routine of a name, with the letter of a type before it; NULL: it has none. */
typedef void host_routine();
host_routine *host_blas(enum accel_dtype dtype, const char *name);

/* The arguments of Fortran: an integer, an address on the device, a matrix there. */
#define INTEGER(x) (&(int){(int)(x)})
#define AT(x)      ((void *)(uintptr_t)(x).ptr)
#define MATRIX(x)  AT(x), INTEGER((x).ld)
#define LENGTHS    (size_t)1, (size_t)1, (size_t)1, (size_t)1 /* of flags, behind all others */

extern const struct gpu_copies host_copies;     /* host_copies.c */
extern const struct gpu_kernels host_kernels;   /* host_kernels.c */
extern const struct solver_library host_solver; /* host_solver.c */

#endif
