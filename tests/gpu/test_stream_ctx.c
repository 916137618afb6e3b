/*
 * Stream contexts that are slow to be made, or cannot be made: see gpu/cuda/stream_ctx.c. A thread
 * for which a stream context is free does not wait until another thread's has been made; a further
 * one that cannot be made is no failure of the device. And their stream beside: a wait for the
 * stream context is one for that, and a stream context whose cuBLAS does not come back from there
 * ends.
 */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "gpu/cuda/device.h"
#include "tests/lib/devices.h"
#include "tests/lib/gate.h"

/* libaccel calls no such function: this one is linked. Its prototype is that of CUDA's driver
 * API. */
CUresult cuLaunchHostFunc(CUstream stream, void (*function)(void *), void *data);

static struct cuda_device *device;
static __typeof__(cuda_api) real;
static struct gpu_scope scope;
static struct gate gate;

static cublasStatus_t create_slowly(cublasHandle_t *handle)
{
    gate_pass(&gate);
    return real.cublasCreate_v2_p(handle);
}

static void *acquire(void *unused)
{
    struct gpu_scope scope;
    struct stream_ctx *ctx = NULL;
    (void)unused;
    if (gpu_enter(device, &scope) != GPU_OK)
        return NULL;
    if (stream_ctx_acquire(device, true, &ctx) == GPU_OK)
        stream_ctx_release(ctx, false);
    gpu_leave(&scope);
    return ctx;
}

/* No stream context is there yet. A test that fails keeps its stream context, for which the next
 * one would wait for ever. */
static int begin(void **state)
{
    (void)state;
    alarm(100);
    real = cuda_api;
    gate_init(&gate);
    if (gpu_enter(device, &scope) != GPU_OK)
        return -1;
    stream_ctx_free_idle(device);
    return 0;
}

static int end(void **state)
{
    (void)state;
    cuda_api = real;
    gpu_leave(&scope);
    return 0;
}

static struct stream_ctx *acquired(void)
{
    struct stream_ctx *ctx;
    assert_int_equal(stream_ctx_acquire(device, true, &ctx), GPU_OK);
    return ctx;
}

static pthread_t begin_to_acquire(void)
{
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, acquire, NULL), 0);
    return thread;
}

static void test_a_free_ctx_is_not_waited_for(void **state)
{
    void *other;
    (void)state;
    struct stream_ctx *first = acquired();
    CUDA(cublasCreate_v2) = create_slowly;
    pthread_t thread = begin_to_acquire();
    sem_wait(&gate.reached);
    stream_ctx_release(first, false);
    struct stream_ctx *again = acquired();
    bool waited = atomic_load(&gate.passed);
    sem_post(&gate.open);
    stream_ctx_release(again, false);
    assert_int_equal(pthread_join(thread, &other), 0);
    assert_ptr_equal(again, first);
    assert_non_null(other);
    assert_false(waited);
}

static cublasStatus_t create_in_vain(cublasHandle_t *handle)
{
    (void)handle;
    sem_post(&gate.reached);
    return CUBLAS_STATUS_NOT_INITIALIZED;
}

static cublasStatus_t create_without_memory(cublasHandle_t *handle)
{
    (void)handle;
    sem_post(&gate.reached);
    return CUBLAS_STATUS_ALLOC_FAILED;
}

static CUresult no_stream(CUstream *stream, unsigned flags)
{
    (void)stream;
    (void)flags;
    sem_post(&gate.reached);
    return CUDA_ERROR_UNKNOWN;
}

static CUresult no_event(CUevent *event, unsigned flags)
{
    (void)event;
    (void)flags;
    sem_post(&gate.reached);
    return CUDA_ERROR_NOT_PERMITTED;
}

/* A call that may not wait for others gets none where all are in use and no further one can be
 * made. */
static void test_who_hurries_does_not_wait(void **state)
{
    struct stream_ctx *only = acquired(), *none;
    (void)state;
    CUDA(cublasCreate_v2) = create_in_vain;
    assert_int_equal(stream_ctx_acquire(device, false, &none), GPU_BUSY);
    sem_wait(&gate.reached);
    stream_ctx_release(only, false);
    assert_int_equal(stream_ctx_acquire(device, false, &none), GPU_OK);
    stream_ctx_release(none, false);
}

/* One thread has the only stream context; another one's cannot be made, though there is memory: it
 * gets the first, once that is free. */
static void wait_for_the_only_ctx(void)
{
    void *other;
    struct stream_ctx *only = acquired();
    pthread_t thread = begin_to_acquire();
    sem_wait(&gate.reached);
    stream_ctx_release(only, false);
    assert_int_equal(pthread_join(thread, &other), 0);
    assert_ptr_equal(other, only);
    assert_false(gpu_has_failure(&device->common));
}

static void test_a_further_ctx_that_cannot_be_made_is_waited_for(void **state)
{
    (void)state;
    stream_ctx_release(acquired(), false);
    for (int i = 0; i < 4; i++) {
        gate_init(&gate);
        if (i == 0)
            CUDA(cublasCreate_v2) = create_in_vain;
        else if (i == 3)
            CUDA(cublasCreate_v2) = create_without_memory;
        else if (i == 1)
            CUDA(cuStreamCreate) = no_stream;
        else
            CUDA(cuEventCreate) = no_event;
        wait_for_the_only_ctx();
        cuda_api = real;
    }
}

