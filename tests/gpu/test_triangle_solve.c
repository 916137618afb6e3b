/*
 * Solving by a triangle with the kernel of our own (gpu/exec/blas/triangle_solve.h): every side,
 * triangle, operation and type, orders around the kernel's own, what is read and written, and
 * failures. With TEST_REAL_GPU set, on whatever GPU is found.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/device/own.h"
#include "gpu/own/substitution.h"
#include "gpu/exec/blas/triangle_solve.h"
#include "ops/op.h"
#include "tests/lib/device_work.h"
#include "tests/lib/long.h"

/* ---- What is called ---- */

enum {
    NRHS = 300,
    /* From so many on our own kernel solves, by triangles of at most so many rows */
    LEAF = 2 * SUBSTITUTION_BLOCK
};

static int kernels, solves, fails_at;

static CUresult count_launch(CUfunction function, unsigned x, unsigned y, unsigned z,
                             unsigned threads_x, unsigned threads_y, unsigned threads_z,
                             unsigned bytes, CUstream stream, void **arguments, void **extra)
{
    return ++kernels == fails_at
               ? CUDA_ERROR_UNKNOWN
               : real.cuLaunchKernel_p(function, x, y, z, threads_x, threads_y, threads_z, bytes,
                                       stream, arguments, extra);
}

static cublasStatus_t count_solve(cublasHandle_t handle, cublasSideMode_t side,
                                  cublasFillMode_t uplo, cublasOperation_t trans,
                                  cublasDiagType_t diag, int64_t m, int64_t n, const double *alpha,
                                  const double *a, int64_t lda, double *b, int64_t ldb)
{
    solves++;
    return real.cublasDtrsm_v2_64_p(handle, side, uplo, trans, diag, m, n, alpha, a, lda, b, ldb);
}

/* ---- A solution ---- */

/* Elements in double precision, whatever the type; `nrhs` right-hand sides, rows or columns of
 * B. */
struct problem {
    enum accel_dtype dtype;
    char side, uplo, trans, diag;
    int64_t order, nrhs, lda, ldb;
    double alpha;
    double *a, *b, *x; /* stored: A and B with gaps; X like B */
};

static int64_t rows_of(const struct problem *p)
{
    return p->side == 'L' ? p->order : p->nrhs;
}

static int64_t cols_of(const struct problem *p)
{
    return p->side == 'L' ? p->nrhs : p->order;
}

/* Returns element (i, k) of the triangle T of T X = alpha B, for right-hand nrhs that are
 * columns. */
static double t_of(const struct problem *p, int64_t i, int64_t k)
{
    const bool as_stored = (p->side == 'L') == (p->trans == 'N');
    const int64_t row = as_stored ? i : k, col = as_stored ? k : i;
    if (row == col && p->diag == 'U')
        return 1;
    return (p->uplo == 'L' ? row >= col : row <= col) ? p->a[row + col * p->lda] : 0;
}

static double side_of(const struct problem *p, const double *of, int64_t i, int64_t side)
{
    return p->side == 'L' ? of[i + side * p->ldb] : of[side + i * p->ldb];
}

static double random_number(void)
{
    return (double)rand() / RAND_MAX - 0.5;
}

/* Rounds to the type: what the device gets. */
static double rounded(const struct problem *p, double x)
{
    return p->dtype == ACCEL_FLOAT32 ? (double)(float)x : x;
}

/* Everything that must not be read is no number. The triangle is so ill-conditioned that its
 * inverse would not do. */
