/*
 * Measurements of a device that fails meanwhile, at any call, or that lacks memory: they say so and
 * leave no rates, and it is told which function failed. And of devices that are very slow or very
 * fast. On the test GPU, which moves no data here, by a clock of the test's own.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#include "gpu/cuda/device.h"
#include "gpu/pack/pack.h"
#include "ops/op.h"
#include "ops/typical.h"
#include "tests/lib/devices.h"

static struct gpu_device *device;
static struct cuda_api driver; /* as it is */

/* ---- The clock ---- */

static atomic_bool is_own_clock;
static _Atomic uint64_t own_ns, read_ns; /* what it shows; by how much each look moves it on */

int __real_clock_gettime(clockid_t clock, struct timespec *now);
int __wrap_clock_gettime(clockid_t clock, struct timespec *now);

int __wrap_clock_gettime(clockid_t clock, struct timespec *now)
{
    if (!is_own_clock || clock != CLOCK_MONOTONIC)
        return __real_clock_gettime(clock, now);
    const uint64_t by = read_ns, ns = atomic_fetch_add(&own_ns, by) + by;
    now->tv_sec = (time_t)(ns / 1000000000);
    now->tv_nsec = (long)(ns % 1000000000);
    return 0;
}

/* ---- The host's memory ---- */

enum { LARGE = 100000 };
static atomic_bool host_is_full;

void *__real_malloc(size_t bytes);
void *__wrap_malloc(size_t bytes);
void *__real_calloc(size_t count, size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);

void *__wrap_malloc(size_t bytes)
{
    return host_is_full && bytes > LARGE ? NULL : __real_malloc(bytes);
}

void *__wrap_calloc(size_t count, size_t bytes)
{
    return host_is_full && count * bytes > LARGE ? NULL : __real_calloc(count, bytes);
}

/* What is copied does not count here. */
void __wrap_pack_from_host(char *packed, const struct host_rectangle *r,
                           const struct pack_chunk *chunk, int64_t ld);
void __wrap_pack_to_host(const struct host_rectangle *r, const struct pack_chunk *chunk,
                         const char *packed, int64_t ld);

void __wrap_pack_from_host(char *packed, const struct host_rectangle *r,
                           const struct pack_chunk *chunk, int64_t ld)
{
    (void)packed;
    (void)r;
    (void)chunk;
    (void)ld;
}

void __wrap_pack_to_host(const struct host_rectangle *r, const struct pack_chunk *chunk,
                         const char *packed, int64_t ld)
{
    (void)r;
    (void)chunk;
    (void)packed;
    (void)ld;
}

/* ---- Calls that take time, and fail from one on ---- */

enum kind { ENTER, STREAM, MEMORY, UP, DOWN, WAIT, PRODUCT, KINDS };
static const char *const names[KINDS] = {
    "cuCtxPushCurrent",  "cuStreamCreate",      "cuMemAlloc", "cuMemcpyHtoDAsync",
    "cuMemcpyDtoHAsync", "cuStreamSynchronize", "cublasDgemm"};
/* Their number, of copies their bytes; so many are right. How many copies there are depends on what
 * else the machine does. */
static _Atomic int64_t calls[KINDS], right[KINDS];
static double ns_for_each_product;

static bool fails_of(enum kind kind, int64_t amount)
{
    return atomic_fetch_add(&calls[kind], amount) >= right[kind];
}

static bool fails(enum kind kind)
{
    return fails_of(kind, 1);
}

static void spend(double ns)
{
    own_ns += (uint64_t)ns;
}

static CUresult enter(CUcontext context)
{
    return fails(ENTER) ? CUDA_ERROR_UNKNOWN : driver.cuCtxPushCurrent_p(context);
}

static CUresult make_stream(CUstream *stream, unsigned flags)
{
    return fails(STREAM) ? CUDA_ERROR_UNKNOWN : driver.cuStreamCreate_p(stream, flags);
}

static CUresult allocate(CUdeviceptr *block, size_t bytes)
{
    return fails(MEMORY) ? CUDA_ERROR_OUT_OF_MEMORY : driver.cuMemAlloc_p(block, bytes);
}

static CUresult up(CUdeviceptr to, const void *from, size_t bytes, CUstream stream)
{
    return fails_of(UP, (int64_t)bytes) ? CUDA_ERROR_UNKNOWN
                                        : driver.cuMemcpyHtoDAsync_p(to, from, bytes, stream);
}

static CUresult down(void *to, CUdeviceptr from, size_t bytes, CUstream stream)
{
    return fails_of(DOWN, (int64_t)bytes) ? CUDA_ERROR_UNKNOWN
                                          : driver.cuMemcpyDtoHAsync_p(to, from, bytes, stream);
}

