#include "tests/lib/devices.h"

#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

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

struct gpu_device *start_device(const char *cuda_dir, struct gpu_config config)
{
    char why[GPU_FAILURE_BYTES];
    config.cuda_dir = cuda_dir;
    struct gpu_device *device = gpu_start(&config, why);
    if (!device)
        print_error("gpu_start: %s\n", why);
    return device;
}

int stop_device(void **state)
{
    gpu_stop(*state);
    return 0;
}
