/*
 * CUDA for the measuring program, opened at run time and called directly: what is measured is the
 * machine, not libaccel.
 */
#ifndef ACCEL_PROOF_DRIVER_H
#define ACCEL_PROOF_DRIVER_H

#include <stdbool.h>

#include <cuda.h>
#include <cublasXt.h>
#include <cublas_v2.h>
#include <cusolverDn.h>

/* cuda.h maps the names to the versions that it describes (cuMemAlloc to cuMemAlloc_v2), here
 * too. */
#define DRIVER_REQUIRED(F)                                                                         \
    F(cuInit)                                                                                      \
    F(cuDriverGetVersion)                                                                          \
    F(cuDeviceGetCount)                                                                            \
    F(cuDeviceGet)                                                                                 \
    F(cuDeviceGetName)                                                                             \
    F(cuDeviceTotalMem)                                                                            \
    F(cuDevicePrimaryCtxRetain)                                                                    \
    F(cuDevicePrimaryCtxRelease)                                                                   \
    F(cuCtxSetCurrent)                                                                             \
    F(cuMemAlloc)                                                                                  \
    F(cuMemFree)                                                                                   \
    F(cuMemHostAlloc)                                                                              \
    F(cuMemFreeHost)                                                                               \
    F(cuMemcpyHtoD)                                                                                \
    F(cuMemcpyDtoH)                                                                                \
    F(cuMemcpyHtoDAsync)                                                                           \
    F(cuMemcpyDtoHAsync)                                                                           \
    F(cuMemcpyDtoDAsync)                                                                           \
    F(cuMemcpy2DAsync)                                                                             \
    F(cuMemsetD8Async)                                                                             \
    F(cuStreamCreate)                                                                              \
    F(cuStreamDestroy)                                                                             \
    F(cuStreamSynchronize)                                                                         \
    F(cuEventCreate)                                                                               \
    F(cuEventRecord)                                                                               \
    F(cuEventSynchronize)                                                                          \
    F(cuEventDestroy)                                                                              \
    F(cuGetErrorName)
/* NULL where the driver lacks it. */
#define DRIVER_OPTIONAL(F)                                                                         \
    F(cuDeviceCanAccessPeer)                                                                       \
    F(cuCtxEnablePeerAccess)                                                                       \
    F(cuMemcpyPeerAsync)                                                                           \
    F(cuMemPoolCreate)                                                                             \
    F(cuMemPoolDestroy)                                                                            \
    F(cuMemPoolSetAccess)                                                                          \
    F(cuMemAllocFromPoolAsync)                                                                     \
    F(cuMemFreeAsync)                                                                              \
    F(cuMemHostRegister)                                                                           \
    F(cuMemHostUnregister)                                                                         \
    F(cuModuleLoadData)                                                                            \
    F(cuModuleUnload)                                                                              \
    F(cuModuleGetFunction)                                                                         \
    F(cuLaunchKernel)
#define CUBLAS_REQUIRED(F)                                                                         \
    F(cublasCreate_v2)                                                                             \
    F(cublasDestroy_v2)                                                                            \
    F(cublasSetStream_v2)                                                                          \
    F(cublasSgemm_v2)                                                                              \
    F(cublasDgemm_v2)                                                                              \
    F(cublasDsyrk_v2)                                                                              \
    F(cublasZgemm_v2)                                                                              \
    F(cublasDtrsm_v2)                                                                              \
    F(cublasGetProperty)

#define CUBLASXT_REQUIRED(F)                                                                       \
    F(cublasXtCreate)                                                                              \
    F(cublasXtDeviceSelect)                                                                        \
    F(cublasXtSetBlockDim)                                                                         \
    F(cublasXtSgemm)                                                                               \
    F(cublasXtDgemm)                                                                               \
    F(cublasXtZgemm)                                                                               \
    F(cublasXtDsyrk)                                                                               \
    F(cublasXtDtrsm)

#define CUSOLVER_REQUIRED(F)                                                                       \
    F(cusolverDnCreate)                                                                            \
    F(cusolverDnDestroy)                                                                           \
    F(cusolverDnSetStream)                                                                         \
    F(cusolverDnCreateParams)                                                                      \
    F(cusolverDnDestroyParams)                                                                     \
    F(cusolverDnXgetrf_bufferSize)                                                                 \
    F(cusolverDnXgetrf)                                                                            \
    F(cusolverDnXpotrf_bufferSize)                                                                 \
    F(cusolverDnXpotrf)                                                                            \
    F(cusolverDnXgeqrf_bufferSize)                                                                 \
    F(cusolverDnXgeqrf)

#define DRIVER_MEMBER(name) __typeof__(&name) name;
struct cuda {
    DRIVER_REQUIRED(DRIVER_MEMBER)
    DRIVER_OPTIONAL(DRIVER_MEMBER)
    CUBLAS_REQUIRED(DRIVER_MEMBER)
    CUBLASXT_REQUIRED(DRIVER_MEMBER)
    CUSOLVER_REQUIRED(DRIVER_MEMBER)
};
#undef DRIVER_MEMBER

/* Filled by driver_open() and driver_open_cublas(); read only afterwards. */
extern struct cuda cuda;

/* Open libcuda.so.1, and the newest libcublas and libcusolver, where libaccel does
 * (gpu/cuda/api/find_cuda.h), ACCEL_CUDA_DIR first. They stay open. False, with driver_failure()
 * set, where one is not there or lacks a function. Once each, before any thread is started. */
bool driver_open(void);
bool driver_open_cublas(void);
bool driver_open_cublasxt(void); /* a part of libcublas */
bool driver_open_cusolver(void);

/* The file that driver_open() has opened; in static memory. */
const char *driver_path(void);

/* Makes the device's primary context (of device 0, as CUDA_VISIBLE_DEVICES has it) the calling
 * thread's. Thread-safe after the first call; driver_stop() gives it back. */
bool driver_enter(void);
void driver_stop(void);

/* Whether a call went well; if not, driver_failure() says so of the function named. Thread-safe:
 * the first failure is kept. */
bool driver_is_ok(CUresult result, const char *function);
bool cublas_is_ok(cublasStatus_t status, const char *function);
bool cusolver_is_ok(cusolverStatus_t status, const char *function);
#define CUDA_OK(function, ...)     driver_is_ok(cuda.function(__VA_ARGS__), #function)
#define CUBLAS_OK(function, ...)   cublas_is_ok(cuda.function(__VA_ARGS__), #function)
#define CUSOLVER_OK(function, ...) cusolver_is_ok(cuda.function(__VA_ARGS__), #function)

/* What has gone wrong since driver_forget(): one line, in static memory; "" for nothing. */
const char *driver_failure(void);
void driver_forget(void);

#endif
