/*
 * Memory that other devices may use, and how fast they read it, on the test GPU: see
 * gpu/cuda/lent_memory.h. With an argument the program is what test_lent_memory.py runs: both
 * rates, then a product on each device.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gpu/cuda/device.h"
#include "ops/names.h"
#include "ops/typical.h"
#include "tests/lib/devices.h"

enum { N = 48, BUDGET = 16 << 20, SMALL = 1 << 20, LARGE = 4 << 20 };

static struct gpu_device *device[2];
static struct cuda_device *own[2];
static __typeof__(cuda_api) driver, real; /* as it is; for tests */

static bool start_one(int i)
{
    device[i] =
        start_device(tested_gpu(),
                     (struct gpu_config){.memory_bytes = BUDGET, .devices = &i, .device_count = 1});
    own[i] = cuda_device_of(device[i]);
    return device[i] != NULL;
}

/* What each copy of LARGE bytes takes, whatever else the machine does. */
static float copy_ms;

static CUresult tell_time(float *ms, CUevent from, CUevent to)
{
    (void)from;
    (void)to;
    *ms = copy_ms;
    return CUDA_SUCCESS;
}

static int begin(void **state)
{
    (void)state;
    const bool both = start_one(0) && start_one(1);
    driver = cuda_api;
    CUDA(cuEventElapsedTime) = tell_time;
    copy_ms = 8;
    real = cuda_api;
    return both ? 0 : -1;
}

static int end(void **state)
{
    (void)state;
    cuda_api = driver;
    gpu_stop(device[0]);
    gpu_stop(device[1]);
    return 0;
}

/* ---- A product of small whole numbers, which is exact ---- */

static bool refuse(void *context, const struct accel_call *part)
{
    (void)context;
    (void)part;
    return false;
}

static bool computes(struct gpu_device *on)
{
    static double a[N * N], b[N * N], c[N * N];
    const int64_t size[ACCEL_DIMENSIONS] = {N, N, N, 0};
    struct gpu_host host = {.original = refuse};
    struct accel_call call;
    shape_typical(&call, accel_name_routine((uint32_t)accel_name_find("dgemm_")), size);
    for (int i = 0; i < N * N; i++) {
        a[i] = i % 7 - 3;
        b[i] = 1;
        c[i] = 0;
    }
    call.span[ACCEL_a].ptr = a;
    call.span[ACCEL_b].ptr = b;
    call.span[ACCEL_c].ptr = c;
    call.blas.flag[ACCEL_transa] = call.blas.flag[ACCEL_transb] = 'N';
    call.blas.scalar[ACCEL_alpha] = (struct accel_complex){1, 0};
    call.blas.scalar[ACCEL_beta] = (struct accel_complex){0, 0};
    bool right = gpu_run(on, &call, &host) == GPU_OK;
    for (int i = 0; i < N && right; i++) {
        double sum = 0;
        for (int k = 0; k < N; k++)
            sum += a[k * N + i];
        right = c[i] == sum && c[(N - 1) * N + i] == sum;
    }
    return right;
}

static void assert_both_are_well(void)
{
    for (int i = 0; i < 2; i++) {
        assert_false(gpu_has_failure(device[i]));
        assert_true(computes(device[i]));
    }
}

/* ---- The rate ---- */

static atomic_int copies, pools;

static CUresult count_copy(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream)
{
    copies++;
    return real.cuMemcpyDtoDAsync_p(to, from, bytes, stream);
}

static CUresult count_pool(CUmemoryPool *pool, const CUmemPoolProps *properties)
{
    pools++;
    return real.cuMemPoolCreate_p(pool, properties);
}

static void count_calls(void)
{
    copies = pools = 0;
    CUDA(cuMemcpyDtoDAsync) = count_copy;
    CUDA(cuMemPoolCreate) = count_pool;
}

/* LARGE bytes in 8 ms, rounded. */
static const double expected = 0.5;

