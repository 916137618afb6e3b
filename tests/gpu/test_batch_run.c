/*
 * Batches on the device: products as plain loops compute them, to the last bit, all at once, in
 * groups, or one after the other; after a failure, the finished columns and the original's rest are
 * the same result, and the status says whether the device or its memory was at fault.
 */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "call/shape.h"
#include "ops/typical.h"
#include "tests/lib/device_work.h"
#include "tests/lib/rates.h"
#include "tests/lib/routine.h"
#include "tests/lib/some_copies.h"

static const struct schedule_rates balanced = RATES(2, 2, 120, 16, 1e-4, 1e-4, 1e-4);
/* Copies and kernels that take so long by themselves that there are few of them. */
static const struct schedule_rates slow_to_begin = RATES(2, 2, 120, 16, 100, 100, 100);

/* ---- Plain loops ---- */

static double *element(const struct accel_span *x, int64_t product, int64_t i, int64_t j)
{
    return (double *)accel_matrix_of(x, product) + i + j * x->ld;
}

/* C := alpha A B + beta C of each product of a call, which may be a part of a batch. */
static void multiply(const struct accel_call *c)
{
    const struct accel_span *a = &c->span[ACCEL_a], *b = &c->span[ACCEL_b], *to = &c->span[ACCEL_c];
    const double alpha = c->blas.scalar[ACCEL_alpha].re, beta = c->blas.scalar[ACCEL_beta].re;
    for (int64_t p = 0; p < c->batch; p++)
        for (int64_t j = 0; j < to->cols; j++)
            for (int64_t i = 0; i < to->rows; i++) {
                double sum = 0;
                for (int64_t k = 0; k < a->cols; k++)
                    sum += *element(a, p, i, k) * *element(b, p, k, j);
                *element(to, p, i, j) = alpha * sum + beta * *element(to, p, i, j);
            }
}

/* ---- Batches ---- */

/* With memory of its own. The result has memory before, between and behind its matrices, all of
 * which is compared. */
struct batch {
    struct accel_call call;
    struct gpu_host host;
    double *memory[ACCEL_SPANS], *first, *expected; /* C's, before and after */
    void **array[ACCEL_SPANS];
    int64_t count[ACCEL_SPANS]; /* of doubles */
    int originals;
    int64_t written; /* elements of C by the original */
};

static bool by_plain_loops(void *context, const struct accel_call *part)
{
    struct batch *b = context;
    const struct accel_span *c = &part->span[ACCEL_c];
    b->originals++;
    b->written += part->batch * c->rows * c->cols;
    assert_true(c->rows > 0 && c->cols > 0 && part->batch > 0);
    multiply(part);
    return true;
}

/* gap: elements between columns, and between matrices. */
static void make(struct batch *b, bool pointers, int64_t products, int64_t m, int64_t n, int64_t k,
                 int64_t gap)
{
    const int64_t size[ACCEL_DIMENSIONS] = {m, n, k, 0};
    memset(b, 0, sizeof *b);
    shape_typical(&b->call, routine(pointers ? "dgemm_batch" : "dgemm_batch_strided"), size);
    b->call.batch = products;
    b->call.blas.scalar[ACCEL_alpha].re = 2;
    b->call.blas.scalar[ACCEL_beta].re = 3;
    b->host = (struct gpu_host){.original = by_plain_loops, .context = b, .rates = balanced};
    for (int i = ACCEL_a; i <= ACCEL_c; i++) {
        struct accel_span *x = &b->call.span[i];
        x->ld = x->rows + gap;
        const int64_t stride = x->ld * x->cols + gap;
        b->count[i] = stride * products + gap;
        b->memory[i] = malloc((size_t)b->count[i] * sizeof(double));
        b->array[i] = malloc((size_t)products * sizeof(void *));
        assert_true(b->memory[i] && b->array[i]);
        for (int64_t e = 0; e < b->count[i]; e++)
            b->memory[i][e] = (double)(rand() % 5 - 2);
        for (int64_t p = 0; p < products; p++)
            b->array[i][p] = b->memory[i] + gap + p * stride;
        x->ptr = b->array[i][0];
        x->stride = pointers ? 0 : stride;
        x->array = pointers ? b->array[i] : NULL;
    }
    const size_t bytes = (size_t)b->count[ACCEL_c] * sizeof(double);
    b->first = malloc(bytes);
    b->expected = malloc(bytes);
    assert_true(b->first && b->expected);
    memcpy(b->first, b->memory[ACCEL_c], bytes);
    multiply(&b->call);
    memcpy(b->expected, b->memory[ACCEL_c], bytes);
}

