/*
 * Kernels of our own (gpu/own.h): a launch, what fits, and failures. With TEST_REAL_GPU set, on whatever GPU is found.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/cuda/device.h"
#include "gpu/own.h"
#include "tests/lib/devices.h"

static struct cuda_device *device;
static __typeof__(cuda_api) real;
static struct gpu_scope scope;
static struct gpu_host host;
static struct gpu_work work;
static struct failure outer;

static int begin(void **state)
{
    (void)state;
    real = cuda_api;
    failure_begin(&outer);
    work = (struct gpu_work){.host = &host, .device = &device->common};
    return gpu_enter(device, &scope) == GPU_OK && lane_acquire(device, &work.lane) == GPU_OK ? 0
                                                                                             : -1;
}

static int end(void **state)
{
    (void)state;
    cuda_api = real;
    lane_wait(work.lane);
    gpu_work_drop(&work);
    lane_release(work.lane, false);
    gpu_leave(&scope);
    failure_end(&outer);
    return 0;
}

enum { ROWS = 37, COLUMNS = 50, LD = 53 };

static enum gpu_status norms_on_device(double *norms)
{
    static double x[ROWS * LD];
    int64_t rows = ROWS, columns = COLUMNS, ld = LD, done_columns, done_rows;
    gpu_address in, out;
    struct gpu_fit fit;
    for (int i = 0; i < ROWS * LD; i++)
        x[i] = i % LD < COLUMNS ? i % 11 - 5 : NAN;
    assert_int_equal(gpu_work_take(&work, sizeof x, &in), GPU_OK);
    assert_int_equal(gpu_work_take(&work, ROWS * sizeof *norms, &out), GPU_OK);
    const struct lane_rectangle from = lane_whole(x, ROWS * LD, 1, ROWS * LD, sizeof *x);
    assert_int_equal(lane_upload(work.lane, in, ROWS * LD, &from), GPU_OK);
    enum gpu_status status = gpu_own_fit(&work, "own_row_norms", 64, 64 * sizeof(double), &fit);
    if (status != GPU_OK)
        return status;
    assert_in_range(fit.threads, 1, 64);
    assert_true(fit.together >= fit.processors && fit.processors > 0);
    void *arguments[] = {&in, &rows, &columns, &ld, &out};
    const struct gpu_grid grid = {10, 1, fit.threads, fit.threads * (unsigned)sizeof(double),
                                  false};
    status = gpu_own_launch(&work, "own_row_norms", grid, arguments);
    if (status != GPU_OK)
        return status;
    assert_true(work.launched);
    const struct lane_rectangle to = lane_whole(norms, ROWS, 1, ROWS, sizeof *norms);
    return lane_download(work.lane, &to, out, ROWS, &done_columns, &done_rows);
}

static void test_a_kernel_computes(void **state)
{
    double norms[ROWS];
    (void)state;
    assert_true(gpu_own_is_here(&work));
    assert_int_equal(norms_on_device(norms), GPU_OK);
    for (int i = 0; i < ROWS; i++) {
        double sum = 0;
        for (int j = 0; j < COLUMNS; j++)
            sum += pow((i * LD + j) % 11 - 5, 2);
        assert_true(norms[i] == sum);
    }
}

static int start(void **state)
{
    *state = start_device(tested_gpu(), (struct gpu_config){.memory_share = 0.5});
    device = cuda_device_of(*state);
    return device ? 0 : -1;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_a_kernel_computes, begin, end),
    };
    return cmocka_run_group_tests(tests, start, stop_device);
}
