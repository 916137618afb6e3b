/*
 * Two devices in one process, on the test GPU: each has its own memory, streams, failures and
 * choices, and the end of one is nothing to the other. And a device of another kind: gpu/ knows its
 * table of functions alone.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "gpu/cuda/device.h"
#include "ops/names.h"
#include "ops/typical.h"
#include "tests/lib/devices.h"

enum { N = 48, CALLS = 40 };

static struct gpu_device *device[2];
static struct cuda_device *own[2];

static bool start_one(int i)
{
    device[i] = start_device(
        tested_gpu(), (struct gpu_config){.memory_share = 0.5, .devices = &i, .device_count = 1});
    if (!device[i])
        return false;
    own[i] = cuda_device_of(device[i]);
    atomic_store(&own[i]->watched, false); /* the idle thread looks after them */
    return true;
}

static int start_both(void **state)
{
    (void)state;
    return start_one(0) && start_one(1) ? 0 : -1;
}

static int stop_both(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        gpu_stop(device[i]);
        device[i] = NULL;
    }
    return 0;
}

/* ---- Products of small whole numbers, which are exact ---- */

static bool refuse(void *context, const struct accel_call *part)
{
    (void)context;
    (void)part;
    return false;
}

static enum gpu_status run_product(struct gpu_device *on, int seed, bool *right)
{
    static _Thread_local double a[N * N], b[N * N], c[N * N];
    const int64_t size[ACCEL_DIMENSIONS] = {N, N, N, 0};
    struct gpu_host host = {.original = refuse};
    struct accel_call call;
    shape_typical(&call, accel_name_routine((uint32_t)accel_name_find("dgemm_")), size);
    for (int i = 0; i < N * N; i++) {
        a[i] = (i + seed) % 7 - 3;
        b[i] = (i * 3 + seed) % 5 - 2;
        c[i] = 0;
    }
    call.span[ACCEL_a].ptr = a;
    call.span[ACCEL_b].ptr = b;
    call.span[ACCEL_c].ptr = c;
    call.blas.scalar[ACCEL_alpha] = (struct accel_complex){1, 0};
    call.blas.scalar[ACCEL_beta] = (struct accel_complex){0, 0};
    enum gpu_status status = gpu_run(on, &call, &host);
    *right = status == GPU_OK;
    for (int j = 0; j < N && *right; j++)
        for (int i = 0; i < N; i++) {
            double sum = 0;
            for (int k = 0; k < N; k++)
                sum += (call.blas.flag[ACCEL_transa] == 'N' ? a[k * N + i] : a[i * N + k]) *
                       (call.blas.flag[ACCEL_transb] == 'N' ? b[j * N + k] : b[k * N + j]);
            *right = *right && c[j * N + i] == sum;
        }
    return status;
}

static bool computes(struct gpu_device *on)
{
    bool right;
    return run_product(on, 1, &right) == GPU_OK && right;
}

/* A thread's calls; how many were right. */
static void *run_calls(void *on)
{
    intptr_t count = 0;
    for (int i = 0; i < CALLS; i++) {
        bool right;
        count += run_product(on, i, &right) == GPU_OK && right;
    }
    return (void *)count;
}

static pthread_t begin_calls(int i)
{
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, run_calls, device[i]), 0);
    return thread;
}

static int end_calls(pthread_t thread)
{
    void *count;
    assert_int_equal(pthread_join(thread, &count), 0);
    return (int)(intptr_t)count;
}

/* ---- Each has its own ---- */

static void each_is_described(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        assert_int_equal(gpu_info(device[i])->index, i);
        assert_int_equal(gpu_info(device[i])->memory_bytes, 512 << 20);
    }
    assert_string_not_equal(gpu_info(device[0])->id, gpu_info(device[1])->id);
    assert_ptr_not_equal(own[0]->context, own[1]->context);
}

static CUdeviceptr get(int i, int64_t bytes)
{
    struct gpu_scope scope;
    CUdeviceptr block = 0;
    bool grew;
    assert_int_equal(gpu_enter(own[i], &scope), GPU_OK);
    assert_int_equal(pool_get(own[i], bytes, &block, &grew), GPU_OK);
    gpu_leave(&scope);
    return block;
}

