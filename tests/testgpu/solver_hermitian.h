/* Functions that headers before cuSOLVER 12.4 lack, as that version has them. */
#ifndef TESTGPU_SOLVER_HERMITIAN_H
#define TESTGPU_SOLVER_HERMITIAN_H

#include <cusolverDn.h>

cusolverStatus_t CUSOLVERAPI cusolverDnXhetrf_bufferSize(
    cusolverDnHandle_t handle, cusolverDnParams_t params, cublasFillMode_t uplo, int64_t n,
    cudaDataType dataTypeA, const void *a, int64_t lda, const int64_t *ipiv,
    cudaDataType computeType, size_t *device, size_t *host);
cusolverStatus_t CUSOLVERAPI cusolverDnXhetrf(cusolverDnHandle_t handle, cusolverDnParams_t params,
                                              cublasFillMode_t uplo, int64_t n,
                                              cudaDataType dataTypeA, void *a, int64_t lda,
                                              int64_t *ipiv, cudaDataType computeType,
                                              void *bufferOnDevice, size_t workspaceInBytesOnDevice,
                                              void *bufferOnHost, size_t workspaceInBytesOnHost,
                                              int *info);
cusolverStatus_t CUSOLVERAPI cusolverDnXhetrs_bufferSize(
    cusolverDnHandle_t handle, cusolverDnParams_t params, cublasFillMode_t uplo, int64_t n,
    int64_t nrhs, cudaDataType dataTypeA, const void *a, int64_t lda, const int64_t *ipiv,
    cudaDataType dataTypeB, void *b, int64_t ldb, size_t *device, size_t *host);
cusolverStatus_t CUSOLVERAPI cusolverDnXhetrs(cusolverDnHandle_t handle, cusolverDnParams_t params,
                                              cublasFillMode_t uplo, int64_t n, int64_t nrhs,
                                              cudaDataType dataTypeA, const void *a, int64_t lda,
                                              const int64_t *ipiv, cudaDataType dataTypeB, void *b,
                                              int64_t ldb, void *bufferOnDevice,
                                              size_t workspaceInBytesOnDevice, void *bufferOnHost,
                                              size_t workspaceInBytesOnHost, int *info);

#endif
