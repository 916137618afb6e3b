/*
 * Products in another precision than the operands': which versions of cuBLAS have which, the
 * workspace that they take, and what is said where the driver refuses it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <limits.h>
#include <string.h>

#include "gpu/cuda/precision.h"
#include "tests/lib/routine.h"
#include "tests/lib/refusing_driver.h"

static int capability[2];

static CUresult of_capability(int *value, CUdevice_attribute which, CUdevice number)
{
    if (which != CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR &&
        which != CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)
        return real.cuDeviceGetAttribute_p(value, which, number);
    *value = capability[which == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR];
    return CUDA_SUCCESS;
}

static cublasStatus_t set_bits(cublasHandle_t handle, int *bits)
{
    (void)handle;
    (void)bits;
    return CUBLAS_STATUS_SUCCESS;
}

/* NVIDIA's release notes and manuals, as gpu/cuda/precision.c quotes them. */
static void each_version_has_its_precisions(void **state)
{
    enum { TF32 = 1 << GPU_TF32, BF16X9 = 1 << GPU_BF16X9, EMULATED = 1 << GPU_EMULATED };
    static const struct {
        int major, minor, version;
        unsigned gemm, rank_k;
    } cases[] = {{7, 5, 130300, 0, 0},
                 {9, 0, 130300, TF32 | EMULATED, TF32},
                 {10, 0, 120800, TF32 | EMULATED, TF32},
                 {10, 0, 120900, TF32 | BF16X9 | EMULATED, TF32},
                 {10, 3, 130100, TF32 | BF16X9 | EMULATED, TF32 | BF16X9},
                 {10, 0, 130300, TF32 | BF16X9 | EMULATED, TF32 | BF16X9 | EMULATED}};
    unsigned char all[GPU_PRODUCTS];
    (void)state;
    CUDA(cuDeviceGetAttribute) = of_capability;
    CUDA(cublasSetFixedPointEmulationMantissaBitCountPointer) = set_bits;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        capability[0] = cases[i].major;
        capability[1] = cases[i].minor;
        precision_all(all, device->number, cases[i].version);
        assert_int_equal(all[GPU_GEMM], 1 << GPU_NATIVE | cases[i].gemm);
        assert_int_equal(all[GPU_RANK_K], 1 << GPU_NATIVE | cases[i].rank_k);
    }
    CUDA(cublasSetFixedPointEmulationMantissaBitCountPointer) = NULL;
    precision_all(all, device->number, 130300);
    assert_false(all[GPU_GEMM] & EMULATED || all[GPU_RANK_K] & EMULATED);
    CUDA(cublasSetFixedPointEmulationMantissaBitCountPointer) = set_bits;
    CUDA(cublasSetWorkspace_v2) = NULL;
    precision_all(all, device->number, 130300);
    assert_false(all[GPU_GEMM] & EMULATED || all[GPU_RANK_K] & EMULATED);
    CUDA(cublasSetMathMode) = NULL;
    precision_all(all, device->number, 130300);
    assert_int_equal(all[GPU_GEMM], 1 << GPU_NATIVE);
}

static cublasMath_t mode; /* as cuBLAS has been told last */
static int workspaces;    /* that it has been given */

