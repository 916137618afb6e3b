/*
 * Lanes that are slow to be made, or cannot be made: see gpu/cuda/lane.c. A thread for which a lane is free does not wait until another
 * thread's has been made; a further one that cannot be made is no failure of the device.
 */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "gpu/cuda/device.h"

static struct cuda_device *device;

static __typeof__(&cublasCreate_v2) real_create;
static sem_t creating, go_on;
static atomic_bool created;

/* Goes on when it may, or after some seconds, so that a test that fails has an end. */
static cublasStatus_t CUBLASWINAPI create_slowly(cublasHandle_t *handle)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 5;
    sem_post(&creating);
    sem_timedwait(&go_on, &until);
    atomic_store(&created, true);
    return real_create(handle);
}

static void *acquire(void *unused)
{
    struct gpu_scope scope;
    struct gpu_lane *lane = NULL;
    (void)unused;
    if (gpu_enter(device, &scope) != GPU_OK)
        return NULL;
    if (lane_acquire(device, &lane) == GPU_OK)
        lane_release(lane, false);
    gpu_leave(&scope);
    return lane;
}

static void test_a_free_lane_is_not_waited_for(void **state)
{
    struct gpu_scope scope;
    struct gpu_lane *first, *again;
    pthread_t thread;
    void *other;
    (void)state;
    assert_int_equal(gpu_enter(device, &scope), GPU_OK);
    assert_int_equal(lane_acquire(device, &first), GPU_OK);
    real_create = CUDA(cublasCreate_v2);
    CUDA(cublasCreate_v2) = create_slowly;
    assert_int_equal(pthread_create(&thread, NULL, acquire, NULL), 0);
    sem_wait(&creating);
    lane_release(first, false);
    assert_int_equal(lane_acquire(device, &again), GPU_OK);
    bool waited = atomic_load(&created);
    sem_post(&go_on);
    lane_release(again, false);
    assert_int_equal(pthread_join(thread, &other), 0);
    CUDA(cublasCreate_v2) = real_create;
    gpu_leave(&scope);
    assert_ptr_equal(again, first);
    assert_non_null(other);
    assert_false(waited);
}

static cublasStatus_t CUBLASWINAPI create_in_vain(cublasHandle_t *handle)
{
    (void)handle;
    sem_post(&creating);
    return CUBLAS_STATUS_NOT_INITIALIZED;
}

static CUresult CUDAAPI no_stream(CUstream *stream, unsigned flags)
{
    (void)stream;
    (void)flags;
    sem_post(&creating);
    return CUDA_ERROR_UNKNOWN;
}

static CUresult CUDAAPI no_event(CUevent *event, unsigned flags)
{
    (void)event;
    (void)flags;
    sem_post(&creating);
    return CUDA_ERROR_NOT_PERMITTED;
}

/* One thread has the only lane; another one's cannot be made, though there is memory: it gets the first, once that is free. */
static void wait_for_the_only_lane(void)
{
    struct gpu_scope scope;
    struct gpu_lane *only;
    pthread_t thread;
    void *other;
    assert_int_equal(gpu_enter(device, &scope), GPU_OK);
    assert_int_equal(lane_acquire(device, &only), GPU_OK);
    assert_int_equal(pthread_create(&thread, NULL, acquire, NULL), 0);
    sem_wait(&creating);
    lane_release(only, false);
    assert_int_equal(pthread_join(thread, &other), 0);
    gpu_leave(&scope);
    assert_ptr_equal(other, only);
    assert_false(gpu_has_failure(&device->common));
}

static void test_a_further_lane_that_cannot_be_made_is_waited_for(void **state)
{
    const __typeof__(cuda_api) real = cuda_api;
    struct gpu_scope scope;
    struct gpu_lane *lane;
    (void)state;
    assert_int_equal(gpu_enter(device, &scope), GPU_OK);
    lane_free_idle(device);
    assert_int_equal(lane_acquire(device, &lane), GPU_OK);
    lane_release(lane, false);
    gpu_leave(&scope);
    for (int i = 0; i < 3; i++) {
        sem_init(&creating, 0, 0);
        if (i == 0)
            CUDA(cublasCreate_v2) = create_in_vain;
        else if (i == 1)
            CUDA(cuStreamCreate) = no_stream;
        else
            CUDA(cuEventCreate) = no_event;
        wait_for_the_only_lane();
        cuda_api = real;
    }
}

/* The only one is another matter. The last test, since the failure stays. */
static void test_the_only_lane_that_cannot_be_made_is_a_failure(void **state)
{
    const __typeof__(cuda_api) real = cuda_api;
    struct gpu_scope scope;
    struct gpu_lane *lane;
    (void)state;
    assert_int_equal(gpu_enter(device, &scope), GPU_OK);
    lane_free_idle(device);
    CUDA(cuStreamCreate) = no_stream;
    assert_int_equal(lane_acquire(device, &lane), GPU_ERROR);
    cuda_api = real;
    gpu_leave(&scope);
    assert_true(gpu_has_failure(&device->common));
    assert_non_null(strstr(gpu_failure(&device->common), "cuStreamCreate: CUDA_ERROR_UNKNOWN"));
}

static CUresult CUDAAPI no_stream_ever(CUstream *stream, unsigned flags)
{
    (void)stream;
    (void)flags;
    return CUDA_ERROR_LAUNCH_FAILED;
}

static CUresult CUDAAPI no_answer(size_t *free_bytes, size_t *total)
{
    (void)free_bytes;
    (void)total;
    return CUDA_ERROR_LAUNCH_FAILED;
}

/* After a kernel's fault, say: whoever has a lane may be long at the original, and its lane is of no use to others. */
static void test_a_lane_of_a_broken_device_is_not_waited_for(void **state)
{
    const __typeof__(cuda_api) real = cuda_api;
    struct gpu_scope scope;
    struct gpu_lane *lane;
    struct timespec until;
    pthread_t thread;
    void *other;
    (void)state;
    assert_int_equal(gpu_enter(device, &scope), GPU_OK);
    lane_free_idle(device);
    assert_int_equal(lane_acquire(device, &lane), GPU_OK);
    CUDA(cuStreamCreate) = no_stream_ever;
    CUDA(cuMemGetInfo) = no_answer;
    assert_int_equal(pthread_create(&thread, NULL, acquire, NULL), 0);
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 10; /* a test that fails has an end */
    bool waits = pthread_timedjoin_np(thread, &other, &until) != 0;
    cuda_api = real;
    lane_release(lane, false);
    if (waits)
        pthread_join(thread, &other);
    gpu_leave(&scope);
    assert_false(waits);
    assert_null(other);
}

static int start(void **state)
{
    const char *build = getenv("BUILD");
    char why[GPU_FAILURE_BYTES];
    char dir[4096];
    (void)state;
    snprintf(dir, sizeof dir, "%s/testgpu", build ? build : "build");
    const struct gpu_config config = {.cuda_dir = dir, .memory_share = 0.5};
    sem_init(&creating, 0, 0);
    sem_init(&go_on, 0, 0);
    device = (struct cuda_device *)gpu_start(&config, why);
    return device ? 0 : -1;
}

static int stop(void **state)
{
    (void)state;
    gpu_stop(&device->common);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_free_lane_is_not_waited_for),
        cmocka_unit_test(test_a_further_lane_that_cannot_be_made_is_waited_for),
        cmocka_unit_test(test_the_only_lane_that_cannot_be_made_is_a_failure),
        cmocka_unit_test(test_a_lane_of_a_broken_device_is_not_waited_for),
    };
    return cmocka_run_group_tests(tests, start, stop);
}