static void rates_are_rounded(void **state)
{
    static const struct {
        float ms;
        double gbps;
    } cases[] = {{4.194304f, 1},  {4.9f, 1},       {5.1f, 0.70710678}, {5.93f, 0.70710678},
                 {8.3f, 0.5},     {3.6f, 1},       {3.5f, 1.41421356}, {0.0084f, 512},
                 {0.0006f, 8192}, {0.0004f, 8192}, {0, 8192},          {4194304, 1. / (1 << 20)}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        own[0]->peer[1].start = 0;
        copy_ms = cases[i].ms;
        const double ratio = gpu_peer_gbps(device[0], device[1]) / cases[i].gbps;
        if (!(ratio > 1 - 1e-7 && ratio < 1 + 1e-7))
            fail_msg("%g ms: %g of %g", (double)copy_ms, ratio, cases[i].gbps);
    }
}

static void the_rate_is_measured_once(void **state)
{
    (void)state;
    count_calls();
    assert_true(gpu_peer_gbps(device[0], device[1]) == expected);
    const int once = copies;
    assert_true(once > 1 && gpu_peer_gbps(device[0], device[1]) == expected);
    assert_int_equal(copies, once);
    assert_true(gpu_peer_gbps(device[1], device[0]) == expected);
    assert_int_equal(copies, 2 * once);
    assert_int_equal(pools, 2);
    assert_true(gpu_peer_gbps(device[0], device[0]) == 0);
    assert_both_are_well();
}

struct question {
    int reader;
    double rate;
};

static void *ask(void *argument)
{
    struct question *q = argument;
    q->rate = gpu_peer_gbps(device[q->reader], device[!q->reader]);
    return NULL;
}

static void threads_ask_at_once(void **state)
{
    struct question question[4];
    pthread_t thread[4];
    (void)state;
    count_calls();
    for (int i = 0; i < 4; i++) {
        question[i] = (struct question){.reader = i % 2};
        assert_int_equal(pthread_create(&thread[i], NULL, ask, &question[i]), 0);
    }
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_join(thread[i], NULL), 0);
    for (int i = 0; i < 4; i++)
        assert_true(question[i].rate == expected);
    assert_int_equal(pools, 2);
    assert_both_are_well();
}

/* The pool of one that has been started again is another one. */
static void a_new_device_is_measured_anew(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        assert_true(gpu_peer_gbps(device[0], device[1]) == expected);
        gpu_stop(device[i]);
        assert_true(start_one(i));
        count_calls();
        assert_true(gpu_peer_gbps(device[0], device[1]) == expected);
        assert_true(copies > 1 && pools == 1);
    }
    assert_both_are_well();
}

/* ---- No rate ---- */

static CUresult is_out_of_reach(int *can, CUdevice reader, CUdevice peer)
{
    (void)reader;
    (void)peer;
    *can = 0;
    return CUDA_SUCCESS;
}

static CUresult has_no_pools(int *value, CUdevice_attribute which, CUdevice number)
{
    *value = 0;
    return which == CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED
               ? CUDA_SUCCESS
               : real.cuDeviceGetAttribute_p(value, which, number);
}

/* As drivers have done (lent_memory.h). */
static CUresult copy_nothing(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream)
{
    (void)to;
    (void)from;
    (void)bytes;
    (void)stream;
    copies++;
    return CUDA_SUCCESS;
}

static CUresult copy_all_but_the_end(CUdeviceptr to, CUdeviceptr from, size_t bytes,
                                     CUstream stream)
{
    copies++;
    return real.cuMemcpyDtoDAsync_p(to, from, bytes - 1, stream);
}

static void assert_no_rate(int copied)
{
    copies = 0;
    assert_true(gpu_peer_gbps(device[0], device[1]) == 0);
    cuda_api = real; /* it is remembered */
    assert_true(gpu_peer_gbps(device[0], device[1]) == 0);
    assert_int_equal(copies, copied);
    assert_both_are_well();
}

