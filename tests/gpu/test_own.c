/*
 * Kernels of our own (gpu/device/own.h): a launch, what fits, and failures. With TEST_REAL_GPU set,
 * on whatever GPU is found.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/device/own.h"
#include "tests/lib/device_work.h"
#include "tests/lib/gate.h"

enum { ROWS = 37, COLUMNS = 50, LD = 53 };

static enum gpu_status norms_on_device(double *norms)
{
    static double x[ROWS * LD];
    int64_t rows = ROWS, columns = COLUMNS, ld = LD, done_columns, done_rows;
    gpu_address in, out;
    struct gpu_fit fit;
    for (int i = 0; i < ROWS * LD; i++)
        x[i] = i % LD < COLUMNS ? i % 11 - 5 : NAN;
    assert_int_equal(gpu_memory(&work)->take(&work, sizeof x, &in), GPU_OK);
    assert_int_equal(gpu_memory(&work)->take(&work, ROWS * sizeof *norms, &out), GPU_OK);
    const struct host_rectangle from = host_whole(x, ROWS * LD, 1, ROWS * LD, sizeof *x);
    assert_int_equal(stream_ctx_upload(work.ctx, (struct dmat){in, ROWS * LD}, &from), GPU_OK);
    enum gpu_status status =
        gpu_own(&work)->fit(&work, "own_row_norms", 64, 64 * sizeof(double), &fit);
    if (status != GPU_OK)
        return status;
    assert_in_range(fit.threads, 1, 64);
    assert_true(fit.together >= fit.processors && fit.processors > 0);
    void *arguments[] = {&in, &rows, &columns, &ld, &out};
    const struct gpu_grid grid = {10, 1, fit.threads, fit.threads * (unsigned)sizeof(double),
                                  false};
    status = gpu_own(&work)->launch(&work, "own_row_norms", grid, arguments);
    if (status != GPU_OK)
        return status;
    assert_true(work.launched);
    const struct host_rectangle to = host_whole(norms, ROWS, 1, ROWS, sizeof *norms);
    return stream_ctx_download(work.ctx, &to, (struct dmat){out, ROWS}, &done_columns, &done_rows);
}

static void test_a_kernel_computes(void **state)
{
    double norms[ROWS];
    (void)state;
    assert_true(gpu_own(&work)->is_here(&work));
    assert_int_equal(norms_on_device(norms), GPU_OK);
    for (int i = 0; i < ROWS; i++) {
        double sum = 0;
        for (int j = 0; j < COLUMNS; j++)
            sum += pow((i * LD + j) % 11 - 5, 2);
        assert_true(norms[i] == sum);
    }
}

/* ---- Failures ---- */

static CUresult answer; /* of the functions below */

static CUresult load_in_vain(CUmodule *module, const void *image)
{
    (void)module;
    (void)image;
    return answer;
}
static CUresult find_in_vain(CUfunction *function, CUmodule module, const char *name)
{
    (void)function;
    (void)module;
    (void)name;
    return answer;
}
static CUresult attribute_in_vain(int *value, CUfunction_attribute which, CUfunction function)
{
    (void)value;
    (void)which;
    (void)function;
    return answer;
}
static CUresult occupancy_in_vain(int *blocks, CUfunction function, int threads, size_t bytes)
{
    (void)function;
    (void)threads;
    (void)bytes;
    *blocks = 0;
    return answer;
}
static CUresult launch_in_vain(CUfunction function, unsigned x, unsigned y, unsigned z,
                               unsigned threads_x, unsigned threads_y, unsigned threads_z,
                               unsigned bytes, CUstream stream, void **arguments, void **extra)
{
    (void)function;
    (void)(x + y + z + threads_x + threads_y + threads_z + bytes);
    (void)stream;
    (void)arguments;
    (void)extra;
    return answer;
}

/* The kernels, not loaded yet. */
static void unload(void)
{
    if (device->own.module)
        CUDA(cuModuleUnload)(device->own.module);
    device->own.module = NULL;
    device->own.state = OWN_UNTRIED;
}

/* Nothing is launched, and the failure is noted as one of a library: the device stays in use. */
static void assert_fails(const char *text)
{
    double norms[ROWS];
    struct failure before;
    failure_begin(&before);
    assert_int_equal(norms_on_device(norms), GPU_ERROR);
    assert_false(work.launched);
    assert_int_equal(failure_noted()->kind, FAILURE_LIBRARY);
    assert_string_equal(failure_noted()->text, text);
    failure_end(&before);
}

static void test_each_function_fails(void **state)
{
    (void)state;
    answer = CUDA_ERROR_UNKNOWN;
    CUDA(cuModuleGetFunction) = find_in_vain;
    assert_fails("cuModuleGetFunction: CUDA_ERROR_UNKNOWN");
    cuda_api = real;
    CUDA(cuFuncGetAttribute) = attribute_in_vain;
    assert_fails("cuFuncGetAttribute: CUDA_ERROR_UNKNOWN");
    cuda_api = real;
    CUDA(cuOccupancyMaxActiveBlocksPerMultiprocessor) = occupancy_in_vain;
    assert_fails("cuOccupancyMaxActiveBlocksPerMultiprocessor: CUDA_ERROR_UNKNOWN");
    cuda_api = real;
    CUDA(cuLaunchKernel) = launch_in_vain;
    assert_fails("cuLaunchKernel: CUDA_ERROR_UNKNOWN");
}

