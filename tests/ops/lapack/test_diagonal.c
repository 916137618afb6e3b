/*
 * What a few elements tell of a matrix (ops/lapack/diagonal.h): of every type, at each place of the
 * diagonal, at the bounds and just beyond them. Elements that the functions must not read are NaN.
 */
#include <math.h>

#include "call/matrix.h"
#include "call/shape.h"
#include "ops/lapack/diagonal.h"
#include "ops/typical.h"
#include "tests/lib/cmplx.h"
#include "tests/lib/routine.h"

typedef double complex number;

enum { N = 4, LD = N + 2 };

static _Alignas(16) char memory[LD * N * sizeof(number)];

static void set(const struct accel_span *x, int i, int j, number z)
{
    const int64_t at = i + j * x->ld;
    switch (x->dtype) {
    case ACCEL_FLOAT32:
        ((float *)x->ptr)[at] = (float)creal(z);
        break;
    case ACCEL_FLOAT64:
        ((double *)x->ptr)[at] = creal(z);
        break;
    case ACCEL_COMPLEX64:
        ((float complex *)x->ptr)[at] = (float complex)z;
        break;
    default:
        ((number *)x->ptr)[at] = z;
    }
}

static struct accel_span span_of(int dtype, int rows, int cols)
{
    struct accel_span x = {
        .ptr = memory, .rows = LD, .cols = N, .ld = LD, .dtype = (enum accel_dtype)dtype};
    for (int j = 0; j < N; j++)
        for (int i = 0; i < LD; i++)
            set(&x, i, j, CMPLX(NAN, NAN));
    x.rows = rows;
    x.cols = cols;
    return x;
}

#define EACH_TYPE  for (int type = 0; type < ACCEL_DTYPES; type++)
#define IS_COMPLEX accel_is_complex((enum accel_dtype)type)

/* ---- Zeros ---- */

static struct accel_span triangle_of(int type, int rows, int cols)
{
    const struct accel_span x = span_of(type, rows, cols);
    for (int j = 0; j < cols; j++)
        for (int i = 0; i < rows; i++)
            set(&x, i, j, i != j ? 0 : i % 2 ? -1 : CMPLX(2, 1));
    return x;
}

static void zeros_on_the_diagonal(void **state)
{
    static const int shapes[][2] = {{N, N}, {2, N}, {N, 2}, {1, 1}};
    (void)state;
    EACH_TYPE for (int s = 0; s < 4; s++)
    {
        const struct accel_span x = triangle_of(type, shapes[s][0], shapes[s][1]);
        assert_false(lapack_has_zero_diagonal(&x));
        for (int i = 0; i < accel_min(x.rows, x.cols); i++) {
            set(&x, i, i, 0);
            assert_true(lapack_has_zero_diagonal(&x));
            set(&x, i, i, CMPLX(-0.0, -0.0));
            assert_true(lapack_has_zero_diagonal(&x));
            set(&x, i, i, CMPLX(0, 1e-30));
            assert_int_equal(lapack_has_zero_diagonal(&x), !IS_COMPLEX);
            set(&x, i, i, CMPLX(1e-30, 0));
            assert_false(lapack_has_zero_diagonal(&x));
            set(&x, i, i, CMPLX(NAN, NAN));
            assert_false(lapack_has_zero_diagonal(&x));
            set(&x, i, i, 1);
        }
    }
    const struct accel_span none = span_of(ACCEL_FLOAT64, 0, 0);
    assert_false(lapack_has_zero_diagonal(&none));
}

/* ---- Definite matrices ---- */

/* Diagonal elements 1, 4, 9, 16, whose imaginary parts do not count; beside the diagonal zeros in
 * the triangle. */
static struct accel_span definite_of(int type, char uplo)
{
    const struct accel_span x = span_of(type, N, N);
    for (int j = 0; j < N; j++)
        for (int i = 0; i < N; i++)
            if (i == j)
                set(&x, i, i, CMPLX((i + 1) * (i + 1), NAN));
            else if (uplo == 'L' ? i > j : i < j)
                set(&x, i, j, 0);
    return x;
}

static void set_beside(const struct accel_span *x, char uplo, int i, number z)
{
    set(x, uplo == 'L' ? i + 1 : i, uplo == 'L' ? i : i + 1, z);
}

static void elements_of_the_diagonal(void **state)
{
    static const double bad[] = {0, -1, -1e-30, NAN, -INFINITY};
    (void)state;
    EACH_TYPE for (const char *uplo = "UL"; *uplo; uplo++)
    {
        const struct accel_span x = definite_of(type, *uplo);
        assert_false(lapack_is_indefinite(&x, *uplo));
        for (int i = 0; i < N; i++) {
            for (int b = 0; b < 5; b++) {
                set(&x, i, i, CMPLX(bad[b], 3));
                assert_true(lapack_is_indefinite(&x, *uplo));
            }
            set(&x, i, i, 1e-30);
            assert_false(lapack_is_indefinite(&x, *uplo));
            set(&x, i, i, (i + 1) * (i + 1));
        }
    }
}

/* Between two diagonal elements i^2 and (i+1)^2, the bound is i (i+1). What rounding could turn
 * into a definite matrix is not refused. */