static cublasStatus_t set_mode(cublasHandle_t handle, cublasMath_t math)
{
    (void)handle;
    mode = math;
    return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t set_workspace(cublasHandle_t handle, void *workspace, size_t bytes)
{
    (void)handle;
    (void)workspace;
    workspaces += bytes > 0;
    return CUBLAS_STATUS_SUCCESS;
}

static CUresult no_fill(CUdeviceptr to, unsigned char value, size_t bytes, CUstream stream)
{
    (void)to;
    (void)value;
    (void)bytes;
    (void)stream;
    return CUDA_ERROR_UNKNOWN;
}

static CUresult no_block(CUdeviceptr *block, size_t bytes)
{
    (void)block;
    (void)bytes;
    return CUDA_ERROR_UNKNOWN;
}

static void emulate_here(void)
{
    CUDA(cublasSetMathMode) = set_mode;
    CUDA(cublasSetWorkspace_v2) = set_workspace;
    CUDA(cublasSetFixedPointEmulationMantissaBitCountPointer) = set_bits;
    host.precision = GPU_EMULATED;
    workspaces = 0;
    mode = CUBLAS_DEFAULT_MATH;
    work.largest = INT64_MAX;
}

/* Begins a product of this size and ends it. Returns whether it would have been emulated. */
static bool begin_product(const char *name, int64_t m, int64_t n, int64_t k, int64_t batch)
{
    struct call_precision precision;
    call.routine = routine(name);
    call.op = accel_op_of(call.routine);
    call.batch = batch;
    call.span[ACCEL_a].dtype = ACCEL_FLOAT64;
    call.blas.size[ACCEL_m] = m;
    call.blas.size[ACCEL_n] = n;
    call.blas.size[ACCEL_k] = k;
    emulate_here();
    assert_int_equal(precision_begin(&precision, &work), GPU_OK);
    const bool is_emulated = host.precision == GPU_EMULATED;
    assert_int_equal(workspaces, is_emulated);
    assert_int_equal(mode,
                     is_emulated ? CUBLAS_FP64_EMULATED_FIXEDPOINT_MATH : CUBLAS_DEFAULT_MATH);
    precision_end(&precision, &work, false);
    if (precision.workspace)
        pool_put(device, precision.workspace);
    work.ctx->math = CUBLAS_DEFAULT_MATH;
    return is_emulated;
}

/* A product gets a workspace as large as all of it needs, or its tiles; else it is native. */
static void a_workspace_is_within_the_memory(void **state)
{
    const int64_t largest = INT64_C(1) << 17, memory = gpu_memory(&work)->available(&work) / 2;
    (void)state;
    assert_in_range(memory, gpu_emulation_bytes(1000, 1000, 1000, 1, false),
                    gpu_emulation_bytes(3000, 1000, 1000, 1, false) - 1);
    assert_true(begin_product("dgemm", 1000, 1000, 1000, 1));
    assert_int_equal(work.largest, INT64_MAX);
    assert_true(begin_product("dgemm", 3000, 1000, 1000, 1));
    assert_int_equal(work.largest, 1024);
    assert_true(begin_product("dgemm_batch_strided", 8, 8, 8, 1));
    assert_false(begin_product("dgemm_batch_strided", largest + 1, 1, 1, 1));
    assert_false(begin_product("dgemm_batch_strided", 1, largest + 1, 1, 1));
    assert_false(begin_product("dgemm_batch_strided", 1, 1, largest + 1, 1));
    assert_false(begin_product("dgemm_batch_strided", 8, 8, 8, 100)); /* 207 MB each */
    assert_false(begin_product("dgemm_batch_strided", 8, 8, 8, 100000));
}

static void a_workspace_that_fails_fails_the_call(void **state)
{
    struct call_precision precision;
    (void)state;
    for (int i = 0; i < 2; i++) {
        pool_trim(device);
        call.span[ACCEL_a].dtype = ACCEL_FLOAT64;
        call.blas.size[ACCEL_m] = call.blas.size[ACCEL_n] = call.blas.size[ACCEL_k] = 100;
        emulate_here();
        if (i == 0)
            CUDA(cuMemAlloc) = no_block;
        else
            CUDA(cuMemsetD8Async) = no_fill;
        assert_int_equal(precision_begin(&precision, &work), GPU_ERROR);
        assert_int_equal(workspaces, 0);
        precision_end(&precision, &work, false);
        if (precision.workspace)
            pool_put(device, precision.workspace);
        CUDA(cuMemAlloc) = real.cuMemAlloc_p;
        CUDA(cuMemsetD8Async) = real.cuMemsetD8Async_p;
    }
}

/* Of a driver's function that fails while the stream goes on. */
static void the_driver_s_failure_is_the_device_s(void **state)
{
    struct gpu_host own = {.precision = GPU_EMULATED};
    (void)state;
    call.span[ACCEL_a].dtype = ACCEL_FLOAT64;
    call.blas.size[ACCEL_m] = call.blas.size[ACCEL_n] = call.blas.size[ACCEL_k] = 100;
    emulate_here();
    CUDA(cuMemsetD8Async) = no_fill;
    assert_int_equal(gpu_run(&device->common, &call, &own), GPU_ERROR);
    assert_int_equal(own.blame, GPU_BLAME_DEVICE);
    assert_true(gpu_has_failure(&device->common));
    assert_non_null(strstr(gpu_failure(&device->common), "cuMemsetD8Async"));
}

/* Of any GPU, so much: sizes are beside it. */
static int start_with_memory(void **state)
{
    *state = start_device(tested_gpu(), (struct gpu_config){.memory_bytes = INT64_C(512) << 20});
    device = cuda_device_of(*state);
    return device ? 0 : -1;
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin_work, end_work)
    const struct CMUnitTest tests[] = {
        TEST(each_version_has_its_precisions), TEST(a_workspace_is_within_the_memory),
        TEST(a_workspace_that_fails_fails_the_call),
        TEST(the_driver_s_failure_is_the_device_s), /* the last: that stays */
    };
    return cmocka_run_group_tests(tests, start_with_memory, stop_device);
}