static void test_what_does_not_fit_is_unsupported(void **state)
{
    struct gpu_fit fit;
    (void)state;
    answer = CUDA_SUCCESS;
    CUDA(cuOccupancyMaxActiveBlocksPerMultiprocessor) = occupancy_in_vain;
    assert_int_equal(gpu_own(&work)->fit(&work, "own_row_norms", 64, 0, &fit), GPU_UNSUPPORTED);
}

static void test_a_load_without_memory_is_tried_again(void **state)
{
    double norms[ROWS];
    (void)state;
    unload();
    answer = CUDA_ERROR_OUT_OF_MEMORY;
    CUDA(cuModuleLoadData) = load_in_vain;
    assert_int_equal(norms_on_device(norms), GPU_NO_MEMORY);
    assert_true(gpu_own(&work)->is_here(&work));
    cuda_api = real;
    assert_int_equal(norms_on_device(norms), GPU_OK);
}

static void test_a_load_that_fails_is_the_last(void **state)
{
    double norms[ROWS];
    (void)state;
    unload();
    answer = CUDA_ERROR_UNKNOWN;
    CUDA(cuModuleLoadData) = load_in_vain;
    assert_fails("cuModuleLoadData: CUDA_ERROR_UNKNOWN");
    cuda_api = real;
    assert_false(gpu_own(&work)->is_here(&work));
    assert_int_equal(norms_on_device(norms), GPU_UNSUPPORTED);
    unload();
}

static void test_an_unfit_image_is_unsupported(void **state)
{
    static const CUresult answers[] = {CUDA_ERROR_NO_BINARY_FOR_GPU,
                                       CUDA_ERROR_INVALID_IMAGE,
                                       CUDA_ERROR_INVALID_PTX,
                                       CUDA_ERROR_UNSUPPORTED_PTX_VERSION,
                                       CUDA_ERROR_JIT_COMPILER_NOT_FOUND,
                                       CUDA_ERROR_JIT_COMPILATION_DISABLED};
    double norms[ROWS];
    (void)state;
    for (size_t i = 0; i < sizeof answers / sizeof *answers; i++) {
        unload();
        answer = answers[i];
        CUDA(cuModuleLoadData) = load_in_vain;
        assert_int_equal(norms_on_device(norms), GPU_UNSUPPORTED);
        assert_int_equal(failure_noted()->kind, FAILURE_NONE);
        cuda_api = real;
        assert_false(gpu_own(&work)->is_here(&work));
    }
    unload();
}

static void test_a_driver_without_launches_is_unsupported(void **state)
{
    double norms[ROWS];
    (void)state;
    CUDA(cuLaunchCooperativeKernel) = NULL;
    assert_false(gpu_own(&work)->is_here(&work));
    assert_int_equal(norms_on_device(norms), GPU_UNSUPPORTED);
}

static void test_a_driver_that_lacks_one_function_is_unsupported(void **state)
{
    void *lacking[] = {&CUDA(cuModuleLoadData),
                       &CUDA(cuModuleUnload),
                       &CUDA(cuModuleGetFunction),
                       &CUDA(cuLaunchKernel),
                       &CUDA(cuLaunchCooperativeKernel),
                       &CUDA(cuFuncGetAttribute),
                       &CUDA(cuOccupancyMaxActiveBlocksPerMultiprocessor)};
    (void)state;
    for (size_t i = 0; i < sizeof lacking / sizeof *lacking; i++) {
        memset(lacking[i], 0, sizeof(void *));
        assert_false(gpu_own(&work)->is_here(&work));
        cuda_api = real;
    }
    assert_true(gpu_own(&work)->is_here(&work));
}

/* ---- The load ---- */

static int loads, unloads;
static struct gate gate;

static CUresult load_slowly(CUmodule *module, const void *image)
{
    loads++;
    gate_pass(&gate);
    return real.cuModuleLoadData_p(module, image);
}
static CUresult load_without_memory(CUmodule *module, const void *image)
{
    (void)module;
    (void)image;
    loads++;
    return CUDA_ERROR_OUT_OF_MEMORY;
}
static CUresult no_wait(CUstream stream)
{
    (void)stream;
    return CUDA_ERROR_UNKNOWN;
}
static CUresult count_unload(CUmodule module)
{
    (void)module;
    unloads++;
    return CUDA_SUCCESS;
}
static CUresult no_context(CUcontext context)
{
    (void)context;
    return CUDA_ERROR_UNKNOWN;
}