static void make(struct problem *p)
{
    p->lda = p->order + 3;
    p->ldb = rows_of(p) + 5;
    p->a = malloc((size_t)(p->lda * p->order) * sizeof *p->a);
    p->b = malloc((size_t)(p->ldb * cols_of(p)) * sizeof *p->b);
    p->x = malloc((size_t)(p->ldb * cols_of(p)) * sizeof *p->x);
    assert_true(p->a && p->b && p->x);
    for (int64_t j = 0; j < p->order; j++)
        for (int64_t i = 0; i < p->lda; i++) {
            const bool inside = i < p->order && (p->uplo == 'L' ? i >= j : i <= j);
            p->a[i + j * p->lda] = !inside || (i == j && p->diag == 'U') ? NAN
                                   : i == j ? rounded(p, 0.6 + random_number() / 5)
                                            : rounded(p, random_number());
        }
    for (int64_t j = 0; j < cols_of(p); j++)
        for (int64_t i = 0; i < p->ldb; i++)
            p->b[i + j * p->ldb] = i < rows_of(p) ? rounded(p, random_number()) : 7;
}

static void end(struct problem *p)
{
    free(p->a);
    free(p->b);
    free(p->x);
}

/* Puts a matrix on the device, in the type. */
static gpu_address put(const struct problem *p, const double *from, int64_t elements)
{
    const int64_t size = (int64_t)accel_dtype_size(p->dtype);
    float *narrow = malloc((size_t)elements * sizeof *narrow);
    gpu_address to;
    assert_non_null(narrow);
    for (int64_t i = 0; i < elements; i++)
        narrow[i] = (float)from[i];
    const void *host = p->dtype == ACCEL_FLOAT32 ? (const void *)narrow : from;
    const struct host_rectangle all =
        host_whole((char *)(uintptr_t)host, elements, 1, elements, size);
    assert_int_equal(gpu_memory(&work)->take(&work, elements * size, &to), GPU_OK);
    assert_int_equal(stream_ctx_upload(work.ctx, (struct dmat){to, elements}, &all), GPU_OK);
    assert_int_equal(stream_ctx_wait(work.ctx), GPU_OK);
    free(narrow);
    return to;
}

static void get(const struct problem *p, double *to, gpu_address from, int64_t elements)
{
    const int64_t size = (int64_t)accel_dtype_size(p->dtype);
    int64_t done_cols, done_rows;
    float *narrow = malloc((size_t)elements * sizeof *narrow);
    assert_non_null(narrow);
    const struct host_rectangle all = host_whole(
        p->dtype == ACCEL_FLOAT32 ? (char *)narrow : (char *)to, elements, 1, elements, size);
    assert_int_equal(
        stream_ctx_download(work.ctx, &all, (struct dmat){from, elements}, &done_cols, &done_rows),
        GPU_OK);
    for (int64_t i = 0; p->dtype == ACCEL_FLOAT32 && i < elements; i++)
        to[i] = narrow[i];
    free(narrow);
}

/* Solves on the device; X is there after success. */
static enum gpu_status run(struct problem *p)
{
    call.routine = accel_name_routine(
        (uint32_t)accel_name_find(p->dtype == ACCEL_FLOAT32 ? "strsm_" : "dtrsm_"));
    call.op = accel_op_of(call.routine);
    CUDA(cuLaunchKernel) = count_launch;
    CUDA(cublasDtrsm_v2_64) = count_solve;
    kernels = solves = 0;
    const struct dmat a = {put(p, p->a, p->lda * p->order), p->lda};
    const struct dmat b = {put(p, p->b, p->ldb * cols_of(p)), p->ldb};
    const enum gpu_status status =
        triangle_solve(&work, p->side, p->uplo, p->trans, p->diag, rows_of(p), cols_of(p),
                       (struct accel_complex){p->alpha, 0}, a, b);
    if (status == GPU_OK)
        get(p, p->x, b.ptr, p->ldb * cols_of(p));
    assert_int_equal(stream_ctx_wait(work.ctx), GPU_OK);
    gpu_memory(&work)->drop(&work);
    return status;
}

/*
 * The bound of substitution, row by row (Higham, Accuracy and Stability of Numerical Algorithms,
 * theorem 8.5), and what reciprocals add. NVIDIA's own solver need not keep it, as one does not
 * that inverts blocks of the diagonal: nothing is claimed of what it has solved.
 */