static CUresult await(CUstream stream)
{
    const CUresult result = driver.cuStreamSynchronize_p(stream);
    return fails(WAIT) ? CUDA_ERROR_UNKNOWN : result;
}

static cublasStatus_t product(cublasHandle_t handle, cublasOperation_t transa,
                              cublasOperation_t transb, int64_t m, int64_t n, int64_t k,
                              const double *alpha, const double *a, int64_t lda, const double *b,
                              int64_t ldb, const double *beta, double *c, int64_t ldc)
{
    spend(ns_for_each_product * (double)m * (double)n * (double)k);
    return fails(PRODUCT) ? CUBLAS_STATUS_INVALID_VALUE
                          : driver.cublasDgemm_v2_64_p(handle, transa, transb, m, n, k, alpha, a,
                                                       lda, b, ldb, beta, c, ldc);
}

/* A new device, whose calls are right, by the own clock. */
static void begin_with_a_device(void)
{
    device = start_device(tested_gpu(), (struct gpu_config){.memory_share = 0.8});
    assert_non_null(device);
    driver = cuda_api;
    for (int i = 0; i < KINDS; i++) {
        calls[i] = 0;
        right[i] = INT64_MAX;
    }
    CUDA(cuCtxPushCurrent) = enter;
    CUDA(cuStreamCreate) = make_stream;
    CUDA(cuMemAlloc) = allocate;
    CUDA(cuMemcpyHtoDAsync) = up;
    CUDA(cuMemcpyDtoHAsync) = down;
    CUDA(cuStreamSynchronize) = await;
    CUDA(cublasDgemm_v2_64) = product;
    own_ns = 1000000000;
    is_own_clock = true;
}

static int begin(void **state)
{
    (void)state;
    read_ns = 0;
    ns_for_each_product = 0;
    begin_with_a_device();
    return 0;
}

static int end(void **state)
{
    (void)state;
    is_own_clock = false;
    host_is_full = false;
    cuda_api = driver;
    gpu_stop(device);
    return 0;
}

/* ---- Copies ---- */

static bool copies_are_measured(void)
{
    static const struct gpu_copy_rates none = {.up_gbps = -1, .down_gbps = -2};
    struct gpu_copy_rates rates = none;
    const bool measured = gpu_measure_copies(device, &rates);
    assert_true(measured || memcmp(&rates, &none, sizeof none) == 0);
    return measured;
}

/* What the device says of a failure, unless it lacks memory: that goes by. */
static void assert_told(enum kind kind)
{
    if (gpu_has_failure(device) != (kind != MEMORY) ||
        (kind != MEMORY && strncmp(gpu_failure(device), names[kind], strlen(names[kind])) != 0))
        fail_msg("%s fails: the device says %s", names[kind], gpu_failure(device));
}

/* Each kind of call fails from the first on; copies also while the chunks are chosen, while the
 * rates are measured, and short columns. */
static void copies_that_fail(void **state)
{
    static const double parts[] = {0, 0.02, 0.3, 0.9};
    int64_t all[KINDS];
    (void)state;
    read_ns = 1000000000; /* there is no time for more attempts than are needed */
    assert_true(copies_are_measured());
    assert_false(gpu_has_failure(device));
    for (int i = 0; i < KINDS; i++)
        all[i] = calls[i];
    for (enum kind kind = 0; kind < PRODUCT; kind++) {
        assert_true(all[kind] > 0);
        for (int i = 0; i < (kind == UP || kind == DOWN ? 4 : 1); i++) {
            end(NULL);
            begin_with_a_device();
            right[kind] = (int64_t)(parts[i] * (double)all[kind]);
            if (copies_are_measured())
                fail_msg("%s fails at %g", names[kind], parts[i]);
            assert_told(kind);
        }
    }
}

/* Where copies take little time there are more attempts, but not without end. */
static void copies_that_are_quick(void **state)
{
    (void)state;
    read_ns = 1000000000;
    assert_true(copies_are_measured());
    const int64_t least = calls[UP];
    calls[UP] = 0;
    read_ns = 1000000;
    assert_true(copies_are_measured());
    assert_true(calls[UP] > least && calls[UP] < 10 * least);
}

static void copies_without_memory_of_the_host(void **state)
{
    (void)state;
    host_is_full = true;
    assert_false(copies_are_measured());
    assert_false(gpu_has_failure(device));
    assert_int_equal(calls[STREAM], 0);
}

/* ---- Paces ---- */