/* The only one is another matter. The failure stays: the tests behind this one have a device that
 * failed. */
static void test_the_only_ctx_that_cannot_be_made_is_a_failure(void **state)
{
    struct stream_ctx *ctx;
    (void)state;
    CUDA(cuStreamCreate) = no_stream;
    assert_int_equal(stream_ctx_acquire(device, true, &ctx), GPU_ERROR);
    assert_true(gpu_has_failure(&device->common));
    assert_non_null(strstr(gpu_failure(&device->common), "cuStreamCreate: CUDA_ERROR_UNKNOWN"));
}

static CUresult no_stream_ever(CUstream *stream, unsigned flags)
{
    (void)stream;
    (void)flags;
    return CUDA_ERROR_LAUNCH_FAILED;
}

static CUresult no_answer(size_t *free_bytes, size_t *total)
{
    (void)free_bytes;
    (void)total;
    return CUDA_ERROR_LAUNCH_FAILED;
}

/* After a kernel's fault, say: whoever has a stream context may be long at the original, and its
 * stream context is of no use to others. */
static void test_a_ctx_of_a_broken_device_is_not_waited_for(void **state)
{
    void *other;
    bool waits = true;
    (void)state;
    struct stream_ctx *ctx = acquired();
    CUDA(cuStreamCreate) = no_stream_ever;
    CUDA(cuMemGetInfo) = no_answer;
    pthread_t thread = begin_to_acquire();
    for (int i = 0; waits && i < 120000; i++) { /* a test that fails has an end */
        waits = pthread_tryjoin_np(thread, &other) != 0;
        if (waits)
            pause_ms(1);
    }
    cuda_api = real;
    stream_ctx_release(ctx, false);
    if (waits)
        pthread_join(thread, &other);
    assert_false(waits);
    assert_null(other);
}

static int start(void **state)
{
    *state = start_device(tested_gpu(), (struct gpu_config){.memory_share = 0.5});
    device = cuda_device_of(*state);
    return device ? 0 : -1;
}

static void finish_late(void *finished)
{
    const struct timespec pause = {0, 50000000};
    nanosleep(&pause, NULL);
    atomic_store((atomic_bool *)finished, true);
}