static void elements_beside_the_diagonal(void **state)
{
    static const number direction[] = {1, -1, I, -I, CMPLX(0.6, 0.8), CMPLX(-0.8, 0.6)};
    (void)state;
    EACH_TYPE for (const char *uplo = "UL"; *uplo; uplo++)
    {
        const struct accel_span x = definite_of(type, *uplo);
        for (int i = 0; i + 1 < N; i++) {
            const double bound = (i + 1) * (i + 2);
            for (int d = 0; d < (IS_COMPLEX ? 6 : 2); d++) {
                set_beside(&x, *uplo, i, 0.999 * bound * direction[d]);
                assert_false(lapack_is_indefinite(&x, *uplo));
                set_beside(&x, *uplo, i, bound * direction[d]);
                assert_false(lapack_is_indefinite(&x, *uplo));
                set_beside(&x, *uplo, i, 1.0001 * bound * direction[d]);
                assert_true(lapack_is_indefinite(&x, *uplo));
            }
            set_beside(&x, *uplo, i, 0);
        }
        /* No product of two of them overflows, or underflows. */
        for (int i = 0; i < N; i++)
            set(&x, i, i, i % 2 ? 0x1p-100 : 0x1p100);
        set_beside(&x, *uplo, 1, 0.5);
        assert_false(lapack_is_indefinite(&x, *uplo));
        set_beside(&x, *uplo, 1, 2);
        assert_true(lapack_is_indefinite(&x, *uplo));
    }
}

/* ---- Calls ---- */

static struct accel_call call_of(const char *name, const struct accel_span *x)
{
    struct accel_call call;
    const int64_t size[ACCEL_DIMENSIONS] = {[ACCEL_n] = N, [ACCEL_nrhs] = 1};
    shape_typical(&call, routine(name), size);
    call.span[ACCEL_a] = *x;
    return call;
}

static void calls_by_their_matrix(void **state)
{
    (void)state;
    for (const char *uplo = "UL"; *uplo; uplo++) {
        struct accel_span x = definite_of(ACCEL_FLOAT64, *uplo);
        struct accel_call call = call_of("dpotrf", &x);
        call.blas.flag[ACCEL_uplo] = *uplo;
        assert_false(lapack_hopeless_by_definiteness(&call));
        set_beside(&x, *uplo, 1, 7);
        assert_true(lapack_hopeless_by_definiteness(&call));
        x = triangle_of(ACCEL_FLOAT64, N, N);
        call = call_of("dtrtrs", &x);
        call.blas.flag[ACCEL_diag] = 'N';
        assert_false(lapack_hopeless_by_zeros(&call));
        set(&x, 2, 2, 0);
        assert_true(lapack_hopeless_by_zeros(&call));
        call.blas.flag[ACCEL_diag] = 'U';
        assert_false(lapack_hopeless_by_zeros(&call));
    }
}

/* The same of triangles without gaps. */
static void packed_triangles(void **state)
{
    (void)state;
    EACH_TYPE for (const char *uplo = "UL"; *uplo; uplo++)
    {
        const struct accel_span x = span_of(type, N * (N + 1) / 2, 1);
        const char name[] = {"sdcz"[type], 'p', 'p', 't', 'r', 'f', 0};
        struct accel_call call = call_of(name, &x);
        const bool lower = *uplo == 'L';
        call.blas.flag[ACCEL_uplo] = *uplo;
        for (int j = 0; j < N; j++)
            for (int i = lower ? j : 0; i < (lower ? N : j + 1); i++)
                set(&x, (int)triangle_place(*uplo, N, i, j), 0,
                    i == j ? CMPLX((i + 1) * (i + 1), NAN) : 0);
        assert_false(lapack_hopeless_by_definiteness(&call));
        assert_false(lapack_hopeless_by_zeros(&call));
        for (int i = 0; i < N; i++) {
            const int here = (int)triangle_place(*uplo, N, i, i),
                      next = (int)triangle_place(*uplo, N, lower ? i + 1 : i, lower ? i : i + 1);
            set(&x, here, 0, 0);
            assert_true(lapack_hopeless_by_zeros(&call));
            set(&x, here, 0, CMPLX(0, 1));
            assert_int_equal(lapack_hopeless_by_zeros(&call), !IS_COMPLEX);
            set(&x, here, 0, -1);
            assert_false(lapack_hopeless_by_zeros(&call));
            assert_true(lapack_hopeless_by_definiteness(&call));
            set(&x, here, 0, (i + 1) * (i + 1));
            if (i + 1 == N)
                break;
            set(&x, next, 0, 1.001 * (i + 1) * (i + 2));
            assert_true(lapack_hopeless_by_definiteness(&call));
            set(&x, next, 0, 0.999 * (i + 1) * (i + 2));
            assert_false(lapack_hopeless_by_definiteness(&call));
            set(&x, next, 0, 0);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(zeros_on_the_diagonal),
        cmocka_unit_test(elements_of_the_diagonal),
        cmocka_unit_test(elements_beside_the_diagonal),
        cmocka_unit_test(calls_by_their_matrix),
        cmocka_unit_test(packed_triangles),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
