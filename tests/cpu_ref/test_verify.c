/* The checks of results (cpu_ref/apply.h, cpu_ref/verify.h) against plain loops: what they multiply
 * with, and that each element of a right product counts. Whole routines are in
 * tests/cpu_ref/test_verify.py. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "cpu_ref/apply.h"
#include "cpu_ref/equation.h"
#include "cpu_ref/verify.h"
#include "call/shape.h"
#include "ops/typical.h"
#include "tests/lib/routine.h"

enum { MOST = 12 };

static double random_number(void)
{
    return (double)rand() / RAND_MAX - 0.5;
}

/* Elements that are exact in every type. */
static void fill(void *at, int64_t count, enum accel_dtype dtype)
{
    for (int64_t i = 0; i < count * parts_of(dtype); i++) {
        double x = (double)(rand() % 64 - 32) / 16;
        if (accel_is_double(dtype))
            ((double *)at)[i] = x;
        else if (dtype == ACCEL_BFLOAT16)
            ((uint16_t *)at)[i] = (uint16_t)(x < 0 ? 0xbf80 : 0x3f80);
        else
            ((float *)at)[i] = (float)x;
    }
}

/* Row `row` of op(X) times `in`, by the definition. */
static value row_times(const struct view *x, char op, int64_t row, int64_t cols, const double *in)
{
    const struct factor factor = {*x, op};
    value sum = 0;
    for (int64_t col = 0; col < cols; col++) {
        value v =
            parts_of(x->dtype) == 2 ? in[2 * col] + in[2 * col + 1] * (value)_Complex_I : in[col];
        sum += factor_element(&factor, row, col) * v;
    }
    return sum;
}

static void check(enum accel_dtype dtype, enum structure structure, char uplo, char op,
                  int64_t rows, int64_t cols)
{
    double memory[4 * MOST * MOST], in[2 * MOST], out[2 * MOST] = {0}, squares[MOST] = {0};
    const struct view x = {memory, rows, cols, rows + 2, dtype, structure, uplo};
    const bool across = op_is_across(op);
    const int64_t height = across ? cols : rows, width = across ? rows : cols;
    fill(memory, x.ld * cols, dtype);
    for (int64_t i = 0; i < 2 * width; i++)
        in[i] = random_number();
    apply(&x, op, in, out);
    add_squares(&x, op, squares);
    double all = 0;
    for (int64_t row = 0; row < height; row++) {
        const struct factor factor = {x, op};
        value expected = row_times(&x, op, row, width, in);
        value got =
            parts_of(dtype) == 2 ? out[2 * row] + out[2 * row + 1] * (value)_Complex_I : out[row];
        double square = 0;
        for (int64_t col = 0; col < width; col++) {
            value z = factor_element(&factor, row, col);
            square += (double)(creall(z) * creall(z) + cimagl(z) * cimagl(z));
        }
        all += square;
        if ((double)magnitude(got - expected) > 1e-12 || fabs(squares[row] - square) > 1e-12)
            fail_msg("dtype %d structure %d uplo %c op %c %dx%d: row %d", (int)dtype,
                     (int)structure, uplo ? uplo : '-', op, (int)rows, (int)cols, (int)row);
    }
    assert_true(fabs(sum_of_squares(&x) - all) < 1e-10);
}

static void matrices_times_vectors(void **state)
{
    static const enum accel_dtype dtypes[] = {ACCEL_FLOAT32, ACCEL_FLOAT64, ACCEL_COMPLEX64,
                                              ACCEL_COMPLEX128, ACCEL_BFLOAT16};
    (void)state;
    for (size_t d = 0; d < sizeof dtypes / sizeof *dtypes; d++)
        for (const char *op = "NTCR"; *op; op++) {
            check(dtypes[d], GENERAL, 0, *op, 7, 5);
            check(dtypes[d], GENERAL, 0, *op, 1, 9);
            for (int structure = SYMMETRIC; structure <= UNIT_TRIANGULAR; structure++)
                for (const char *uplo = "UL"; *uplo; uplo++)
                    check(dtypes[d], (enum structure)structure, *uplo, *op, 8, 8);
        }
}

/* Columns of more than one piece. */
static void long_columns(void **state)
{
    enum { ROWS = 1500 };
    static float x[ROWS * 3];
    static double in[3] = {1, -2, 3}, out[ROWS];
    const struct view view = {x, ROWS, 3, ROWS, ACCEL_FLOAT32, GENERAL, 0};
    (void)state;
    fill(x, ROWS * 3, ACCEL_FLOAT32);
    apply(&view, 'N', in, out);
    for (int i = 0; i < ROWS; i++)
        assert_true(out[i] ==
                    (double)x[i] - 2.0 * (double)x[i + ROWS] + 3.0 * (double)x[i + 2 * ROWS]);
}

/* A product of doubles, and the same with one element changed by a part in 10^9: each one is
 * noticed. */