static bool paces_are_measured(double limit_ms, struct block_paces *paces)
{
    struct accel_call call;
    const int64_t size[ACCEL_DIMENSIONS] = {PACE_MOST, PACE_MOST, PACE_MOST, 0};
    shape_typical(&call, accel_sample_of(ACCEL_SAMPLE_PRODUCT, ACCEL_FLOAT64), size);
    memset(paces, 1, sizeof *paces);
    const bool measured = gpu_measure_paces(device, &call, limit_ms, paces);
    for (int i = 0; i < PACES; i++)
        assert_true(measured ? (double)paces->of[i] >= PACE_SLOWEST : paces->of[i] == 0);
    return measured;
}

/* The library's own failure at one type is not the device's. */
static void paces_that_fail(void **state)
{
    struct block_paces paces;
    int64_t all[KINDS];
    (void)state;
    ns_for_each_product = 1e-5; /* 100 Tflop/s */
    assert_true(paces_are_measured(1e6, &paces));
    for (int i = 0; i < KINDS; i++)
        all[i] = calls[i];
    assert_true(all[PRODUCT] > 0 && all[MEMORY] > 0 && all[WAIT] > 0);
    for (enum kind kind = 0; kind < KINDS; kind++) {
        const int64_t points[] = {
            0, 1, 2, all[kind] / 20, all[kind] / 2, all[kind] - all[kind] / 10 - 1};
        for (size_t i = 0; i < sizeof points / sizeof *points; i++) {
            if (points[i] < 0 || points[i] >= all[kind])
                continue;
            end(NULL);
            begin_with_a_device();
            right[kind] = points[i];
            if (paces_are_measured(1e6, &paces))
                fail_msg("%s fails behind %d", names[kind], (int)points[i]);
            if (kind == PRODUCT)
                assert_false(gpu_has_failure(device));
            else
                assert_told(kind);
        }
    }
}

static void paces_without_memory_of_the_host(void **state)
{
    struct block_paces paces;
    (void)state;
    host_is_full = true;
    assert_false(paces_are_measured(1e6, &paces));
    assert_false(gpu_has_failure(device));
    assert_int_equal(calls[STREAM], 0);
}

/* Returns the multiply-adds of all sizes once. */
static double multiply_adds(void)
{
    double all = 0;
    for (int i = 0; i < PACES; i++)
        for (int k = 0; k < PACE_WIDTHS; k++)
            all += (double)pace_rows(i) * (double)pace_widths[k] * PACE_DEPTH;
    return all;
}

/* A device that is far too slow: it is not kept busy for as long as it takes to find that out
 * well. */
static void a_device_that_is_far_too_slow(void **state)
{
    struct block_paces paces;
    (void)state;
    ns_for_each_product = 1e3;
    assert_false(paces_are_measured(100, &paces));
    assert_false(gpu_has_failure(device));
    assert_int_equal(calls[PRODUCT], 2); /* the first one may have loaded the kernel */
}

/* There is time for the least number of rounds, and for no more. */
static void a_device_that_is_slow(void **state)
{
    struct block_paces paces;
    (void)state;
    ns_for_each_product = 1e-3;
    const double round_ms = multiply_adds() * ns_for_each_product * 1e-6;
    assert_true(paces_are_measured(3.1 * round_ms, &paces));
    const double spent_ms = (double)own_ns * 1e-6 - 1000;
    assert_true(spent_ms > 3 * round_ms && spent_ms < 4.5 * round_ms);
}

/* One whose products the clock does not see: rows of them have an end, and the paces are those of a
 * device whose products take no time at all. */
static void a_device_without_time(void **state)
{
    struct block_paces paces;
    (void)state;
    assert_false(paces_are_measured(100, &paces));
    assert_false(gpu_has_failure(device));
}

/* So many products are in a row that a clock tells their time, but not more and more of them. */
static void a_device_that_is_very_fast(void **state)
{
    struct block_paces paces;
    (void)state;
    ns_for_each_product = 1e-7;
    assert_true(paces_are_measured(100, &paces));
    assert_true(calls[PRODUCT] < PACES * PACE_WIDTHS * 150);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(copies_that_fail, begin, end),
        cmocka_unit_test_setup_teardown(copies_that_are_quick, begin, end),
        cmocka_unit_test_setup_teardown(copies_without_memory_of_the_host, begin, end),
        cmocka_unit_test_setup_teardown(paces_that_fail, begin, end),
        cmocka_unit_test_setup_teardown(paces_without_memory_of_the_host, begin, end),
        cmocka_unit_test_setup_teardown(a_device_that_is_far_too_slow, begin, end),
        cmocka_unit_test_setup_teardown(a_device_that_is_slow, begin, end),
        cmocka_unit_test_setup_teardown(a_device_without_time, begin, end),
        cmocka_unit_test_setup_teardown(a_device_that_is_very_fast, begin, end),
    };
    if (setenv("TESTGPU_DATA", "0", 1) != 0 || setenv("TESTGPU_DELAY_US", "0", 1) != 0)
        return 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
