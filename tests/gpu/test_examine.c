/*
 * What gpu_examine() says of a machine where something is not known, or does not answer: it says
 * the rest. On the test GPU.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include <stdlib.h>
#include <sys/mman.h>

#include "gpu/cuda/api/cuda_api.h"
#include "tests/lib/devices.h"

static struct gpu_config config;
static struct cuda_api real;
static struct gpu_findings found; /* large */

/* Everything is open from here on. */
static int start(void **state)
{
    (void)state;
    config.cuda_dir = tested_gpu();
    gpu_examine(&found, &config);
    real = cuda_api;
    return found.wrong[0] ? -1 : 0;
}

static int end(void **state)
{
    (void)state;
    cuda_api = real;
    unsetenv("CUDA_MPS_PIPE_DIRECTORY");
    return 0;
}

static void a_machine_that_is_well(void **state)
{
    (void)state;
    gpu_examine(&found, &config);
    assert_true(found.driver.is_there && found.blas.is_there && found.solver.is_there);
    assert_true(found.driver.version[0] && found.blas.version[0] && found.solver.version[0]);
    assert_non_null(strstr(found.blas.path, "libcublas.so"));
    assert_non_null(strstr(found.solver.path, "libcusolver.so"));
    assert_int_equal(found.devices, 1);
    assert_string_equal(found.device[0].name, "Test GPU");
    assert_true(found.device[0].memory_bytes > 0);
    assert_false(found.mps_serves || found.mps_asked);
}

/* Functions of no file, as of a library that another one has made in memory. */
static void libraries_without_a_file_or_a_version(void **state)
{
    void *nowhere = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    (void)state;
    assert_true(nowhere != MAP_FAILED);
    memcpy(&CUDA(cublasCreate_v2), &nowhere, sizeof nowhere);
    CUDA(cublasGetProperty) = NULL;
    CUDA(cusolverGetProperty) = NULL;
    gpu_examine(&found, &config);
    assert_string_equal(found.wrong, "");
    assert_true(!found.blas.is_there && !found.blas.path[0] && !found.blas.version[0]);
    assert_true(found.solver.is_there && found.solver.path[0] && !found.solver.version[0]);
    char text[512];
    cuda_api_describe_cublas(text, sizeof text);
    assert_string_equal(text, "cuBLAS 0.0.0, libcublas, with a driver for CUDA 13.0");
    munmap(nowhere, 4096);
}

/* ---- Devices that do not answer ---- */

static CUresult no_device(CUdevice *device, int ordinal)
{
    (void)device;
    (void)ordinal;
    return CUDA_ERROR_UNKNOWN;
}

static CUresult no_count(int *count)
{
    *count = 5;
    return CUDA_ERROR_UNKNOWN;
}

static CUresult no_name(char *name, int length, CUdevice device)
{
    (void)name;
    (void)length;
    (void)device;
    return CUDA_ERROR_UNKNOWN;
}

static CUresult no_memory(size_t *bytes, CUdevice device)
{
    (void)device;
    *bytes = 5;
    return CUDA_ERROR_UNKNOWN;
}

static void devices_that_do_not_answer(void **state)
{
    (void)state;
    CUDA(cuDeviceGetCount) = no_count;
    gpu_examine(&found, &config);
    assert_int_equal(found.devices, 0);
    cuda_api = real;
    CUDA(cuDeviceGet) = no_device;
    gpu_examine(&found, &config);
    assert_true(found.devices == 1 && !found.device[0].name[0] && !found.device[0].memory_bytes);
    assert_false(found.mps_serves);
    cuda_api = real;
    CUDA(cuDeviceGetName) = no_name;
    gpu_examine(&found, &config);
    assert_true(found.devices == 1 && !found.device[0].name[0] && !found.device[0].memory_bytes);
    cuda_api = real;
    CUDA(cuDeviceTotalMem) = no_memory;
    gpu_examine(&found, &config);
    assert_true(found.devices == 1 && found.device[0].memory_bytes == 0);
    assert_string_equal(found.device[0].name, "Test GPU");
}

static CUresult many(int *count)
{
    *count = GPU_DEVICES_SHOWN + 4;
    return CUDA_SUCCESS;
}

static CUresult the_first(CUdevice *device, int ordinal)
{
    (void)ordinal;
    return real.cuDeviceGet_p(device, 0);
}

/* All are counted, and the first are shown: behind them are other findings. */
static void more_devices_than_are_shown(void **state)
{
    (void)state;
    CUDA(cuDeviceGetCount) = many;
    CUDA(cuDeviceGet) = the_first;
    gpu_examine(&found, &config);
    assert_int_equal(found.devices, GPU_DEVICES_SHOWN + 4);
    assert_string_equal(found.device[GPU_DEVICES_SHOWN - 1].name, "Test GPU");
    assert_false(found.mps_serves || found.mps_asked);
    assert_string_equal(found.mps_folder, "/tmp/nvidia-mps");
}

/* ---- MPS ---- */

static CUresult no_attribute(int *value, CUdevice_attribute which, CUdevice device)
{
    (void)value;
    (void)which;
    (void)device;
    return CUDA_ERROR_INVALID_VALUE;
}

static void folders_of_mps(void **state)
{
    static char endless[GPU_PATH_BYTES + 10];
    (void)state;
    setenv("CUDA_MPS_PIPE_DIRECTORY", "", 1); /* as if it were not set */
    gpu_examine(&found, &config);
    assert_false(found.mps_asked);
    assert_string_equal(found.mps_folder, "/tmp/nvidia-mps");
    /* A path that is cut off would be another one. */
    memset(endless, '/', sizeof endless - 1);
    memcpy(endless, "/tmp", 4);
    setenv("CUDA_MPS_PIPE_DIRECTORY", endless, 1);
    CUDA(cuDeviceGetAttribute) = no_attribute; /* of an older driver: then the pipe tells */
    gpu_examine(&found, &config);
    assert_true(found.mps_asked && !found.mps_has_pipe && !found.mps_serves);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(a_machine_that_is_well, end),
        cmocka_unit_test_teardown(libraries_without_a_file_or_a_version, end),
        cmocka_unit_test_teardown(devices_that_do_not_answer, end),
        cmocka_unit_test_teardown(more_devices_than_are_shown, end),
        cmocka_unit_test_teardown(folders_of_mps, end),
    };
    unsetenv("CUDA_MPS_PIPE_DIRECTORY");
    return cmocka_run_group_tests(tests, start, NULL);
}
