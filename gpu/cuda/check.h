/*
 * The statuses of CUDA, cuBLAS and cuSOLVER as ours; what is a failure is noted (gpu/failure.h).
 */
#ifndef ACCEL_CHECK_H
#define ACCEL_CHECK_H

#include "cuda_api.h"
#include "gpu/failure.h"

/* The status that a result means: out of memory is one that passes, all else is GPU_ERROR and is noted. */
enum gpu_status gpu_check(CUresult result, const char *function);
/* The same where running out of memory is no answer: waiting, entering. It is final, too. */
enum gpu_status gpu_check_final(CUresult result, const char *function);
enum gpu_status gpu_check_cublas(cublasStatus_t status, const char *function);
enum gpu_status gpu_check_cusolver(cusolverStatus_t status, const char *function);

/* Call a function of the table (cuda_functions.def) and take its status. */
#define GPU_CHECK(function, ...) gpu_check(cuda_api.function##_p(__VA_ARGS__), #function)
#define GPU_CHECK_FINAL(function, ...)                                                             \
    gpu_check_final(cuda_api.function##_p(__VA_ARGS__), #function)
#define GPU_CHECK_CUBLAS(function, ...)                                                            \
    gpu_check_cublas(cuda_api.function##_p(__VA_ARGS__), #function)
#define GPU_CHECK_CUSOLVER(function, ...)                                                          \
    gpu_check_cusolver(cuda_api.function##_p(__VA_ARGS__), #function)

#endif
