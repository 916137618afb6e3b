/* Xsyevd and Xsyevdx. */
#include "solver_cost.h"
#include "solver_eigen.h"

static const struct solver_routine syevd = {
    .name = "syevd",
    .traits = HAS_PARAMS | HOST_WORK,
    .result = VALUES,
    .describe = describe_eigen,
    .room = room_of_eigen,
    .compute = compute_eigen,
    .operations = operations_of_syevd,
};
static const struct solver_routine syevdx = {
    .name = "syevdx",
    .traits = HAS_PARAMS | HOST_WORK,
    .result = VALUES,
    .describe = describe_some_eigen,
    .room = room_of_eigen,
    .compute = compute_some_eigen,
    .operations = operations_of_syevd,
};

#define FIELDS(ROUTINE)                                                                            \
    .routine = &(ROUTINE), .params = params, .type = dataTypeA, .type_values = dataTypeW,          \
    .compute_type = computeType, .jobz = jobz, .uplo = uplo, .n = n, OPERAND(A, a, lda),           \
    LIST(VALUES, w)

cusolverStatus_t CUSOLVERAPI cusolverDnXsyevd_bufferSize(
    cusolverDnHandle_t handle, cusolverDnParams_t params, cusolverEigMode_t jobz,
    cublasFillMode_t uplo, int64_t n, cudaDataType dataTypeA, const void *a, int64_t lda,
    cudaDataType dataTypeW, const void *w, cudaDataType computeType, size_t *device, size_t *host)
{
    struct solver_call x = {FIELDS(syevd)};
    SOLVER_SIZES(handle, x, device, host);
}

cusolverStatus_t CUSOLVERAPI cusolverDnXsyevd(cusolverDnHandle_t handle, cusolverDnParams_t params,
                                              cusolverEigMode_t jobz, cublasFillMode_t uplo,
                                              int64_t n, cudaDataType dataTypeA, void *a,
                                              int64_t lda, cudaDataType dataTypeW, void *w,
                                              cudaDataType computeType, void *bufferOnDevice,
                                              size_t workspaceInBytesOnDevice, void *bufferOnHost,
                                              size_t workspaceInBytesOnHost, int *info)
{
    struct solver_call x = {FIELDS(syevd), X_WORK};
    SOLVER_CALL(handle, x);
}

/* The bounds are on the host, of the eigenvalues' type, and there where they count. */
static bool read_bounds(struct solver_call *x, const void *vl, const void *vu)
{
    if (x->range != CUSOLVER_EIG_RANGE_V)
        return true;
    if (vl == NULL || vu == NULL)
        return false;
    if (testgpu_is_device_address(vl) || testgpu_is_device_address(vu)) {
        testgpu_fault("device_pointer_as_host", "vl=%p vu=%p", vl, vu);
        return false;
    }
    bool single = x->type_values == CUDA_R_32F;
    x->vl = single ? (double)*(const float *)vl : *(const double *)vl;
    x->vu = single ? (double)*(const float *)vu : *(const double *)vu;
    return true;
}

cusolverStatus_t CUSOLVERAPI cusolverDnXsyevdx_bufferSize(
    cusolverDnHandle_t handle, cusolverDnParams_t params, cusolverEigMode_t jobz,
    cusolverEigRange_t range, cublasFillMode_t uplo, int64_t n, cudaDataType dataTypeA,
    const void *a, int64_t lda, void *vl, void *vu, int64_t il, int64_t iu, int64_t *meig,
    cudaDataType dataTypeW, const void *w, cudaDataType computeType, size_t *device, size_t *host)
{
    struct solver_call x = {FIELDS(syevdx), .range = range, .il = il, .iu = iu};
    (void)meig;
    ENTER_SOLVER_CALL(handle, x);
    if (!read_bounds(&x, vl, vu))
        TESTGPU_RETURN(CUSOLVER_STATUS_INVALID_VALUE);
    TESTGPU_RETURN(solver_sizes(handle, &x, device, host));
}

cusolverStatus_t CUSOLVERAPI cusolverDnXsyevdx(
    cusolverDnHandle_t handle, cusolverDnParams_t params, cusolverEigMode_t jobz,
    cusolverEigRange_t range, cublasFillMode_t uplo, int64_t n, cudaDataType dataTypeA, void *a,
    int64_t lda, void *vl, void *vu, int64_t il, int64_t iu, int64_t *meig64,
    cudaDataType dataTypeW, void *w, cudaDataType computeType, void *bufferOnDevice,
    size_t workspaceInBytesOnDevice, void *bufferOnHost, size_t workspaceInBytesOnHost, int *info)
{
    struct solver_call x = {FIELDS(syevdx), .range = range,    .il = il,
                            .iu = iu,       .found64 = meig64, X_WORK};
    ENTER_SOLVER_CALL(handle, x);
    if (meig64 == NULL || !read_bounds(&x, vl, vu))
        TESTGPU_RETURN(CUSOLVER_STATUS_INVALID_VALUE);
    TESTGPU_RETURN(solver_call(handle, &x));
}
