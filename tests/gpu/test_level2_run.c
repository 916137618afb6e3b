/*
 * Level 2 on the device: each operation as a plain loop computes it, to the last bit, with its
 * matrix as a whole and in strips; after a failure, the finished strips and the original's rest
 * are the same result; a matrix that stays on the device is known by what it has now.
 */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "call/shape.h"
#include "gpu/cache/dirty_tracking.h"
#include "ops/typical.h"
#include "tests/lib/device_work.h"
#include "tests/lib/some_copies.h"
#include "tests/lib/watches.h"

/* ---- Plain loops ---- */

static double *at(const struct accel_span *a, int64_t i, int64_t j)
{
    return (double *)a->ptr + i + j * a->ld;
}

/* Element i of a vector: of a negative increment, the last one is the first in memory. */
static double *of(const struct accel_span *x, int64_t i)
{
    return (double *)x->ptr + (x->inc > 0 ? i * x->inc : (i - x->cols + 1) * x->inc);
}

/* Element (i, j) of the operator that the call reads A as. */
static double read_as(const struct accel_call *of_call, int64_t i, int64_t j)
{
    const struct accel_span *a = &of_call->span[ACCEL_a];
    const bool lower = of_call->blas.flag[ACCEL_uplo] == 'L';
    const bool is_stored = lower ? i >= j : i <= j;
    if (of_call->routine->name[1] == 's')
        return is_stored ? *at(a, i, j) : *at(a, j, i);
    if (of_call->routine->name[1] == 'g')
        return *at(a, i, j);
    if (i == j && of_call->blas.flag[ACCEL_diag] == 'U')
        return 1;
    return is_stored ? *at(a, i, j) : 0;
}

static double op_a(const struct accel_call *of_call, int64_t i, int64_t j)
{
    const bool across = of_call->blas.flag[ACCEL_trans] != 'T';
    return across ? read_as(of_call, i, j) : read_as(of_call, j, i);
}

/* y := alpha op(A) x + beta y */
static void multiply(const struct accel_call *c)
{
    const struct accel_span *x = &c->span[ACCEL_x], *y = &c->span[ACCEL_y];
    const double alpha = c->blas.scalar[ACCEL_alpha].re, beta = c->blas.scalar[ACCEL_beta].re;
    for (int64_t i = 0; i < y->cols; i++) {
        double sum = 0;
        for (int64_t j = 0; j < x->cols; j++)
            sum += op_a(c, i, j) * *of(x, j);
        *of(y, i) = alpha * sum + (beta == 0 ? 0 : beta * *of(y, i));
    }
}

/* A := A + alpha x y', of its triangle with `uplo`; twice, with x and y exchanged. */
static void update(const struct accel_call *c, bool triangle, bool twice)
{
    const struct accel_span *a = &c->span[ACCEL_a], *x = &c->span[ACCEL_x];
    const struct accel_span *y = c->span[ACCEL_y].ptr ? &c->span[ACCEL_y] : x;
    const bool lower = c->blas.flag[ACCEL_uplo] == 'L';
    for (int64_t j = 0; j < a->cols; j++)
        for (int64_t i = 0; i < a->rows; i++)
            if (!triangle || (lower ? i >= j : i <= j))
                *at(a, i, j) += c->blas.scalar[ACCEL_alpha].re *
                                (*of(x, i) * *of(y, j) + (twice ? *of(y, i) * *of(x, j) : 0));
}

/* x := op(A) x, or its inverse: each element once those that it needs are as they must be. */
static void by_triangle(const struct accel_call *c, bool solves)
{
    const struct accel_span *x = &c->span[ACCEL_x];
    const bool lower = (c->blas.flag[ACCEL_uplo] == 'L') == (c->blas.flag[ACCEL_trans] != 'T');
    const int64_t n = x->cols;
    for (int64_t k = 0; k < n; k++) {
        const int64_t i = lower == solves ? k : n - 1 - k;
        double sum = 0;
        for (int64_t j = lower ? 0 : i + 1; j < (lower ? i : n); j++)
            sum += op_a(c, i, j) * *of(x, j);
        *of(x, i) = solves ? (*of(x, i) - sum) / op_a(c, i, i) : *of(x, i) * op_a(c, i, i) + sum;
    }
}

static void plainly(const struct accel_call *c)
{
    const char *name = c->routine->name + 1;
    if (strcmp(name, "ger") == 0)
        update(c, false, false);
    else if (strncmp(name, "syr", 3) == 0)
        update(c, true, name[3] == '2');
    else if (name[0] == 't')
        by_triangle(c, name[2] == 's');
    else
        multiply(c);
}