static void end(struct batch *b)
{
    for (int i = ACCEL_a; i <= ACCEL_c; i++) {
        free(b->memory[i]);
        free(b->array[i]);
    }
    free(b->first);
    free(b->expected);
}

static enum gpu_status run(struct batch *b)
{
    memcpy(b->memory[ACCEL_c], b->first, (size_t)b->count[ACCEL_c] * sizeof(double));
    b->originals = 0;
    b->written = b->host.up_bytes = b->host.down_bytes = 0;
    return gpu_run(&device->common, &b->call, &b->host);
}

/* C is as it was, or as expected. */
static void assert_result(const struct batch *b, bool computed)
{
    assert_memory_equal(b->memory[ACCEL_c], computed ? b->expected : b->first,
                        (size_t)b->count[ACCEL_c] * sizeof(double));
}

static void succeeds(struct batch *b)
{
    assert_int_equal(run(b), GPU_OK);
    assert_result(b, true);
    assert_int_equal(b->originals, 0);
}

/* ---- As plain loops ---- */

static const struct {
    int64_t products, m, n, k;
} shapes[] = {{2, 1, 1, 1}, {3, 7, 5, 9}, {40, 33, 17, 20}, {5, 64, 64, 64}, {4, 72, 64, 68}};
enum { SHAPES = sizeof shapes / sizeof *shapes };

static void make_shape(struct batch *b, int which, int way)
{
    make(b, way & 1, shapes[which].products, shapes[which].m, shapes[which].n, shapes[which].k,
         way & 2 ? 3 : 0);
}

static void as_plain_loops(void **state)
{
    struct batch b;
    (void)state;
    for (int which = 0; which < SHAPES; which++)
        for (int way = 0; way < 4; way++) {
            make_shape(&b, which, way);
            succeeds(&b);
            assert_int_equal(b.host.down_bytes,
                             shapes[which].products * accel_bytes(&b.call.span[ACCEL_c]));
            end(&b);
        }
}

/* Memory for some of the products, or for less than one. */
static void with_little_memory(void **state)
{
    const int64_t budget = device->budget;
    struct batch b;
    (void)state;
    for (int which = 2; which < SHAPES; which++)
        for (int way = 0; way < 4; way++) {
            gpu_trim(&device->common);
            device->budget = which == 2 ? 128 << 10 : 64 << 10;
            make_shape(&b, which, way);
            succeeds(&b);
            end(&b);
        }
    device->budget = budget;
}

/* ---- After a failure ---- */

/* More copies up, or down, go well each time, until all do: then the call has done nothing, or the
 * original has done the rest. all: with each number of copies. */
static void fail_in_turn(struct batch *b, bool down, bool all, int *finished)
{
    enum { ALL = 1 << 20 };
    const struct accel_span *c = &b->call.span[ACCEL_c];
    enum gpu_status status = GPU_ERROR;
    for (int copies = 0; status != GPU_OK; copies += all ? 1 : 1 + copies / 2) {
        allow_copies(down ? ALL : copies, down ? copies : ALL);
        status = run(b);
        cuda_api = real;
        assert_true(status == GPU_OK || status == GPU_NO_MEMORY || status == GPU_SHORT_ELSE);
        assert_true((b->originals > 0) == (status == GPU_SHORT_ELSE));
        assert_true(b->written <= b->call.batch * c->rows * c->cols);
        assert_result(b, status != GPU_NO_MEMORY);
        *finished += status == GPU_SHORT_ELSE;
    }
}

static void the_original_does_the_rest(void **state)
{
    const int64_t budget = device->budget;
    int finished = 0;
    struct batch b;
    (void)state;
    for (int which = 2; which < SHAPES; which++)
        for (int way = 0; way < 4; way++) {
            gpu_trim(&device->common);
            device->budget = which == 2 ? 128 << 10 : 64 << 10;
            make_shape(&b, which, way);
            fail_in_turn(&b, false, which == 2, &finished);
            fail_in_turn(&b, true, which == 2, &finished);
            end(&b);
        }
    device->budget = budget;
    assert_true(finished > 30);
}

