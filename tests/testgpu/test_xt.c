/* cuBLASXt: what is asked of its handle, and a result in host memory. */
#include <cublasXt.h>
#include "test_testgpu.h"

static int xt_right(void)
{
    const double one = 1, two = 2, a[] = {1, 2, 3, 4}, triangle[] = {2, 4, 0, 8};
    double c[] = {1, 1, 1, 1}, x[] = {2, 12};
    int device = 0;
    cublasXtHandle_t handle;
    begin();
    BLAS_OK(cublasXtCreate(&handle));
    BLAS_OK(cublasXtDeviceSelect(handle, 1, &device));
    BLAS_OK(cublasXtSetBlockDim(handle, 1024));
    BLAS_OK(cublasXtDgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, 2, 2, 2, &one, a, 2, a, 2, &two, c, 2));
    CHECK(c[0] == 9 && c[1] == 12 && c[2] == 17 && c[3] == 24);
    BLAS_OK(
        cublasXtDsyrk(handle, CUBLAS_FILL_MODE_LOWER, CUBLAS_OP_N, 2, 2, &one, a, 2, &two, c, 2));
    CHECK(c[0] == 28 && c[1] == 38 && c[2] == 17 && c[3] == 68);
    BLAS_OK(cublasXtDtrsm(handle, CUBLAS_SIDE_LEFT, CUBLAS_FILL_MODE_LOWER, CUBLAS_OP_N,
                          CUBLAS_DIAG_NON_UNIT, 2, 1, &two, triangle, 2, x, 2));
    CHECK(x[0] == 2 && x[1] == 2);
    BLAS_OK(cublasXtDestroy(handle));
    return 0;
}

static int xt_refuses(void)
{
    const double one = 1;
    double x = 3;
    int devices[] = {0, 1};
    cublasXtHandle_t handle;
    begin();
    CHECK(cublasXtCreate(NULL) == CUBLAS_STATUS_INVALID_VALUE);
    BLAS_OK(cublasXtCreate(&handle));
    CHECK(cublasXtDtrsm(handle, CUBLAS_SIDE_LEFT, CUBLAS_FILL_MODE_LOWER, CUBLAS_OP_N,
                        CUBLAS_DIAG_NON_UNIT, 1, 1, &one, &one, 1, &x,
                        1) == CUBLAS_STATUS_NOT_INITIALIZED);
    CHECK(cublasXtDeviceSelect(handle, 2, devices) == CUBLAS_STATUS_INVALID_VALUE);
    CHECK(cublasXtDeviceSelect(handle, 1, devices + 1) == CUBLAS_STATUS_INVALID_VALUE);
    CHECK(cublasXtSetBlockDim(handle, 0) == CUBLAS_STATUS_INVALID_VALUE);
    BLAS_OK(cublasXtDeviceSelect(handle, 1, devices));
    CHECK(cublasXtDsyrk(handle, CUBLAS_FILL_MODE_LOWER, CUBLAS_OP_N, (size_t)-1, 1, &one, &one, 1,
                        &one, &x, 1) == CUBLAS_STATUS_INVALID_VALUE);
    BLAS_OK(cublasXtDestroy(handle));
    CHECK(cublasXtDestroy(handle) == CUBLAS_STATUS_NOT_INITIALIZED);
    CHECK(cublasXtSetBlockDim(handle, 1) == CUBLAS_STATUS_NOT_INITIALIZED);
    CHECK(x == 3);
    return 0;
}

const struct scenario xt_scenarios[] = {
    {"xt_right", xt_right, {0}, {"call name=cublasXtDgemm n=1 failed=0", "faults n=0\n"}},
    {"xt_refuses",
     xt_refuses,
     {0},
     {"fault what=destroyed_xt_handle where=cublasXtDestroy",
      "fault what=destroyed_xt_handle where=cublasXtSetBlockDim", "faults n=2\n"}},
    {0},
};