/* Returns when what is being given back has gone, too. */
static void trim(int i)
{
    struct gpu_scope scope;
    assert_int_equal(gpu_enter(own[i], &scope), GPU_OK);
    pool_trim(own[i]);
    gpu_leave(&scope);
}

static enum accel_place place_on(int i, CUdeviceptr block)
{
    struct accel_span x = {.ptr = (void *)(uintptr_t)block};
    gpu_locate(device[i], &x, 1, 1);
    return x.place;
}

static void each_has_its_own_memory(void **state)
{
    const int64_t bytes = 400 << 20; /* of 512 MiB that each may use */
    CUdeviceptr block[2];
    (void)state;
    for (int i = 0; i < 2; i++) {
        block[i] = get(i, bytes);
        assert_true(own[i]->pool.total >= bytes);
        assert_int_equal(own[!i]->pool.total >= bytes, i == 1);
    }
    for (int i = 0; i < 2; i++) {
        assert_int_equal(place_on(i, block[i]), ACCEL_DEVICE);
        assert_int_equal(place_on(!i, block[i]), ACCEL_REMOTE);
    }
    pool_put(own[0], block[0]);
    trim(0);
    assert_int_equal(own[0]->pool.total, 0);
    assert_true(own[1]->pool.total >= bytes);
    pool_put(own[1], block[1]);
    trim(1);
}

static CUcontext context_of(const struct stream_ctx *ctx)
{
    CUresult (*get_context)(CUstream, CUcontext *);
    void *function = dlsym(cuda_api_loaded_driver(), "cuStreamGetCtx");
    CUcontext context = NULL;
    assert_non_null(function);
    memcpy(&get_context, &function, sizeof get_context);
    assert_int_equal(get_context(ctx->stream, &context), CUDA_SUCCESS);
    return context;
}

/* The second has a free one where all of the first are taken. */
static void each_has_its_own_stream_ctxs(void **state)
{
    struct stream_ctx *ctx[2][STREAM_CTXS_MAX];
    struct gpu_scope scope;
    (void)state;
    for (int i = 0; i < 2; i++) {
        assert_int_equal(gpu_enter(own[i], &scope), GPU_OK);
        for (int at = 0; at < STREAM_CTXS_MAX; at++) {
            assert_int_equal(stream_ctx_acquire(own[i], true, &ctx[i][at]), GPU_OK);
            assert_ptr_equal(ctx[i][at]->device, own[i]);
            assert_ptr_equal(context_of(ctx[i][at]), own[i]->context);
        }
        gpu_leave(&scope);
    }
    for (int i = 0; i < 2; i++) {
        assert_int_equal(gpu_enter(own[i], &scope), GPU_OK);
        for (int at = 0; at < STREAM_CTXS_MAX; at++)
            stream_ctx_release(ctx[i][at], false);
        stream_ctx_free_idle(own[i]);
        gpu_leave(&scope);
    }
}

static void each_has_its_own_choices(void **state)
{
    (void)state;
    gpu_svd_choose(device[0], ACCEL_FLOAT64, true, gpu_svd_octave(100), GPU_SVD_GESVDJ);
    assert_int_equal(gpu_svd_chosen(device[0], ACCEL_FLOAT64, true, 100), GPU_SVD_GESVDJ);
    assert_int_equal(gpu_svd_chosen(device[1], ACCEL_FLOAT64, true, 100), GPU_SVD_GESVD);
}

static void both_compute_at_once(void **state)
{
    pthread_t thread[4];
    (void)state;
    for (int i = 0; i < 4; i++)
        thread[i] = begin_calls(i % 2);
    for (int i = 0; i < 4; i++)
        assert_int_equal(end_calls(thread[i]), CALLS);
    assert_false(gpu_has_failure(device[0]) || gpu_has_failure(device[1]));
}

/* One thread looks at both. */
static void both_give_idle_memory_back(void **state)
{
    const struct timespec pause = {0, 20000000};
    (void)state;
    assert_true(computes(device[0]) && computes(device[1]));
    /* So that a test that fails has an end. */
    for (int i = 0; i < 5000 && (pool_has_idle(own[0]) || pool_has_idle(own[1])); i++)
        nanosleep(&pause, NULL);
    for (int i = 0; i < 2; i++) {
        assert_false(pool_has_idle(own[i]));
        trim(i);
        assert_int_equal(own[i]->pool.total, 0);
    }
}