static void check_bound(const struct problem *p)
{
    const double u = p->dtype == ACCEL_FLOAT32 ? (double)FLT_EPSILON / 2 : DBL_EPSILON / 2;
    for (int64_t side = 0; side < p->nrhs; side++)
        for (int64_t i = 0; i < p->order; i++) {
            long double residual = (long double)p->alpha * side_of(p, p->b, i, side);
            long double sum = fabsl(residual);
            for (int64_t k = 0; k < p->order; k++) {
                const long double term = (long double)t_of(p, i, k) * side_of(p, p->x, k, side);
                residual -= term;
                sum += fabsl(term);
            }
            if (!(fabsl(residual) <= (double)(p->order + 4) * u * sum))
                fail_msg("%c %c %c %c, order %lld, %lld nrhs: row %lld of side %lld: %Lg of %Lg",
                         p->side, p->uplo, p->trans, p->diag, (long long)p->order,
                         (long long)p->nrhs, (long long)i, (long long)side, residual, sum);
        }
}

static void check(const struct problem *p)
{
    if (solves == 0 || !is_real_gpu())
        check_bound(p);
    for (int64_t j = 0; j < cols_of(p); j++)
        for (int64_t i = rows_of(p); i < p->ldb; i++)
            assert_true(p->x[i + j * p->ldb] == 7);
}

static void choose(bool own)
{
    gpu_solve_by_own(work.device, ACCEL_FLOAT32, own ? NRHS : 0);
    gpu_solve_by_own(work.device, ACCEL_FLOAT64, own ? NRHS : 0);
}

/* ---- Tests ---- */

/* The number of triangles that a division into halves ends at. */
static int leaves_of(int64_t order)
{
    const int64_t blocks = (order + SUBSTITUTION_BLOCK - 1) / SUBSTITUTION_BLOCK;
    const int64_t top = (order + LEAF - 1) / LEAF / 2 * LEAF;
    return blocks * SUBSTITUTION_BLOCK <= LEAF ? 1 : leaves_of(top) + leaves_of(order - top);
}

/* Sizes and scalars change with each form, and not in step with any of its letters. */
static void it_solves_every_form(void **state)
{
    static const int64_t orders[] = {64, 65, 128, 129, 200, 300, 64 + 17};
    static const double alphas[] = {1, -0.75, 2};
    (void)state;
    choose(true);
    for (int form = 0; form < 48; form++) {
        if (!test_is_long() && form % 2 != form / 2 % 3 % 2) /* one of the types each */
            continue;
        const int number = form / 2;
        struct problem p = {.dtype = form % 2 ? ACCEL_FLOAT32 : ACCEL_FLOAT64,
                            .side = "LR"[number % 2],
                            .uplo = "UL"[number / 2 % 2],
                            .diag = "NU"[number / 4 % 2],
                            .trans = "NTC"[number / 8],
                            .order = orders[(number + number / 7) % 7],
                            .nrhs = NRHS + number % 5 * 21,
                            .alpha = alphas[(number + number / 3) % 3]};
        make(&p);
        assert_int_equal(run(&p), GPU_OK);
        assert_int_equal(kernels, leaves_of(p.order));
        assert_int_equal(solves, 0);
        check(&p);
        end(&p);
    }
}

/* Each alone on the diagonal: their reciprocals are no normal numbers, or none. Quotients are those
 * of a division, up to a rounding error. */