static void every_element_counts(void **state)
{
    enum { N = 20 };
    static double a[N * N], b[N * N], c[N * N];
    const int64_t size[ACCEL_DIMENSIONS] = {N, N, N, 0};
    const void *const before[ACCEL_SPANS] = {NULL};
    struct accel_call call;
    (void)state;
    shape_typical(&call, routine("dgemm"), size);
    call.blas.flag[ACCEL_transa] = call.blas.flag[ACCEL_transb] = 'N';
    call.blas.scalar[ACCEL_alpha].re = 1;
    call.blas.scalar[ACCEL_beta].re = 0;
    call.span[ACCEL_a].ptr = a;
    call.span[ACCEL_b].ptr = b;
    call.span[ACCEL_c].ptr = c;
    for (int i = 0; i < N * N; i++) {
        a[i] = random_number();
        b[i] = random_number();
    }
    for (int col = 0; col < N; col++)
        for (int row = 0; row < N; row++) {
            c[row + col * N] = 0;
            for (int k = 0; k < N; k++)
                c[row + col * N] += a[row + k * N] * b[k + col * N];
        }
    for (uint64_t seed = 0; seed < 50; seed++) {
        double ratio = cpu_ref_verify(&call, before, seed, 0);
        assert_true(ratio >= 0 && ratio < 0.1);
    }
    for (int i = 0; i < N * N; i++) {
        double right = c[i];
        c[i] += 1e-9;
        assert_true(cpu_ref_verify(&call, before, (uint64_t)i, 0) > 1);
        c[i] = NAN;
        assert_true(cpu_ref_verify(&call, before, (uint64_t)i, 0) > 1);
        c[i] = right;
    }
    a[3] = NAN; /* whatever it is then */
    assert_true(cpu_ref_verify(&call, before, 1, 0) == CPU_REF_NOT_JUDGED);
}

/* A triangle with a zero on its diagonal has no solution; any other one's is judged. */
static void singular_triangles_are_not_judged(void **state)
{
    enum { N = 20 };
    static double a[N * N], b[N * N], old[N * N];
    const int64_t size[ACCEL_DIMENSIONS] = {N, N, 0, 0};
    const void *before[ACCEL_SPANS] = {NULL};
    struct accel_call call;
    (void)state;
    shape_typical(&call, routine("dtrsm"), size);
    call.blas.flag[ACCEL_side] = 'L';
    call.blas.flag[ACCEL_uplo] = 'L';
    call.blas.flag[ACCEL_transa] = call.blas.flag[ACCEL_trans] = 'N';
    call.blas.flag[ACCEL_diag] = 'N';
    call.blas.scalar[ACCEL_alpha].re = 1;
    shape_operands(&call);
    call.span[ACCEL_a].ptr = a;
    call.span[ACCEL_b].ptr = b;
    before[ACCEL_b] = old;
    for (int i = 0; i < N * N; i++) {
        a[i] = i % (N + 1) == 0 ? 1 : 0;
        b[i] = old[i] = 1;
    }
    assert_true(cpu_ref_verify(&call, before, 1, 0) < 0.1);
    for (int i = 0; i < N * N; i++) /* 1 / 0, and 1 - 0 * Inf */
        b[i] = i % N == 0 ? INFINITY : NAN;
    assert_true(cpu_ref_verify(&call, before, 1, 0) > 1);
    a[0] = 0;
    assert_true(cpu_ref_verify(&call, before, 1, 0) == CPU_REF_NOT_JUDGED);
}

/* Sums of a constant, one addition after the other: the roundings do not cancel. A wrong element is
 * noticed all the same. */
static void long_sums_err_to_one_side(void **state)
{
    enum { K = 20000 };
    static float a[K], x[K], y[1];
    const int64_t size[ACCEL_DIMENSIONS] = {1, K, 0, 0};
    const void *const before[ACCEL_SPANS] = {NULL};
    struct accel_call call;
    (void)state;
    shape_typical(&call, routine("sgemv"), size);
    call.blas.flag[ACCEL_trans] = 'N';
    call.blas.scalar[ACCEL_alpha].re = 1;
    call.blas.scalar[ACCEL_beta].re = 0;
    call.span[ACCEL_a].ptr = a;
    call.span[ACCEL_x].ptr = x;
    call.span[ACCEL_y].ptr = y;
    for (int i = 0; i < K; i++) {
        a[i] = 0.1f;
        x[i] = 1;
        y[0] += a[i] * x[i];
    }
    const double ratio = cpu_ref_verify(&call, before, 1, 0);
    assert_true(ratio > 0 && ratio < 1);
    y[0] *= 1.01f;
    assert_true(cpu_ref_verify(&call, before, 1, 0) > 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(matrices_times_vectors),
        cmocka_unit_test(long_columns),
        cmocka_unit_test(every_element_counts),
        cmocka_unit_test(singular_triangles_are_not_judged),
        cmocka_unit_test(long_sums_err_to_one_side),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