/* A matrix comes down in several chunks of whole columns: a part of it has come. */
static void a_part_of_a_product_has_come(void **state)
{
    (void)state;
    for (int gap = 0; gap < 4; gap += 3) {
        int finished = 0;
        struct batch b;
        make(&b, gap == 0, 3, 9000, 16, 1, gap);
        fail_in_turn(&b, true, true, &finished);
        assert_true(finished > 1);
        end(&b);
    }
}

/* Columns are longer than a buffer, and there are more chunks than buffers: a part of a column has
 * come. */
static void a_part_of_a_column_has_come(void **state)
{
    int finished = 0;
    struct batch b;
    (void)state;
    make(&b, true, 4, PINNED_BUFFER_BYTES / 8 + 1, 4, 1, 0);
    b.host.rates = slow_to_begin;
    fail_in_turn(&b, true, false, &finished);
    assert_true(finished > 0);
    end(&b);
}

/* ---- A library that fails ---- */

static int kernels_left;
static __typeof__(CUDA(cublasDgemm_v2_64)) multiply_one;
static __typeof__(CUDA(cublasDgemmStridedBatched_64)) multiply_batch;

static cublasStatus_t one_of_some(cublasHandle_t handle, cublasOperation_t ta, cublasOperation_t tb,
                                  int64_t m, int64_t n, int64_t k, const double *alpha,
                                  const double *a, int64_t lda, const double *b, int64_t ldb,
                                  const double *beta, double *c, int64_t ldc)
{
    return kernels_left-- > 0
               ? multiply_one(handle, ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc)
               : CUBLAS_STATUS_NOT_INITIALIZED;
}

static cublasStatus_t batch_of_some(cublasHandle_t handle, cublasOperation_t ta,
                                    cublasOperation_t tb, int64_t m, int64_t n, int64_t k,
                                    const double *alpha, const double *a, int64_t lda,
                                    long long stride_a, const double *b, int64_t ldb,
                                    long long stride_b, const double *beta, double *c, int64_t ldc,
                                    long long stride_c, int64_t count)
{
    return kernels_left-- > 0 ? multiply_batch(handle, ta, tb, m, n, k, alpha, a, lda, stride_a, b,
                                               ldb, stride_b, beta, c, ldc, stride_c, count)
                              : CUBLAS_STATUS_NOT_INITIALIZED;
}

/* What was finished before stays; the library is to blame, as where nothing was. */
static void a_library_fails_on_the_way(void **state)
{
    const int64_t budget = device->budget;
    int finished[2] = {0}, begun[2] = {0};
    (void)state;
    multiply_one = real.cublasDgemm_v2_64_p;
    multiply_batch = real.cublasDgemmStridedBatched_64_p;
    for (int alone = 0; alone < 2; alone++) {
        struct batch b;
        enum gpu_status status = GPU_ERROR;
        gpu_trim(&device->common);
        device->budget = alone ? 64 << 10 : 128 << 10;
        make_shape(&b, alone ? SHAPES - 1 : 2, 0);
        for (int kernels = 0; status != GPU_OK; kernels++) {
            CUDA(cublasDgemm_v2_64) = one_of_some;
            CUDA(cublasDgemmStridedBatched_64) = batch_of_some;
            kernels_left = kernels;
            status = run(&b);
            cuda_api = real;
            assert_true(status == GPU_OK || status == GPU_ERROR || status == GPU_FINISHED_ELSE);
            assert_true((b.originals > 0) == (status == GPU_FINISHED_ELSE));
            assert_result(&b, status != GPU_ERROR);
            if (status != GPU_OK)
                assert_int_equal(b.host.blame, GPU_BLAME_ROUTINE);
            finished[alone] += status == GPU_FINISHED_ELSE;
            begun[alone] += status == GPU_ERROR;
        }
        end(&b);
    }
    device->budget = budget;
    for (int alone = 0; alone < 2; alone++)
        assert_true(finished[alone] > 0 && begun[alone] > 0);
}

int main(void)
{
    setenv("TESTGPU_DELAY_US", "10", 0); /* the library, which is not loaded yet, reads it */
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin_work, end_work)
    const struct CMUnitTest tests[] = {
        TEST(as_plain_loops),
        TEST(with_little_memory),
        TEST(the_original_does_the_rest),
        TEST(a_part_of_a_product_has_come),
        TEST(a_part_of_a_column_has_come),
        TEST(a_library_fails_on_the_way),
    };
    return cmocka_run_group_tests(tests, start_work, stop_device);
}
