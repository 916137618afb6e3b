/*
 * CUDA's libraries, opened at run time: a table of functions with CUDA's own prototypes.
 */
#ifndef ACCEL_CUDA_API_H
#define ACCEL_CUDA_API_H

#include <cuda.h>
#include <cublas_v2.h>
#include <cusolverDn.h>
#include <stdbool.h>

/* As in CUDA 13.0's cusolverDn.h. The header of 12.4 and older ones lack them, and a library may be newer than the headers.
 * If the header has them, the compiler compares. */
cusolverStatus_t CUSOLVERAPI cusolverDnXgeev_bufferSize(
    cusolverDnHandle_t handle, cusolverDnParams_t params, cusolverEigMode_t jobvl,
    cusolverEigMode_t jobvr, int64_t n, cudaDataType type_a, const void *a, int64_t lda,
    cudaDataType type_w, const void *w, cudaDataType type_vl, const void *vl, int64_t ldvl,
    cudaDataType type_vr, const void *vr, int64_t ldvr, cudaDataType compute_type,
    size_t *device_bytes, size_t *host_bytes);
cusolverStatus_t CUSOLVERAPI cusolverDnXgeev(cusolverDnHandle_t handle, cusolverDnParams_t params,
                                             cusolverEigMode_t jobvl, cusolverEigMode_t jobvr,
                                             int64_t n, cudaDataType type_a, void *a, int64_t lda,
                                             cudaDataType type_w, void *w, cudaDataType type_vl,
                                             void *vl, int64_t ldvl, cudaDataType type_vr, void *vr,
                                             int64_t ldvr, cudaDataType compute_type,
                                             void *device_work, size_t device_bytes,
                                             void *host_work, size_t host_bytes, int *info);

struct cuda_api {
#define DRIVER(function, need)   __typeof__(&function) function##_p;
#define CUBLAS(function, need)   __typeof__(&function) function##_p;
#define CUSOLVER(function, need) __typeof__(&function) function##_p;
#include "cuda_functions.def"
#undef DRIVER
#undef CUBLAS
#undef CUSOLVER
};

/* Filled by cuda_api_open(), constant afterwards. */
extern struct cuda_api cuda_api;

/* A function of the table, by its name in cuda_functions.def. */
#define CUDA(function) cuda_api.function##_p

/* Opens the driver and cuBLAS and fills the table. Takes the copies that the program has loaded, then those in first_dir
 * (NULL: none), in the program's environment, where the linker finds them, in the system's folders (find_cuda.h). first_dir
 * must stay valid. Returns NULL, or the reason why there is no CUDA, in static memory; later calls return the same. When the
 * process ends, stops after the library that it is opening. Not thread-safe. */
const char *cuda_api_open(const char *first_dir);

/* Opens the cuSOLVER that belongs to the cuBLAS in use, at the first call: most programs need none. Returns whether there
 * is one; later calls return the same. After cuda_api_open() has succeeded. Thread-safe. */
bool cuda_api_open_cusolver(void);

/* Fills in the version of cuBLAS: major, minor, patch; 0 if it does not say. After cuda_api_open() has succeeded. */
void cuda_api_cublas_version(int version[3]);

/* Writes the version and the file of the cuBLAS in use and the driver's version, for a message. After cuda_api_open() has
 * succeeded. */
void cuda_api_describe_cublas(char *text, size_t size);

/* Returns an attribute of a device, 0 if the driver does not tell. After cuda_api_open() has succeeded. */
int cuda_attribute(CUdevice device, CUdevice_attribute which);

/* Returns a handle of the driver's library if we or the program have loaded it already, else NULL. */
void *cuda_api_loaded_driver(void);

#endif
