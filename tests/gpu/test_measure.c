/*
 * What gpu_measure_copies() copies, and says of it, of long columns and short ones: on the test
 * GPU, by a clock that its copies alone move on.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "gpu/cuda/api/cuda_api.h"

#include "tests/lib/devices.h"

static const char *trace; /* of the test GPU */

static int start(void **state)
{
    *state = start_device(tested_gpu(), (struct gpu_config){.memory_share = 0.8});
    return *state ? 0 : -1;
}

/* Returns the bytes of all copies whose calls have this name. */
static double bytes_of(const char *name)
{
    char line[512];
    double sum = 0;
    FILE *file = fopen(trace, "r");
    assert_non_null(file);
    while (fgets(line, sizeof line, file)) {
        const char *bytes = strstr(line, name) ? strstr(line, "bytes=") : NULL;
        sum += bytes ? atof(bytes + 6) : 0;
    }
    fclose(file);
    return sum;
}

/* ---- A clock that what is copied moves on, 2 GB/s up and 1 GB/s down, and nothing else ---- */

static _Atomic uint64_t copied_ns;
static struct timespec begun;
static bool is_counting; /* constant while the device measures */
static struct cuda_api real_api;

int __real_clock_gettime(clockid_t clock, struct timespec *now);
int __wrap_clock_gettime(clockid_t clock, struct timespec *now);

int __wrap_clock_gettime(clockid_t clock, struct timespec *now)
{
    if (!is_counting || clock != CLOCK_MONOTONIC)
        return __real_clock_gettime(clock, now);
    const uint64_t ns = (uint64_t)begun.tv_nsec + copied_ns;
    now->tv_sec = begun.tv_sec + (time_t)(ns / 1000000000);
    now->tv_nsec = (long)(ns % 1000000000);
    return 0;
}

static CUresult up(CUdeviceptr to, const void *from, size_t bytes, CUstream stream)
{
    copied_ns += bytes / 2;
    return real_api.cuMemcpyHtoDAsync_p(to, from, bytes, stream);
}

static CUresult down(void *to, CUdeviceptr from, size_t bytes, CUstream stream)
{
    copied_ns += bytes;
    return real_api.cuMemcpyDtoHAsync_p(to, from, bytes, stream);
}

static CUresult plane(const CUDA_MEMCPY2D *plane, CUstream stream)
{
    const uint64_t bytes = (uint64_t)plane->WidthInBytes * plane->Height;
    copied_ns += plane->srcMemoryType == CU_MEMORYTYPE_HOST ? bytes / 2 : bytes;
    return real_api.cuMemcpy2DAsync_p(plane, stream);
}

static void count_time(bool on)
{
    if (on) {
        real_api = cuda_api;
        cuda_api.cuMemcpyHtoDAsync_p = up;
        cuda_api.cuMemcpyDtoHAsync_p = down;
        cuda_api.cuMemcpy2DAsync_p = plane;
        __real_clock_gettime(CLOCK_MONOTONIC, &begun);
    }
    is_counting = on;
    if (!on)
        cuda_api = real_api;
}

/* As much goes up as comes down, and the time of each way is divided by its bytes: whatever else
 * the machine does. */
static void rates_of_copies(void **state)
{
    struct gpu_copy_rates rates = {0};
    if (!is_real_gpu())
        count_time(true);
    const bool measured = gpu_measure_copies(*state, &rates);
    if (!is_real_gpu())
        count_time(false);
    assert_true(measured);
    printf("%.3f up, %.3f down\n", rates.up_gbps, rates.down_gbps);
    assert_true(rates.up_gbps > 0 && rates.down_gbps > 0);
    assert_true(rates.short_up.bytes >= 1 && rates.short_down.bytes >= 1);
    assert_true(rates.short_up.ms >= 0 && rates.short_down.ms >= 0);
    if (is_real_gpu())
        return; /* there is no trace */
    assert_true(rates.up_gbps > 1.99 && rates.up_gbps < 2.01);
    assert_true(rates.down_gbps > 0.995 && rates.down_gbps < 1.005);
    assert_true(rates.short_up.ms < 1e-6 && rates.short_down.ms < 1e-6);
    const double up_bytes = bytes_of("cuMemcpyHtoDAsync"),
                 down_bytes = bytes_of("cuMemcpyDtoHAsync");
    assert_true(up_bytes >= 16 * 0.134e9 + 16 * 0.063e9 && up_bytes == down_bytes);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(rates_of_copies)};
    (void)argc;
    trace = traced_gpu(argv);
    const int failed = cmocka_run_group_tests(tests, start, stop_device);
    unlink(trace);
    return failed;
}