static void out_of_reach(void **state)
{
    (void)state;
    CUDA(cuDeviceCanAccessPeer) = is_out_of_reach;
    assert_no_rate(0);
}

static void without_pools(void **state)
{
    (void)state;
    CUDA(cuDeviceGetAttribute) = has_no_pools;
    assert_no_rate(0);
}

static void an_old_driver(void **state)
{
    (void)state;
    CUDA(cuMemPoolSetAccess) = NULL;
    assert_no_rate(0);
}

static void without_a_clock(void **state)
{
    (void)state;
    CUDA(cuEventElapsedTime) = NULL;
    assert_no_rate(0);
}

static CUresult pin_nothing(void **memory, size_t bytes, unsigned flags)
{
    (void)memory;
    (void)bytes;
    (void)flags;
    return CUDA_ERROR_UNKNOWN;
}

static void without_pinned_memory(void **state)
{
    (void)state;
    count_calls();
    CUDA(cuMemHostAlloc) = pin_nothing;
    assert_no_rate(0);
}

static CUresult make_one_pool(CUmemoryPool *pool, const CUmemPoolProps *properties)
{
    return pools++ == 0 ? real.cuMemPoolCreate_p(pool, properties) : CUDA_ERROR_UNKNOWN;
}

/* The owner has a pool, and the reader cannot have one. */
static void without_the_reader_s_pool(void **state)
{
    (void)state;
    count_calls();
    CUDA(cuMemPoolCreate) = make_one_pool;
    assert_no_rate(0);
    assert_true(pools >= 2);
}

static CUresult have_room_for_one_pool(CUmemoryPool *pool, const CUmemPoolProps *properties)
{
    return pools++ == 0 ? real.cuMemPoolCreate_p(pool, properties) : CUDA_ERROR_OUT_OF_MEMORY;
}

/* Then that is measured again later. */
static void without_memory_for_the_reader_s_pool(void **state)
{
    (void)state;
    count_calls();
    CUDA(cuMemPoolCreate) = have_room_for_one_pool;
    copies = 0;
    assert_true(gpu_peer_gbps(device[0], device[1]) == 0);
    assert_true(pools >= 2);
    assert_int_equal(copies, 0);
    assert_both_are_well();
}

