#include "tests/lib/devices.h"

#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <cmocka.h>

#include "gpu/cuda/device.h"
#include "tests/lib/long.h"

bool is_real_gpu(void)
{
    return getenv("TEST_REAL_GPU") != NULL;
}

bool is_short(void)
{
    return !test_is_long() && !is_real_gpu();
}

const char *tested_gpu(void)
{
    static char folder[PATH_MAX];
    const char *build = getenv("BUILD");
    if (is_real_gpu())
        return getenv("ACCEL_CUDA_DIR");
    snprintf(folder, sizeof folder, "%s/testgpu", build ? build : "build");
    return folder;
}

const char *traced_gpu(char **argv)
{
    char path[] = "/tmp/testgpu.trace.XXXXXX";
    const char *trace = getenv("TESTGPU_TRACE");
    if (trace)
        return trace;
    const int file = mkstemp(path);
    if (file < 0 || close(file) != 0 || setenv("TESTGPU_TRACE", path, 1) != 0)
        exit(1);
    execv("/proc/self/exe", argv);
    exit(1);
}

struct gpu_device *start_device(const char *cuda_dir, struct gpu_config config)
{
    char why[GPU_FAILURE_BYTES];
    config.cuda_dir = cuda_dir;
    struct gpu_device *device = gpu_start(&config, why);
    if (device)
        atomic_store(&cuda_device_of(device)->watched, true);
    else
        print_error("gpu_start: %s\n", why);
    return device;
}

int stop_device(void **state)
{
    gpu_stop(*state);
    return 0;
}
