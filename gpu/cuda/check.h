/*
 * Makes our statuses of those of CUDA, cuBLAS and cuSOLVER, and notes failures
 * (gpu/device/failure.h).
 */
#ifndef ACCEL_CHECK_H
#define ACCEL_CHECK_H

#include "gpu/cuda/api/cuda_api.h"
#include "gpu/device/failure.h"

/* Returns our status for a result: GPU_NO_MEMORY, which may pass, or GPU_ERROR, which is noted. */
enum gpu_status gpu_check(CUresult result, const char *function);
/* Does the same for functions that need no memory, to wait or to enter: CUDA_ERROR_OUT_OF_MEMORY is
 * GPU_ERROR, too. */
enum gpu_status gpu_check_final(CUresult result, const char *function);
enum gpu_status gpu_check_cublas(cublasStatus_t status, const char *function);
enum gpu_status gpu_check_cusolver(cusolverStatus_t status, const char *function);

/* Call a function of cuda_functions.def and return our status for its result. */
#define GPU_CHECK(function, ...) gpu_check(cuda_api.function##_p(__VA_ARGS__), #function)
#define GPU_CHECK_FINAL(function, ...)                                                             \
    gpu_check_final(cuda_api.function##_p(__VA_ARGS__), #function)
#define GPU_CHECK_CUBLAS(function, ...)                                                            \
    gpu_check_cublas(cuda_api.function##_p(__VA_ARGS__), #function)
#define GPU_CHECK_CUSOLVER(function, ...)                                                          \
    gpu_check_cusolver(cuda_api.function##_p(__VA_ARGS__), #function)

#endif