/* A call of another thread. */
static void *fit_on_ctx(void *ctx)
{
    struct gpu_work other = work;
    struct gpu_scope entered;
    struct gpu_fit fit;
    other.ctx = ctx;
    if (gpu_enter(device, &entered) != GPU_OK)
        return NULL;
    const enum gpu_status status = gpu_own(&other)->fit(&other, "own_row_norms", 64, 0, &fit);
    gpu_leave(&entered);
    return status == GPU_OK ? ctx : NULL;
}

/* The other thread has written it by itself: ThreadSanitizer is not told that it is read. */
__attribute__((no_sanitize("thread"))) static bool has_looked(const struct stream_ctx *ctx)
{
    return *(volatile const bool *)&ctx->made;
}

static void test_threads_load_once(void **state)
{
    pthread_t first, second;
    struct stream_ctx *ctx;
    void *done[2];
    (void)state;
    unload();
    loads = 0;
    gate_init(&gate);
    assert_int_equal(stream_ctx_acquire(device, true, &ctx), GPU_OK);
    ctx->made = false;
    CUDA(cuModuleLoadData) = load_slowly;
    assert_int_equal(pthread_create(&first, NULL, fit_on_ctx, work.ctx), 0);
    sem_wait(&gate.reached);
    assert_int_equal(pthread_create(&second, NULL, fit_on_ctx, ctx), 0);
    /* It has seen that nothing is loaded. A test that fails has an end. */
    for (int i = 0; i < 10000 && !has_looked(ctx); i++)
        pause_ms(1);
    sem_post(&gate.open);
    assert_int_equal(pthread_join(first, &done[0]), 0);
    assert_int_equal(pthread_join(second, &done[1]), 0);
    assert_true(done[0] == work.ctx && done[1] == ctx);
    assert_int_equal(loads, 1);
    stream_ctx_release(ctx, false);
}

/* Work that is under way may use all memory: if it cannot be waited for, another attempt is of no
 * use. */
static void test_a_load_waits_for_memory(void **state)
{
    struct gpu_fit fit;
    (void)state;
    unload();
    loads = 0;
    work.ctx->quiet = false;
    CUDA(cuModuleLoadData) = load_without_memory;
    CUDA(cuStreamSynchronize) = no_wait;
    assert_int_equal(gpu_own(&work)->fit(&work, "own_row_norms", 64, 0, &fit), GPU_NO_MEMORY);
    assert_int_equal(loads, 1);
    CUDA(cuStreamSynchronize) = real.cuStreamSynchronize_p;
    assert_int_equal(gpu_own(&work)->fit(&work, "own_row_norms", 64, 0, &fit), GPU_NO_MEMORY);
    assert_int_equal(loads, 3);
}

/* The driver takes them down with the context then. */
static void test_a_device_that_cannot_be_entered_keeps_its_kernels(void **state)
{
    static struct cuda_device other;
    (void)state;
    CUDA(cuModuleUnload) = count_unload;
    for (int i = 0; i < 2; i++) {
        unloads = 0;
        other.context = device->context;
        other.own.module = (CUmodule)&other;
        own_begin(&other);
        CUDA(cuCtxPushCurrent) = i ? no_context : real.cuCtxPushCurrent_p;
        own_end(&other);
        assert_int_equal(unloads, i == 0);
    }
}

extern const uint64_t own_image_bytes;

/* A build without nvcc. */
static void test_nothing_is_here_without_an_image(void **state)
{
    double norms[ROWS];
    (void)state;
    assert_false(gpu_own(&work)->is_here(&work));
    assert_int_equal(norms_on_device(norms), GPU_UNSUPPORTED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_a_kernel_computes, begin_work, end_work),
        cmocka_unit_test_setup_teardown(test_each_function_fails, begin_work, end_work),
        cmocka_unit_test_setup_teardown(test_what_does_not_fit_is_unsupported, begin_work,
                                        end_work),
        cmocka_unit_test_setup_teardown(test_a_load_without_memory_is_tried_again, begin_work,
                                        end_work),
        cmocka_unit_test_setup_teardown(test_a_load_that_fails_is_the_last, begin_work, end_work),
        cmocka_unit_test_setup_teardown(test_an_unfit_image_is_unsupported, begin_work, end_work),
        cmocka_unit_test_setup_teardown(test_a_driver_without_launches_is_unsupported, begin_work,
                                        end_work),
        cmocka_unit_test_setup_teardown(test_a_driver_that_lacks_one_function_is_unsupported,
                                        begin_work, end_work),
        cmocka_unit_test_setup_teardown(test_threads_load_once, begin_work, end_work),
        cmocka_unit_test_setup_teardown(test_a_load_waits_for_memory, begin_work, end_work),
        cmocka_unit_test_setup_teardown(test_a_device_that_cannot_be_entered_keeps_its_kernels,
                                        begin_work, end_work),
    };
    const struct CMUnitTest without_image[] = {cmocka_unit_test_setup_teardown(
        test_nothing_is_here_without_an_image, begin_work, end_work)};
    return own_image_bytes > 0 ? cmocka_run_group_tests(tests, start_work, stop_device)
                               : cmocka_run_group_tests(without_image, start_work, stop_device);
}