/* CUDA does not work there. */
static void in_a_fork_s_child(void **state)
{
    int status;
    (void)state;
    assert_true(gpu_peer_gbps(device[0], device[1]) == expected);
    const pid_t child = fork();
    if (child == 0) {
        gpu_fork_child();
        _exit(gpu_peer_gbps(device[0], device[1]) == 0 ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static CUresult end_the_driver(CUevent *event, unsigned flags)
{
    struct failure outer;
    failure_begin(&outer);
    gpu_check_final(CUDA_ERROR_DEINITIALIZED, "cuEventQuery"); /* as in another thread */
    failure_end(&outer);
    return real.cuEventCreate_p(event, flags);
}

/* exit() waits for us: no further copy begins. */
static void as_the_program_ends(void **state)
{
    (void)state;
    count_calls();
    CUDA(cuEventCreate) = end_the_driver;
    assert_true(gpu_peer_gbps(device[0], device[1]) == 0);
    assert_int_equal(copies, 0);
}

static void nothing_arrives(void **state)
{
    (void)state;
    CUDA(cuMemcpyDtoDAsync) = copy_nothing;
    assert_no_rate(1);
}

static void not_all_arrives(void **state)
{
    (void)state;
    CUDA(cuMemcpyDtoDAsync) = copy_all_but_the_end;
    assert_no_rate(1);
}

/* ---- Blocks ---- */

static CUdeviceptr take(int i, int64_t bytes, bool lent)
{
    struct gpu_scope scope;
    CUdeviceptr block = 0;
    bool grew;
    assert_int_equal(gpu_enter(own[i], &scope), GPU_OK);
    const enum gpu_status status = (lent ? pool_get_lent : pool_get)(own[i], bytes, &block, &grew);
    gpu_leave(&scope);
    assert_true(status == (block ? GPU_OK : GPU_NO_MEMORY));
    return block;
}

static int64_t free_memory(int i, bool trimmed)
{
    struct gpu_scope scope;
    size_t left = 0, all;
    assert_int_equal(gpu_enter(own[i], &scope), GPU_OK);
    if (trimmed)
        pool_trim(own[i]);
    assert_int_equal(CUDA(cuMemGetInfo)(&left, &all), CUDA_SUCCESS);
    gpu_leave(&scope);
    return (int64_t)left;
}

static void they_count_and_go_back(void **state)
{
    (void)state;
    const int64_t before = free_memory(0, true);
    const CUdeviceptr lent = take(0, LARGE, true);
    assert_int_equal(free_memory(0, true), before - LARGE);
    assert_true(own[0]->pool.total == LARGE && take(0, BUDGET - LARGE + 1, false) == 0 &&
                take(0, BUDGET - LARGE + 1, true) == 0);
    pool_put(own[0], lent);
    assert_true(own[0]->pool.total == LARGE && own[0]->pool.idle == LARGE);
    const CUdeviceptr other = take(0, BUDGET, false); /* it makes room */
    assert_true(other != 0);
    pool_put(own[0], other);
    assert_int_equal(free_memory(0, true), before);
    assert_int_equal(own[0]->pool.total, 0);
}

static void a_call_takes_them(void **state)
{
    struct gpu_host host = {.original = refuse};
    struct gpu_work work = {.host = &host, .device = device[0]};
    struct gpu_scope scope;
    gpu_address lent = 0, other = 0, refused = 0;
    (void)state;
    assert_int_equal(gpu_enter(own[0], &scope), GPU_OK);
    assert_int_equal(stream_ctx_acquire(own[0], true, &work.ctx), GPU_OK);
    assert_int_equal(gpu_memory(&work)->take_lent(&work, SMALL, &lent), GPU_OK);
    assert_int_equal(gpu_memory(&work)->take(&work, SMALL, &other), GPU_OK);
    assert_int_equal(gpu_memory(&work)->take_lent(&work, BUDGET, &refused), GPU_NO_MEMORY);
    assert_true(own[0]->pool.block[0].lent && !own[0]->pool.block[1].lent);
    assert_int_equal(gpu_work_give_back(&work), GPU_OK);
    assert_true(own[0]->pool.idle == 2 * SMALL && work.blocks == 0);
    stream_ctx_release(work.ctx, false);
    gpu_leave(&scope);
}

static CUresult refuse_memory(CUdeviceptr *block, size_t bytes, CUmemoryPool pool, CUstream stream)
{
    (void)block;
    (void)bytes;
    (void)pool;
    (void)stream;
    return CUDA_ERROR_NOT_PERMITTED;
}

/* From then on: a call need not try again. */
static void a_device_without_them_says_so(void **state)
{
    struct gpu_scope scope;
    CUdeviceptr block;
    bool grew;
    (void)state;
    CUDA(cuMemAllocFromPoolAsync) = refuse_memory;
    assert_int_equal(gpu_enter(own[0], &scope), GPU_OK);
    assert_int_equal(pool_get_lent(own[0], SMALL, &block, &grew), GPU_UNSUPPORTED);
    cuda_api = real;
    assert_int_equal(pool_get_lent(own[0], SMALL, &block, &grew), GPU_UNSUPPORTED);
    assert_int_equal(own[0]->pool.total, 0);
    gpu_leave(&scope);
    assert_both_are_well();
}

static CUresult fail_to_wait(CUstream stream)
{
    (void)stream;
    CUDA(cuStreamSynchronize) = real.cuStreamSynchronize_p;
    return CUDA_ERROR_UNKNOWN;
}

static void a_device_that_does_not_answer_has_failed(void **state)
{
    struct gpu_scope scope;
    CUdeviceptr block = 0;
    bool grew;
    (void)state;
    const int64_t before = free_memory(0, true);
    CUDA(cuStreamSynchronize) = fail_to_wait;
    assert_int_equal(gpu_enter(own[0], &scope), GPU_OK);
    assert_int_equal(pool_get_lent(own[0], SMALL, &block, &grew), GPU_ERROR);
    assert_int_equal(own[0]->pool.total, 0);
    assert_int_equal(pool_get_lent(own[0], SMALL, &block, &grew), GPU_OK);
    gpu_leave(&scope);
    pool_put(own[0], block);
    assert_int_equal(free_memory(0, true), before);
}

/* Short of memory is not for good. */
static void a_full_device_is_asked_again(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        const CUdeviceptr all = take(i, BUDGET, false);
        assert_true(all && gpu_peer_gbps(device[0], device[1]) == 0);
        pool_put(own[i], all);
        assert_true(gpu_peer_gbps(device[0], device[1]) == 0); /* not each time */
        own[0]->peer[1].again = 1;
    }
    assert_true(gpu_peer_gbps(device[0], device[1]) == expected);
    assert_both_are_well();
}

/* ---- A pool by itself ---- */

static enum gpu_status status_of_taking(struct lent_memory *lending)
{
    CUdeviceptr memory = 0;
    const enum gpu_status status = lent_memory_take(lending, SMALL, &memory);
    assert_true((status == GPU_OK) == (memory != 0));
    if (memory)
        lent_memory_give_back(lending, memory);
    return status;
}

/* Each is younger than others: without one of them there is no such memory, and no call that could
 * fail. */
static void any_function_that_is_missing(void **state)
{
    static const size_t functions[] = {offsetof(struct cuda_api, cuDeviceCanAccessPeer_p),
                                       offsetof(struct cuda_api, cuMemPoolCreate_p),
                                       offsetof(struct cuda_api, cuMemPoolDestroy_p),
                                       offsetof(struct cuda_api, cuMemPoolSetAccess_p),
                                       offsetof(struct cuda_api, cuMemPoolTrimTo_p),
                                       offsetof(struct cuda_api, cuMemAllocFromPoolAsync_p),
                                       offsetof(struct cuda_api, cuMemFreeAsync_p),
                                       offsetof(struct cuda_api, cuMemcpyDtoDAsync_p)};
    struct gpu_scope scope;
    (void)state;
    count_calls();
    const struct cuda_api all = cuda_api;
    assert_int_equal(gpu_enter(own[0], &scope), GPU_OK);
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        struct lent_memory lending = {0};
        lent_memory_begin(&lending, own[0]->number);
        memset((char *)&cuda_api + functions[i], 0, sizeof(void *));
        assert_int_equal(status_of_taking(&lending), GPU_UNSUPPORTED);
        assert_int_equal(lent_memory_open_to(&lending, own[1]->number), GPU_UNSUPPORTED);
        cuda_api = all;
        lent_memory_close(&lending);
        lent_memory_end(&lending);
    }
    gpu_leave(&scope);
    assert_int_equal(pools, 0);
}

static CUresult no_room_for_a_stream(CUstream *stream, unsigned flags)
{
    (void)stream;
    (void)flags;
    return CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult no_room_for_a_pool(CUmemoryPool *pool, const CUmemPoolProps *properties)
{
    (void)pool;
    (void)properties;
    return CUDA_ERROR_OUT_OF_MEMORY;
}

/* Short of memory for a stream, then for the pool, then for none. At each point it can be closed,
 * which leaves nothing behind. */
static void a_pool_is_made_step_by_step(void **state)
{
    struct gpu_scope scope;
    (void)state;
    assert_int_equal(gpu_enter(own[0], &scope), GPU_OK);
    for (int steps = 1; steps <= 3; steps++) {
        struct lent_memory lending = {0};
        lent_memory_begin(&lending, own[0]->number);
        CUDA(cuStreamCreate) = no_room_for_a_stream;
        assert_int_equal(status_of_taking(&lending), GPU_NO_MEMORY);
        assert_true(!lending.stream && !lending.pool);
        cuda_api = real;
        CUDA(cuMemPoolCreate) = no_room_for_a_pool;
        if (steps > 1)
            assert_int_equal(status_of_taking(&lending), GPU_NO_MEMORY);
        assert_true(!lending.stream == (steps == 1) && !lending.pool);
        cuda_api = real;
        if (steps > 2) {
            const CUstream stream = lending.stream;
            assert_int_equal(status_of_taking(&lending), GPU_OK);
            assert_true(lending.stream == stream && lending.pool);
        }
        lent_memory_close(&lending);
        assert_true(!lending.stream && !lending.pool);
        lent_memory_end(&lending);
    }
    gpu_leave(&scope);
    assert_both_are_well();
}

/* ---- For test_lent_memory.py ---- */

static int run(const char *until)
{
    if (!start_one(0) || !start_one(1))
        return 2;
    if (strcmp(until, "start") == 0)
        return 0;
    for (int i = 0; i < 2; i++)
        printf("rate %g\n", gpu_peer_gbps(device[i], device[!i]));
    if (strcmp(until, "rates") == 0)
        return 0;
    for (int i = 0; i < 2; i++)
        printf("%s\n", gpu_has_failure(device[i]) ? gpu_failure(device[i])
                       : computes(device[i])      ? "well"
                                                  : "wrong");
    gpu_stop(device[0]);
    gpu_stop(device[1]);
    return 0;
}

int main(int count, char **arguments)
{
    if (count == 2)
        return run(arguments[1]);
    /* The library, which is not loaded yet, reads them as it comes. */
    setenv("TESTGPU_DEVICES", "2", 1);
    setenv("TESTGPU_PEER_GBPS", "0", 1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_rate_is_measured_once, begin, end),
        cmocka_unit_test_setup_teardown(rates_are_rounded, begin, end),
        cmocka_unit_test_setup_teardown(threads_ask_at_once, begin, end),
        cmocka_unit_test_setup_teardown(a_new_device_is_measured_anew, begin, end),
        cmocka_unit_test_setup_teardown(out_of_reach, begin, end),
        cmocka_unit_test_setup_teardown(without_pools, begin, end),
        cmocka_unit_test_setup_teardown(an_old_driver, begin, end),
        cmocka_unit_test_setup_teardown(nothing_arrives, begin, end),
        cmocka_unit_test_setup_teardown(without_a_clock, begin, end),
        cmocka_unit_test_setup_teardown(without_pinned_memory, begin, end),
        cmocka_unit_test_setup_teardown(without_the_reader_s_pool, begin, end),
        cmocka_unit_test_setup_teardown(without_memory_for_the_reader_s_pool, begin, end),
        cmocka_unit_test_setup_teardown(in_a_fork_s_child, begin, end),
        cmocka_unit_test_setup_teardown(not_all_arrives, begin, end),
        cmocka_unit_test_setup_teardown(they_count_and_go_back, begin, end),
        cmocka_unit_test_setup_teardown(a_call_takes_them, begin, end),
        cmocka_unit_test_setup_teardown(a_device_without_them_says_so, begin, end),
        cmocka_unit_test_setup_teardown(a_device_that_does_not_answer_has_failed, begin, end),
        cmocka_unit_test_setup_teardown(a_full_device_is_asked_again, begin, end),
        cmocka_unit_test_setup_teardown(any_function_that_is_missing, begin, end),
        cmocka_unit_test_setup_teardown(a_pool_is_made_step_by_step, begin, end),
        cmocka_unit_test_setup_teardown(as_the_program_ends, begin, end), /* the last */
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