static void a_diagonal_may_be_extreme(void **state)
{
    static const double in_double[] = {DBL_MIN / 4, DBL_MAX, -DBL_MIN, INFINITY, -INFINITY,
                                       0,           -0.0,    NAN,      -0.5};
    static const double in_single[] = {FLT_MIN / 4, FLT_MAX, -FLT_MIN, INFINITY, -INFINITY,
                                       0,           -0.0,    NAN,      -0.5};
    enum { COUNT = sizeof in_double / sizeof *in_double };
    (void)state;
    choose(true);
    for (int single = 0; single < 2; single++) {
        struct problem p = {single ? ACCEL_FLOAT32 : ACCEL_FLOAT64,
                            'L',
                            'L',
                            'N',
                            'N',
                            SUBSTITUTION_BLOCK,
                            NRHS,
                            .alpha = 1};
        const double eps = single ? (double)FLT_EPSILON : DBL_EPSILON;
        make(&p);
        for (int64_t i = 0; i < p.order * p.lda; i++)
            p.a[i] = 0;
        for (int64_t i = 0; i < p.order; i++)
            p.a[i + i * p.lda] = (single ? in_single : in_double)[i % COUNT];
        for (int64_t side = 0; side < p.nrhs; side++)
            for (int64_t i = 0; i < p.order; i++)
                if (i % COUNT == 0 || i % COUNT == 2) /* others' quotients overflow */
                    p.b[i + side * p.ldb] = rounded(&p, p.b[i + side * p.ldb] * p.a[i + i * p.lda]);
        assert_int_equal(run(&p), GPU_OK);
        for (int64_t side = 0; side < p.nrhs; side++)
            for (int64_t i = 0; i < COUNT; i++) {
                const double quotient = rounded(&p, p.b[i + side * p.ldb] / p.a[i + i * p.lda]),
                             x = p.x[i + side * p.ldb];
                /* What is not a number, or infinite, makes all rows below no numbers: 0 times
                 * it. */
                if (i > 5)
                    assert_true(isnan(x));
                else if (i == 5)
                    assert_true(isinf(x) || isnan(x));
                else
                    assert_true(fabs(x - quotient) <=
                                2 * eps * fabs(quotient) + (single ? 2e-45 : 5e-324));
            }
        end(&p);
    }
}

static void few_right_hand_sides_are_for_the_devices_blas(void **state)
{
    struct problem p = {ACCEL_FLOAT64, 'R', 'U', 'N', 'N', 70, NRHS - 1, .alpha = 2};
    (void)state;
    choose(true);
    make(&p);
    assert_int_equal(run(&p), GPU_OK);
    assert_int_equal(kernels, 0);
    assert_int_equal(solves, 1);
    check(&p);
    end(&p);
}

static void a_new_device_has_its_blas_do_it(void **state)
{
    struct problem p = {ACCEL_FLOAT64, 'L', 'U', 'N', 'N', 70, NRHS, .alpha = 2};
    (void)state;
    choose(false);
    assert_false(gpu_solves_by_own(work.device, ACCEL_FLOAT64, INT64_MAX));
    make(&p);
    assert_int_equal(run(&p), GPU_OK);
    assert_int_equal(kernels, 0);
    assert_int_equal(solves, 1);
    end(&p);
}

static void complex_triangles_have_no_kernel(void **state)
{
    (void)state;
    gpu_solve_by_own(work.device, ACCEL_COMPLEX128, 1);
    assert_false(gpu_solves_by_own(work.device, ACCEL_COMPLEX128, INT64_MAX));
}

static void other_precisions_are_for_the_devices_blas(void **state)
{
    struct problem p = {ACCEL_FLOAT64, 'L', 'L', 'N', 'N', 70, NRHS, .alpha = 1};
    (void)state;
    choose(true);
    make(&p);
    host.precision = GPU_EMULATED;
    assert_int_equal(run(&p), GPU_OK);
    assert_int_equal(kernels, 0);
    end(&p);
}