/* ---- Calls ---- */

static int originals;
static bool by_plain_loops(void *context, const struct accel_call *part)
{
    (void)context;
    originals++;
    plainly(part);
    return true;
}

/* A call with memory of its own, all of which is compared. */
struct made {
    struct accel_call call;
    struct gpu_host host;
    struct accel_span first[ACCEL_SPANS]; /* as the memory was at the start */
    size_t count[ACCEL_SPANS];            /* of doubles */
};

static double small_integer(void)
{
    return rand() % 5 - 2;
}

static double *copy_of(const double *from, size_t count)
{
    double *copy = malloc(count * sizeof *copy);
    assert_non_null(copy);
    memcpy(copy, from, count * sizeof *copy);
    return copy;
}

/* Pages of its own, which nobody else writes to; the operand begins behind the first one's
 * begin. */
static size_t mapped(size_t count)
{
    return (count + 2) * sizeof(double);
}
static double *take(size_t count)
{
    double *memory =
        mmap(NULL, mapped(count), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(memory != MAP_FAILED);
    return memory + 2;
}

/* What is beside a triangle is no number. So nobody reads it. */
static void fill_matrix(const struct accel_call *c)
{
    const struct accel_span *a = &c->span[ACCEL_a];
    const bool lower = c->blas.flag[ACCEL_uplo] == 'L', triangle = c->blas.flag[ACCEL_uplo];
    for (int64_t j = 0; j < a->cols; j++)
        for (int64_t i = 0; i < a->rows; i++)
            if (triangle && (lower ? i < j : i > j))
                *at(a, i, j) = NAN;
            else if (i == j && c->routine->name[1] == 't')
                *at(a, i, i) = c->blas.flag[ACCEL_diag] == 'U' ? NAN : i % 2 ? -1 : 2;
}

static void make(struct made *m, const char *name, int64_t rows, int64_t cols, int64_t inc)
{
    const struct accel_routine *routine = accel_name_routine((uint32_t)accel_name_find(name));
    memset(m, 0, sizeof *m);
    shape_typical(&m->call, routine, (int64_t[ACCEL_DIMENSIONS]){rows, cols, 0, 0});
    m->host = (struct gpu_host){.original = by_plain_loops};
    m->call.blas.scalar[ACCEL_alpha].re = -2;
    m->call.blas.scalar[ACCEL_beta].re = 3;
    m->call.span[ACCEL_x].inc = m->call.span[ACCEL_x].inc ? inc : 0;
}

/* Gives it memory once its flags are set. */
static void fill(struct made *m)
{
    shape_operands(&m->call);
    for (int i = 0; i < ACCEL_SPANS; i++) {
        struct accel_span *x = &m->call.span[i];
        if (x->rows == 0)
            continue;
        x->ld = x->inc ? llabs(x->inc) : x->rows + 3;
        m->count[i] = (size_t)(x->ld * x->cols);
        x->ptr = take(m->count[i]);
        for (size_t k = 0; k < m->count[i]; k++)
            ((double *)x->ptr)[k] = small_integer();
    }
    fill_matrix(&m->call);
    if (m->call.routine->name[3] == 's' && m->call.routine->name[1] == 't') {
        struct accel_call product = m->call; /* so that its solution is of small integers */
        product.routine = accel_name_routine((uint32_t)accel_name_find("dtrmv_"));
        plainly(&product);
    }
    for (int i = 0; i < ACCEL_SPANS; i++) {
        m->first[i] = m->call.span[i];
        if (m->count[i])
            m->first[i].ptr = copy_of(m->call.span[i].ptr, m->count[i]);
    }
}

static void end_made(struct made *m)
{
    for (int i = 0; i < ACCEL_SPANS; i++) {
        if (m->count[i]) {
            munmap((double *)m->call.span[i].ptr - 2, mapped(m->count[i]));
            free(m->first[i].ptr);
        }
    }
}

static bool is_same(const struct accel_span *x, const double *expected, size_t count)
{
    const double *there = x->ptr;
    for (size_t i = 0; i < count; i++)
        if (!(there[i] == expected[i] || (isnan(there[i]) && isnan(expected[i]))))
            return false;
    return true;
}

/* All of the memory is as it was, or as plain loops leave what was there. */
static void assert_result(struct made *m, bool computed)
{
    struct accel_call expected = m->call;
    for (int i = 0; i < ACCEL_SPANS; i++)
        if (m->count[i])
            expected.span[i].ptr = copy_of(m->first[i].ptr, m->count[i]);
    if (computed)
        plainly(&expected);
    for (int i = 0; i < ACCEL_SPANS; i++)
        if (m->count[i]) {
            if (!is_same(&m->call.span[i], expected.span[i].ptr, m->count[i]))
                fail_msg("%s %c%c%c: %s is wrong", m->call.routine->name,
                         m->call.blas.flag[ACCEL_uplo] + !m->call.blas.flag[ACCEL_uplo] * '-',
                         m->call.blas.flag[ACCEL_trans] + !m->call.blas.flag[ACCEL_trans] * '-',
                         m->call.blas.flag[ACCEL_diag] + !m->call.blas.flag[ACCEL_diag] * '-',
                         m->call.span[i].name);
            free(expected.span[i].ptr);
        }
}

static void start_again(struct made *m)
{
    for (int i = 0; i < ACCEL_SPANS; i++)
        if (m->count[i])
            memcpy(m->call.span[i].ptr, m->first[i].ptr, m->count[i] * sizeof(double));
    m->host.up_bytes = m->host.down_bytes = m->host.cached_bytes = 0;
    originals = 0;
}

static enum gpu_status run(struct made *m)
{
    return gpu_run(&device->common, &m->call, &m->host);
}

/* ---- Results ---- */

static const char *const names[] = {"dgemv_", "dger_",  "dsymv_", "dsyr_",
                                    "dsyr2_", "dtrmv_", "dtrsv_"};
enum { NAMES = sizeof names / sizeof *names, WAYS = 8 };

/* The flags by their bits, where the routine has them. Returns false if others say the same. */
static bool set_flags(struct accel_call *c, int way)
{
    bool differs = true;
    const struct {
        enum accel_flag flag;
        char other;
    } flags[] = {{ACCEL_uplo, 'U'}, {ACCEL_trans, 'T'}, {ACCEL_diag, 'U'}};
    for (int i = 0; i < 3; i++)
        if (way >> i & 1) {
            differs = differs && c->blas.flag[flags[i].flag];
            c->blas.flag[flags[i].flag] = flags[i].other;
        }
    return differs;
}

static bool make_way(struct made *m, int which, int way, int64_t rows, int64_t cols, int64_t inc)
{
    make(m, names[which], rows, cols, inc);
    if (m->call.routine->name[1] != 'g')
        make(m, names[which], cols, cols, inc);
    if (!set_flags(&m->call, way))
        return false;
    fill(m);
    return true;
}

static int64_t bytes_of_access(const struct made *m, unsigned access)
{
    int64_t bytes = 0;
    for (int i = 0; i < ACCEL_SPANS; i++)
        if (m->call.span[i].access & access)
            bytes += accel_bytes(&m->call.span[i]);
    return bytes;
}

static void as_plain_loops(void **state)
{
    static const int64_t increments[] = {1, 2, -1, -3};
    struct made m;
    (void)state;
    for (int which = 0; which < NAMES; which++)
        for (int way = 0; way < WAYS; way++) {
            if (!make_way(&m, which, way, 57, 40, increments[(which + way) % 4]))
                continue;
            start_again(&m);
            assert_int_equal(run(&m), GPU_OK);
            assert_result(&m, true);
            assert_int_equal(originals, 0);
            assert_int_equal(m.host.up_bytes, bytes_of_access(&m, ACCEL_READ));
            assert_int_equal(m.host.down_bytes, bytes_of_access(&m, ACCEL_WRITE));
            end_made(&m);
        }
}

/* The memory has room for a half of the matrix, or less. */
enum { ORDER = 220, BUDGET = 200 << 10 };

static void in_strips(void **state)
{
    const int64_t budget = device->budget;
    struct made m;
    (void)state;
    gpu_trim(&device->common);
    device->budget = BUDGET;
    for (int which = 0; which < NAMES; which++)
        for (int way = 0; way < WAYS; way++) {
            if (!make_way(&m, which, way, ORDER - 20, ORDER, way % 2 ? 1 : -2))
                continue;
            start_again(&m);
            assert_true(accel_bytes(&m.call.span[ACCEL_a]) > BUDGET);
            assert_int_equal(run(&m), GPU_OK);
            assert_result(&m, true);
            /* Each vector once; of a triangle less than all of it */
            const int64_t most = bytes_of_access(&m, ACCEL_READ);
            assert_in_range(m.host.up_bytes, most / 2, most);
            assert_true(m.call.blas.flag[ACCEL_uplo] ? m.host.up_bytes < most
                                                     : m.host.up_bytes == most);
            end_made(&m);
        }
    device->budget = 8 << 10;
    gpu_trim(&device->common);
    assert_true(make_way(&m, 0, 0, 4096, 4, 1)); /* not even a column */
    start_again(&m);
    assert_int_equal(run(&m), GPU_NO_MEMORY);
    assert_result(&m, false);
    end_made(&m);
    device->budget = budget;
}

/* y := beta y: neither A nor x is read. */
static void nothing_is_read_where_alpha_is_zero(void **state)
{
    struct made m;
    (void)state;
    for (int beta = 0; beta < 3; beta++) {
        make(&m, "dgemv_", 30, 20, 1);
        fill(&m);
        m.call.blas.scalar[ACCEL_alpha].re = 0;
        m.call.blas.scalar[ACCEL_beta].re = beta;
        *at(&m.call.span[ACCEL_a], 3, 3) = *at(&m.first[ACCEL_a], 3, 3) = 1;
        start_again(&m);
        assert_int_equal(run(&m), GPU_OK);
        assert_result(&m, true);
        assert_int_equal(m.host.up_bytes, beta == 2 ? 8 * 30 : 0);
        assert_int_equal(m.host.down_bytes, beta == 1 ? 0 : 8 * 30);
        end_made(&m);
    }
}

/* ---- After a failure ---- */

/* Memory that is short says nothing of the device, which goes on. */
static enum gpu_status run_some(struct made *m, int ups, int downs)
{
    allow_copies(ups, downs);
    const enum gpu_status status = run(m);
    cuda_api = real;
    return status;
}

/* Each copy fails in turn. Then the call has done nothing, or the original has done the rest. */
static void the_original_does_the_rest(void **state)
{
    enum { ALL = 1 << 20 };
    const int64_t budget = device->budget;
    int finished = 0, begun = 0;
    struct made m;
    (void)state;
    gpu_trim(&device->common);
    device->budget = BUDGET;
    for (int which = 0; which < NAMES; which++)
        for (int way = 0; way < 4; way++) {
            enum gpu_status status = GPU_ERROR;
            if (!make_way(&m, which, way, ORDER, ORDER - 8, 1))
                continue;
            for (int i = 0; status != GPU_OK; i++) {
                start_again(&m);
                status = run_some(&m, i % 2 ? i / 2 : ALL, i % 2 ? ALL : i / 2);
                assert_true(status == GPU_OK || status == GPU_NO_MEMORY ||
                            status == GPU_SHORT_ELSE);
                assert_true((originals > 0) == (status == GPU_SHORT_ELSE));
                assert_result(&m, status != GPU_NO_MEMORY);
                finished += status == GPU_SHORT_ELSE;
                begun += status == GPU_NO_MEMORY;
                if (status == GPU_OK && i % 2 == 0) { /* also with all uploads */
                    start_again(&m);
                    status = run_some(&m, (i + 1) / 2, ALL);
                    assert_result(&m, status != GPU_NO_MEMORY);
                }
            }
            end_made(&m);
        }
    device->budget = budget;
    assert_true(finished > 10 && begun > 10);
}

/* A triangle comes down in more chunks than can be on their way. If
 * that fails, the rest is a triangle, too. */
static void a_part_of_a_triangle_has_come(void **state)
{
    static const char *const updates[] = {"dsyr_", "dsyr2_"};
    (void)state;
    gpu_set_chunk(&device->common, gpu_chunk_sizes[0]);
    for (int which = 0; which < 2; which++)
        for (int upper = 0; upper < 2; upper++) {
            enum gpu_status status = GPU_ERROR;
            struct made m;
            int finished = 0;
            make(&m, updates[which], 1300, 1300, 1);
            m.call.blas.flag[ACCEL_uplo] = upper ? 'U' : 'L';
            fill(&m);
            for (int downs = 0; status != GPU_OK; downs += 2 + downs / 2) {
                start_again(&m);
                status = run_some(&m, 1 << 20, downs);
                assert_true(status == GPU_OK || status == GPU_NO_MEMORY ||
                            status == GPU_SHORT_ELSE);
                assert_result(&m, status != GPU_NO_MEMORY);
                finished += status == GPU_SHORT_ELSE;
            }
            assert_true(finished > 0);
            end_made(&m);
        }
    gpu_set_chunk(&device->common, GPU_CHUNK_USUAL);
}

/* ---- Matrices that stay ---- */

/* 1.28 MB and more. Each test has a shape of its own: what has been seen at an address is not
 * forgotten. */
enum { LARGE = 400 };

static void expect(struct made *m, bool found)
{
    const int64_t matrix = accel_bytes(&m->call.span[ACCEL_a]),
                  all = bytes_of_access(m, ACCEL_READ);
    start_again(m);
    assert_int_equal(run(m), GPU_OK);
    assert_result(m, true);
    assert_int_equal(m->host.cached_bytes, found ? matrix : 0);
    assert_int_equal(m->host.up_bytes, found ? all - matrix : all);
}

static void change(struct made *m, int64_t i, int64_t j)
{
    *at(&m->first[ACCEL_a], i, j) += 1;
}

/* The second call leaves it there, known by a digest. */
static void a_digest_knows_it(void **state)
{
    struct made m;
    (void)state;
    make(&m, "dgemv_", LARGE, LARGE, 1);
    fill(&m);
    m.host.caches = m.host.digests = true;
    for (int i = 0; i < 6; i++)
        expect(&m, i >= 2);
    change(&m, LARGE - 1, LARGE - 1);
    expect(&m, false);
    expect(&m, true);
    m.host.caches = false;
    expect(&m, false);
    end_made(&m);
    make(&m, "dgemv_", 300, 300, 1); /* too small to stay */
    fill(&m);
    m.host.caches = m.host.digests = true;
    for (int i = 0; i < 4; i++) {
        start_again(&m);
        assert_int_equal(run(&m), GPU_OK);
        assert_true(m.host.cached_bytes == 0 && m.host.up_bytes == 8 * (300 * 300 + 600));
    }
    end_made(&m);
}

/* A matrix that was to be there, and is not: nothing is computed. */
static void a_call_that_relies_on_it_says_that_it_is_not_there(void **state)
{
    struct made m;
    (void)state;
    make(&m, "dgemv_", LARGE, LARGE + 16, 1);
    fill(&m);
    m.host.caches = m.host.digests = m.host.relies = true;
    start_again(&m);
    assert_int_equal(run(&m), GPU_CHANGED);
    assert_result(&m, false);
    assert_true(m.host.up_bytes == 0 && m.host.down_bytes == 0);
    end_made(&m);
}

/* Matrices that the kernel watches are not read; a change is seen beside the kernel, or before. */
static void a_watch_knows_it(void **state)
{
    struct made m;
    (void)state;
    make(&m, "dgemv_", LARGE, LARGE + 24, 1);
    fill(&m);
    if (need_watch(dirty_tracking_begin(&m.call.span[ACCEL_a])) != 0)
        fail();
    const size_t matrix = m.count[ACCEL_a];
    m.count[ACCEL_a] = 0; /* nobody writes to it here */
    m.host.caches = m.host.tracks = true;
    for (int i = 0; i < 5; i++) {
        start_again(&m);
        assert_int_equal(run(&m), GPU_OK);
        assert_result(&m, true);
        assert_int_equal(m.host.cached_bytes, i >= 2 ? accel_bytes(&m.call.span[ACCEL_a]) : 0);
    }
    m.host.relies = true;
    start_again(&m);
    assert_int_equal(run(&m), GPU_OK);
    *at(&m.call.span[ACCEL_a], 7, LARGE / 2) += 1;
    start_again(&m);
    assert_int_equal(run(&m), GPU_CHANGED);
    assert_result(&m, false);
    m.host.relies = false;
    start_again(&m);
    assert_int_equal(run(&m), GPU_OK);
    assert_result(&m, true);
    assert_int_equal(m.host.cached_bytes, 0);
    m.count[ACCEL_a] = matrix;
    end_made(&m);
}

/* One that is told to bring a matrix, which calls on the CPU have missed, has it there for the
 * next one. */
static void a_call_brings_it(void **state)
{
    struct made m;
    (void)state;
    make(&m, "dgemv_", LARGE, LARGE + 8, 1);
    fill(&m);
    m.host.caches = m.host.digests = true;
    assert_false(gpu_is_worth_prefetching(&m.call, 0.001, 1000));
    m.host.prefetches = 1u << ACCEL_a;
    expect(&m, false);
    m.host.prefetches = 0;
    expect(&m, true);
    end_made(&m);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin_work, end_work)
    const struct CMUnitTest tests[] = {
        TEST(as_plain_loops),
        TEST(in_strips),
        TEST(nothing_is_read_where_alpha_is_zero),
        TEST(the_original_does_the_rest),
        TEST(a_part_of_a_triangle_has_come),
        TEST(a_digest_knows_it),
        TEST(a_call_that_relies_on_it_says_that_it_is_not_there),
        TEST(a_watch_knows_it),
        TEST(a_call_brings_it),
    };
    return cmocka_run_group_tests(tests, start_work, stop_device);
}