/* ---- The end of one ---- */

static CUcontext broken;
static __typeof__(CUDA(cuStreamSynchronize)) synchronize;

static CUresult synchronize_unless_broken(CUstream stream)
{
    CUcontext current = NULL;
    CUDA(cuCtxGetCurrent)(&current);
    return current == broken ? CUDA_ERROR_LAUNCH_FAILED : synchronize(stream);
}

static void a_failure_of_one_leaves_the_other(void **state)
{
    bool right;
    (void)state;
    synchronize = CUDA(cuStreamSynchronize);
    for (int i = 0; i < 2; i++) {
        broken = own[i]->context;
        CUDA(cuStreamSynchronize) = synchronize_unless_broken;
        pthread_t thread = begin_calls(!i);
        assert_int_not_equal(run_product(device[i], 1, &right), GPU_OK);
        assert_int_equal(end_calls(thread), CALLS);
        CUDA(cuStreamSynchronize) = synchronize;
        assert_true(gpu_has_failure(device[i]));
        assert_non_null(strstr(gpu_failure(device[i]), "CUDA_ERROR_LAUNCH_FAILED"));
        assert_false(gpu_has_failure(device[!i]));
        assert_string_equal(gpu_failure(device[!i]), "no reason known");
        gpu_stop(device[i]);
        assert_true(start_one(i)); /* with no failure of its own any more */
        assert_false(gpu_has_failure(device[i]));
    }
}

/* Its memory lies idle until then, and the thread that gives such memory back looks at the other
 * alone afterwards. */
static void a_stop_of_one_leaves_the_other(void **state)
{
    const struct timespec looks = {0, 500000000};
    (void)state;
    for (int i = 0; i < 2; i++) {
        assert_true(computes(device[i]) && pool_has_idle(own[i]));
        pthread_t thread = begin_calls(!i);
        gpu_stop(device[i]);
        assert_int_equal(end_calls(thread), CALLS);
        nanosleep(&looks, NULL);
        assert_true(computes(device[!i]));
        assert_true(start_one(i));
        assert_true(computes(device[i]));
    }
}

/* ---- Another kind ---- */

struct counter {
    struct gpu_device common;
    int runs, stops;
};

static enum gpu_status count_run(struct gpu_device *on, const struct accel_call *call,
                                 struct gpu_host *host)
{
    (void)call;
    (void)host;
    ((struct counter *)on)->runs++;
    return GPU_UNSUPPORTED;
}

static void count_stop(struct gpu_device *on)
{
    ((struct counter *)on)->stops++;
}

static void another_kind_of_device_can_stand_there(void **state)
{
    static const struct gpu_device_functions functions = {.run = count_run, .stop = count_stop};
    struct counter counter = {.common = {.functions = &functions, .info = {.index = 5}}};
    const struct accel_call call = {.routine = NULL};
    struct gpu_host host = {.original = refuse};
    (void)state;
    assert_int_equal(gpu_run(&counter.common, &call, &host), GPU_UNSUPPORTED);
    gpu_stop(&counter.common);
    assert_int_equal(counter.runs, 1);
    assert_int_equal(counter.stops, 1);
    assert_int_equal(gpu_info(&counter.common)->index, 5);
}

int main(void)
{
    /* The library, which is not loaded yet, reads it as it comes */
    setenv("TESTGPU_DEVICES", "2", 1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_is_described),
        cmocka_unit_test(each_has_its_own_memory),
        cmocka_unit_test(each_has_its_own_stream_ctxs),
        cmocka_unit_test(each_has_its_own_choices),
        cmocka_unit_test(both_compute_at_once),
        cmocka_unit_test(both_give_idle_memory_back),
        cmocka_unit_test(a_failure_of_one_leaves_the_other),
        cmocka_unit_test(a_stop_of_one_leaves_the_other),
        cmocka_unit_test(another_kind_of_device_can_stand_there),
    };
    return cmocka_run_group_tests(tests, start_both, stop_both);
}