/* Without the image, the device's BLAS solves after all, and the kernel is not asked for again. */
static void without_a_kernel_the_devices_blas_does_it(void **state)
{
    struct problem p = {ACCEL_FLOAT64, 'L', 'L', 'T', 'N', 70, NRHS, .alpha = 1};
    (void)state;
    choose(true);
    make(&p);
    CUDA(cuLaunchCooperativeKernel) = NULL; /* an old driver */
    assert_int_equal(run(&p), GPU_OK);
    assert_int_equal(solves, 1);
    assert_int_equal(failure_noted()->kind, FAILURE_NONE);
    assert_false(gpu_solves_by_own(work.device, ACCEL_FLOAT64, INT64_MAX));
    check(&p);
    end(&p);
}

static CUresult fit_answer;

static CUresult fit_in_vain(int *blocks, CUfunction function, int threads, size_t bytes)
{
    (void)function;
    (void)threads;
    (void)bytes;
    *blocks = 0;
    return fit_answer;
}

/* Nothing has been launched: no reason to leave the call to the CPU. A lack of memory may pass. */
static void a_kernel_that_cannot_be_had_is_not_missed(void **state)
{
    static const CUresult answers[] = {CUDA_ERROR_UNKNOWN, CUDA_ERROR_OUT_OF_MEMORY};
    struct problem p = {ACCEL_FLOAT64, 'R', 'L', 'T', 'N', 70, NRHS, .alpha = 1};
    (void)state;
    make(&p);
    for (int i = 0; i < 2; i++) {
        choose(true);
        fit_answer = answers[i];
        CUDA(cuOccupancyMaxActiveBlocksPerMultiprocessor) = fit_in_vain;
        assert_int_equal(run(&p), GPU_OK);
        assert_int_equal(solves, 1);
        assert_int_equal(kernels, 0);
        assert_int_equal(failure_noted()->kind, FAILURE_NONE);
        assert_int_equal(gpu_solves_by_own(work.device, ACCEL_FLOAT64, NRHS),
                         answers[i] == CUDA_ERROR_OUT_OF_MEMORY);
        check(&p);
        cuda_api = real;
    }
    end(&p);
}

static void small_triangles_are_for_the_devices_blas(void **state)
{
    struct problem p = {ACCEL_FLOAT64,          'L',  'U',       'N', 'N',
                        SUBSTITUTION_BLOCK - 1, NRHS, .alpha = 2};
    (void)state;
    choose(true);
    make(&p);
    assert_int_equal(run(&p), GPU_OK);
    assert_int_equal(kernels, 0);
    check(&p);
    end(&p);
}

/* Of 130 rows, the first or the second triangle. */
static void a_launch_may_fail(void **state)
{
    struct problem p = {ACCEL_FLOAT64, 'L', 'L', 'N', 'N', 130, NRHS, .alpha = 1};
    (void)state;
    choose(true);
    make(&p);
    for (fails_at = 1; fails_at <= 2; fails_at++) {
        struct failure before;
        failure_begin(&before);
        assert_int_equal(run(&p), GPU_ERROR);
        assert_int_equal(failure_noted()->kind, FAILURE_LIBRARY);
        assert_int_equal(solves, 0);
        failure_end(&before);
        cuda_api = real;
    }
    fails_at = 0;
    end(&p);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin_work, end_work)
    const struct CMUnitTest tests[] = {TEST(it_solves_every_form),
                                       TEST(a_diagonal_may_be_extreme),
                                       TEST(few_right_hand_sides_are_for_the_devices_blas),
                                       TEST(a_new_device_has_its_blas_do_it),
                                       TEST(complex_triangles_have_no_kernel),
                                       TEST(other_precisions_are_for_the_devices_blas),
                                       TEST(without_a_kernel_the_devices_blas_does_it),
                                       TEST(a_kernel_that_cannot_be_had_is_not_missed),
                                       TEST(small_triangles_are_for_the_devices_blas),
                                       TEST(a_launch_may_fail)};
    const struct CMUnitTest without_image[] = {TEST(without_a_kernel_the_devices_blas_does_it)};
    return gpu_own_is_built() ? cmocka_run_group_tests(tests, start_work, stop_device)
                              : cmocka_run_group_tests(without_image, start_work, stop_device);
}
