/*
 * Devices that start and are entered where something is missing: memory of the host or of the
 * device, functions of an older driver, a device that is free. On the test GPU.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include <stdlib.h>

#include "gpu/cuda/device.h"
#include "tests/lib/devices.h"

static struct gpu_device *device;
static struct cuda_api real;
static bool host_is_full;

void *__real_calloc(size_t count, size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);

void *__wrap_calloc(size_t count, size_t bytes)
{
    return host_is_full ? NULL : __real_calloc(count, bytes);
}

static struct gpu_device *start_one(char why[GPU_FAILURE_BYTES])
{
    const struct gpu_config config = {
        .cuda_dir = tested_gpu(), .memory_share = 0.5, .local_size = 1, .several = true};
    return gpu_start(&config, why);
}

static int begin(void **state)
{
    char why[GPU_FAILURE_BYTES];
    (void)state;
    device = start_one(why);
    real = cuda_api;
    return device ? 0 : -1;
}

static int end(void **state)
{
    (void)state;
    gpu_stop(device);
    return 0;
}

static void one_device_is_used_once(void **state)
{
    char why[GPU_FAILURE_BYTES] = "";
    (void)state;
    assert_null(start_one(why));
    assert_string_equal(why, "all that this process may use are in use");
    host_is_full = true;
    assert_null(start_one(why));
    host_is_full = false;
    assert_string_equal(why, "no memory");
    assert_false(gpu_has_failure(device));
}

static size_t free_now, total_now;
static CUresult answer;

static CUresult tell_memory(size_t *free_bytes, size_t *total)
{
    *free_bytes = free_now;
    *total = total_now;
    return answer;
}

/* Little is short if it is a small part, too: a small device has no more. */
static void memory_that_is_short(void **state)
{
    static const struct {
        size_t free_mb, total_mb;
        CUresult answer;
        bool expected;
    } cases[] = {{100, 80000, CUDA_SUCCESS, true},
                 {600, 80000, CUDA_SUCCESS, false},
                 {400, 1000, CUDA_SUCCESS, false},
                 {100, 80000, CUDA_ERROR_UNKNOWN, false}};
    (void)state;
    CUDA(cuMemGetInfo) = tell_memory;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        free_now = cases[i].free_mb << 20;
        total_now = cases[i].total_mb << 20;
        answer = cases[i].answer;
        assert_true(gpu_memory_is_short() == cases[i].expected);
    }
    cuda_api = real;
}

static void an_older_driver(void **state)
{
    char why[GPU_FAILURE_BYTES] = "";
    struct gpu_scope scope;
    (void)state;
    CUDA(cuThreadExchangeStreamCaptureMode) = NULL;
    CUDA(cuDeviceGetUuid) = NULL;
    gpu_stop(device);
    device = start_one(why);
    assert_non_null(device);
    assert_string_equal(gpu_info(device)->id, "00000000000000000000000000000000");
    assert_int_equal(gpu_enter(cuda_device_of(device), &scope), GPU_OK);
    assert_false(scope.mode_exchanged);
    gpu_leave(&scope);
    cuda_api = real;
}

/* As the child of a fork is told. It stays so: this is the last test. */
static void a_forked_child_enters_no_device(void **state)
{
    struct gpu_scope scope;
    (void)state;
    assert_false(cuda_is_dead());
    gpu_fork_child();
    assert_true(cuda_is_dead());
    assert_int_equal(gpu_enter(cuda_device_of(device), &scope), GPU_ERROR);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_device_is_used_once),
        cmocka_unit_test(memory_that_is_short),
        cmocka_unit_test(an_older_driver),
        cmocka_unit_test(a_forked_child_enters_no_device),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