static void test_a_ctx_waits_for_what_is_beside(void **state)
{
    atomic_bool finished = false;
    (void)state;
    struct stream_ctx *ctx = acquired();
    const CUstream own = ctx->stream;
    assert_int_equal(stream_ctx_prepare_beside(ctx), GPU_OK);
    assert_int_equal(stream_ctx_go_beside(ctx), GPU_OK);
    assert_true(ctx->stream != own && ctx->beside == own);
    assert_int_equal(cuLaunchHostFunc(stream_ctx_stream(ctx), finish_late, &finished),
                     CUDA_SUCCESS);
    assert_int_equal(stream_ctx_go_back(ctx), GPU_OK);
    assert_true(ctx->stream == own);
    assert_int_equal(CUDA(cuStreamCreate)(&ctx->up, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
    assert_int_equal(CUDA(cuStreamCreate)(&ctx->down, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
    ctx->aside = true; /* as a schedule leaves it that has failed */
    assert_int_equal(stream_ctx_wait(ctx), GPU_OK);
    assert_true(atomic_load(&finished));
    stream_ctx_release(ctx, false);
}

static cublasStatus_t refuse_stream(cublasHandle_t handle, cudaStream_t stream)
{
    (void)handle;
    (void)stream;
    return CUBLAS_STATUS_INVALID_VALUE;
}

static void test_a_ctx_that_is_astray_ends(void **state)
{
    struct failure outer;
    (void)state;
    failure_begin(&outer);
    struct stream_ctx *ctx = acquired();
    assert_int_equal(stream_ctx_prepare_beside(ctx), GPU_OK);
    assert_int_equal(stream_ctx_go_beside(ctx), GPU_OK);
    CUDA(cublasSetStream_v2) = refuse_stream;
    assert_int_equal(stream_ctx_go_back(ctx), GPU_ERROR);
    CUDA(cublasSetStream_v2) = real.cublasSetStream_v2_p;
    ctx->made = false; /* as after a call */
    stream_ctx_release(ctx, false);
    ctx = acquired();
    assert_true(ctx->made && !ctx->is_beside && !ctx->astray);
    stream_ctx_release(ctx, false);
    failure_end(&outer);
}

static CUresult no_room(CUdeviceptr *block, size_t bytes)
{
    (void)block;
    (void)bytes;
    return CUDA_ERROR_OUT_OF_MEMORY;
}

/* Short of memory, a stream context is as it was, and can be prepared later. */
static void test_a_workspace_that_does_not_fit(void **state)
{
    (void)state;
    struct stream_ctx *ctx = acquired();
    ctx->made = false; /* as after a call */
    CUDA(cuMemAlloc) = no_room;
    assert_int_equal(stream_ctx_prepare_beside(ctx), GPU_NO_MEMORY);
    assert_true(!ctx->made && !ctx->workspace && !ctx->beside);
    cuda_api = real;
    assert_int_equal(stream_ctx_prepare_beside(ctx), GPU_OK);
    assert_true(ctx->made && ctx->workspace && ctx->beside);
    stream_ctx_release(ctx, false);
    assert_false(gpu_has_failure(&device->common));
}

/* ---- The default stream ---- */

static int records, waits;
static CUresult capture_answer, record_answer;

static CUresult ask_capture(CUstream stream, CUstreamCaptureStatus *status)
{
    (void)stream;
    (void)status;
    return capture_answer;
}

static CUresult count_record(CUevent event, CUstream stream)
{
    assert_true(stream == CU_STREAM_LEGACY);
    records++;
    return record_answer ? record_answer : real.cuEventRecord_p(event, stream);
}

static CUresult count_wait(CUstream stream, CUevent event, unsigned flags)
{
    waits++;
    return real.cuStreamWaitEvent_p(stream, event, flags);
}

static enum gpu_status join(struct stream_ctx *ctx)
{
    records = waits = 0;
    return stream_ctx_join_default_stream(ctx);
}

/* While a program captures, an attempt would break its capture. A driver that has no such question
 * has no such captures. */
static void test_the_default_stream_is_joined_where_it_is_open(void **state)
{
    struct failure outer;
    (void)state;
    struct stream_ctx *ctx = acquired();
    failure_begin(&outer);
    capture_answer = record_answer = CUDA_SUCCESS;
    CUDA(cuStreamIsCapturing) = ask_capture;
    CUDA(cuEventRecord) = count_record;
    CUDA(cuStreamWaitEvent) = count_wait;
    assert_false(stream_ctx_default_stream_is_closed());
    assert_int_equal(join(ctx), GPU_OK);
    assert_true(records == 1 && waits == 1);
    capture_answer = CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
    assert_true(stream_ctx_default_stream_is_closed());
    assert_int_equal(join(ctx), GPU_OK);
    assert_true(records == 0 && waits == 0);
    CUDA(cuStreamIsCapturing) = NULL;
    assert_false(stream_ctx_default_stream_is_closed());
    assert_int_equal(join(ctx), GPU_OK);
    assert_true(records == 1 && waits == 1);
    record_answer = CUDA_ERROR_UNKNOWN;
    assert_int_equal(join(ctx), GPU_ERROR);
    assert_true(records == 1 && waits == 0);
    assert_string_equal(failure_noted()->text, "cuEventRecord: CUDA_ERROR_UNKNOWN");
    failure_end(&outer);
    cuda_api = real;
    stream_ctx_release(ctx, false);
}

static cublasStatus_t unfit(cublasHandle_t *handle)
{
    (void)handle;
    return CUBLAS_STATUS_NOT_INITIALIZED;
}

/* With an unfit driver, cuBLAS says nothing but that it does not start: the message has both
 * versions, also without a name of the status. */
static void test_a_cublas_that_does_not_start_is_described(void **state)
{
    static const char expected[] = "cublasCreate: cuBLAS failed (cuBLAS ";
    struct failure outer;
    struct stream_ctx *none;
    (void)state;
    CUDA(cublasCreate_v2) = unfit;
    CUDA(cublasGetStatusName) = NULL;
    failure_begin(&outer);
    assert_int_equal(stream_ctx_acquire(device, true, &none), GPU_ERROR);
    const struct failure noted = *failure_noted();
    failure_end(&outer);
    assert_int_equal(noted.kind, FAILURE_DEVICE);
    assert_memory_equal(noted.text, expected, sizeof expected - 1);
    assert_non_null(strstr(noted.text, "with a driver for CUDA "));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_who_hurries_does_not_wait, begin, end),
        cmocka_unit_test_setup_teardown(test_a_free_ctx_is_not_waited_for, begin, end),
        cmocka_unit_test_setup_teardown(test_a_ctx_waits_for_what_is_beside, begin, end),
        cmocka_unit_test_setup_teardown(test_a_ctx_that_is_astray_ends, begin, end),
        cmocka_unit_test_setup_teardown(test_a_workspace_that_does_not_fit, begin, end),
        cmocka_unit_test_setup_teardown(test_the_default_stream_is_joined_where_it_is_open, begin,
                                        end),
        cmocka_unit_test_setup_teardown(test_a_cublas_that_does_not_start_is_described, begin, end),
        cmocka_unit_test_setup_teardown(test_a_further_ctx_that_cannot_be_made_is_waited_for, begin,
                                        end),
        cmocka_unit_test_setup_teardown(test_the_only_ctx_that_cannot_be_made_is_a_failure, begin,
                                        end),
        cmocka_unit_test_setup_teardown(test_a_ctx_of_a_broken_device_is_not_waited_for, begin,
                                        end),
    };
    return cmocka_run_group_tests(tests, start, stop_device);
}
