/*
 * Passes over matrices in host memory (ops/lapack/packed.h), of all types and of orders around
 * those of their blocks, beside plain loops. Numbers are small integers: sums and products are
 * exact in each type.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ops/lapack/packed.h"
#include "tests/lib/cmplx.h"

enum { MOST = 70, LD = MOST + 3, UNTOUCHED = 77 };

typedef double complex number;

static const enum accel_dtype types[] = {ACCEL_FLOAT32, ACCEL_FLOAT64, ACCEL_COMPLEX64,
                                         ACCEL_COMPLEX128};
static const int orders[] = {0, 1, 2, 31, 32, 33, 64, 65};
static _Alignas(16) char memory[2][LD * MOST * sizeof(number)];

static struct matrix of_memory(int which, int rows, int cols, enum accel_dtype dtype)
{
    return (struct matrix){memory[which], rows, cols, LD, dtype};
}

static number get(struct matrix x, int row, int col)
{
    const char *at = x.ptr + (col * x.ld + row) * (int64_t)accel_dtype_size(x.dtype);
    switch (x.dtype) {
    case ACCEL_FLOAT32:
        return *(const float *)at;
    case ACCEL_FLOAT64:
        return *(const double *)at;
    case ACCEL_COMPLEX64:
        return *(const float complex *)at;
    default:
        return *(const number *)at;
    }
}

static void set(struct matrix x, int row, int col, number value)
{
    char *at = x.ptr + (col * x.ld + row) * (int64_t)accel_dtype_size(x.dtype);
    switch (x.dtype) {
    case ACCEL_FLOAT32:
        *(float *)at = (float)creal(value);
        break;
    case ACCEL_FLOAT64:
        *(double *)at = creal(value);
        break;
    case ACCEL_COMPLEX64:
        *(float complex *)at = (float complex)value;
        break;
    default:
        *(number *)at = value;
    }
}

static number some(enum accel_dtype dtype)
{
    const double re = rand() % 17 - 8, im = rand() % 17 - 8;
    return accel_is_complex(dtype) ? CMPLX(re, im) : re;
}

/* All of the memory, beside the matrix, too. */
static void fill(struct matrix x)
{
    for (int j = 0; j < MOST; j++)
        for (int i = 0; i < LD; i++)
            set(x, i, j, i < x.rows && j < x.cols ? some(x.dtype) : UNTOUCHED);
}

static void assert_rest_is_untouched(struct matrix x)
{
    for (int j = 0; j < MOST; j++)
        for (int i = 0; i < LD; i++)
            if (i >= x.rows || j >= x.cols)
                assert_true(get(x, i, j) == UNTOUCHED);
}

#define EACH_TYPE_AND_ORDER                                                                        \
    for (int t = 0; t < 4; t++)                                                                    \
        for (size_t o = 0; o < sizeof orders / sizeof *orders; o++)
#define N    orders[o]
#define TYPE types[t]

static bool counts(char uplo, int i, int j)
{
    return uplo == 'L' ? i > j : i < j;
}

/* By `uplo` of what was in `from`: minus 3 on the diagonal, times -2. */
static void assert_is_mirrored(struct matrix to, struct matrix from, char uplo)
{
    for (int j = 0; j < to.cols; j++)
        for (int i = 0; i < to.rows; i++) {
            const number x = get(from, i, j), mirrored = conj(get(from, j, i));
            assert_true(get(to, i, j) == (i == j               ? -2 * (creal(x) - 3)
                                          : counts(uplo, i, j) ? -2 * x
                                                               : -2 * mirrored));
        }
    assert_rest_is_untouched(to);
}

static void a_triangle_is_mirrored(void **state)
{
    (void)state;
    EACH_TYPE_AND_ORDER for (int upper = 0; upper < 2; upper++)
    {
        const char uplo = upper ? 'U' : 'L';
        const struct matrix from = of_memory(0, N, N, TYPE), to = of_memory(1, N, N, TYPE);
        fill(from);
        fill(to);
        packed_mirror(to, from, uplo, 3, -2);
        assert_is_mirrored(to, from, uplo);
    }
}

static void a_triangle_is_mirrored_in_place(void **state)
{
    (void)state;
    EACH_TYPE_AND_ORDER for (int upper = 0; upper < 2; upper++)
    {
        const char uplo = upper ? 'U' : 'L';
        const struct matrix x = of_memory(0, N, N, TYPE), before = of_memory(1, N, N, TYPE);
        fill(x);
        packed_copy(before, x);
        packed_mirror(x, x, uplo, 3, -2);
        assert_is_mirrored(x, before, uplo);
    }
}

static void norms_are_those_of_the_whole(void **state)
{
    (void)state;
    EACH_TYPE_AND_ORDER for (int upper = 0; upper < 2; upper++)
    {
        const char uplo = upper ? 'U' : 'L';
        const struct matrix x = of_memory(0, N, N, TYPE);
        double square = 0, largest = 0;
        fill(x);
        for (int j = 0; j < N; j++)
            for (int i = 0; i < N; i++) {
                const number v = get(x, i, j);
                if (i == j) {
                    square += (creal(v) - 5) * (creal(v) - 5);
                    largest = fmax(largest, fabs(creal(v)));
                } else if (counts(uplo, i, j)) {
                    square += 2 * (creal(v) * creal(v) + cimag(v) * cimag(v));
                    largest = fmax(largest, fmax(fabs(creal(v)), fabs(cimag(v))));
                }
            }
        const struct packed_norms norms = packed_norms_of(x, uplo, 5);
        assert_true(norms.square == square && norms.largest == largest && norms.finite);
        for (int i = 0; i < N * N; i += 7) {
            const int row = i % N, col = i / N;
            const number kept = get(x, row, col);
            set(x, row, col, i % 2 ? NAN : -INFINITY);
            assert_int_equal(packed_norms_of(x, uplo, 0).finite,
                             row != col && !counts(uplo, row, col));
            set(x, row, col, kept);
        }
    }
}

static void elements_are_summed_and_copied(void **state)
{
    (void)state;
    EACH_TYPE_AND_ORDER for (int cols = 0; cols <= 5; cols += 5)
    {
        const struct matrix x = of_memory(0, N, cols, TYPE), to = of_memory(1, N, cols, TYPE);
        double square = 0;
        fill(x);
        fill(to);
        packed_copy(to, x);
        for (int j = 0; j < cols; j++)
            for (int i = 0; i < N; i++) {
                assert_true(get(to, i, j) == get(x, i, j));
                square += creal(get(x, i, j)) * creal(get(x, i, j)) +
                          cimag(get(x, i, j)) * cimag(get(x, i, j));
            }
        assert_true(packed_square(x) == square);
        assert_rest_is_untouched(to);
        if (cols < 5)
            continue;
        packed_swap_columns(to, 1, 3);
        for (int j = 0; j < cols; j++)
            for (int i = 0; i < N; i++)
                assert_true(get(to, i, j) == get(x, i, j == 1 ? 3 : j == 3 ? 1 : j));
        const struct matrix part = packed_columns(x, 2, 3);
        for (int j = 0; j < 3; j++)
            for (int i = 0; i < N; i++)
                assert_true(get(part, i, j) == get(x, i, j + 2));
        assert_true(part.cols == 3 && part.rows == N);
    }
}

static void the_diagonal_is_shifted(void **state)
{
    (void)state;
    EACH_TYPE_AND_ORDER
    {
        const struct matrix x = of_memory(0, N, N, TYPE), before = of_memory(1, N, N, TYPE);
        double trace = 0;
        fill(x);
        fill(before);
        packed_copy(before, x);
        for (int i = 0; i < N; i++) {
            assert_true(packed_diagonal(x, i) == creal(get(x, i, i)));
            trace += creal(get(x, i, i));
        }
        assert_true(packed_trace(x) == trace);
        packed_shift_diagonal(x, 4);
        for (int j = 0; j < N; j++)
            for (int i = 0; i < N; i++) {
                const number was = get(before, i, j);
                assert_true(get(x, i, j) == (i == j ? creal(was) + 4 : was));
            }
        assert_rest_is_untouched(x);
        packed_identity(x);
        for (int j = 0; j < N; j++)
            for (int i = 0; i < N; i++)
                assert_true(get(x, i, j) == (i == j));
        assert_rest_is_untouched(x);
    }
}

/* As uniform as the mean and the mean square tell, up to the bounds, and other ones each time. */
static void random_numbers_fill_it(void **state)
{
    (void)state;
    for (int t = 0; t < 4; t++) {
        const struct matrix x = of_memory(0, 64, 64, TYPE), y = of_memory(1, 64, 64, TYPE);
        const int parts = accel_is_complex(TYPE) ? 2 : 1;
        uint64_t seed = 1, same = 1;
        double sum = 0, square = 0, largest = 0;
        fill(x);
        fill(y);
        packed_random(x, 4, &seed);
        assert_rest_is_untouched(x);
        packed_random(y, 4, &same);
        assert_true(seed == same && seed != 1);
        for (int j = 0; j < 64; j++)
            for (int i = 0; i < 64; i++)
                for (int part = 0; part < parts; part++) {
                    const double v = part ? cimag(get(x, i, j)) : creal(get(x, i, j));
                    assert_true(v >= -4 && v <= 4 && get(x, i, j) == get(y, i, j));
                    sum += v;
                    square += v * v;
                    largest = fmax(largest, v);
                }
        assert_true(fabs(sum) / (4096 * parts) < 0.15);
        assert_true(fabs(square / (4096 * parts) - 16. / 3) < 0.3 && largest > 3.9);
        packed_random(y, 4, &same);
        assert_true(get(x, 0, 0) != get(y, 0, 0) && get(x, 0, 0) != get(x, 1, 0));
    }
}

static void memory_is_had_or_only_addressed(void **state)
{
    (void)state;
    struct packed_memory real = packed_take(1 << 20, false), none = packed_take(1 << 20, true);
    assert_true(real.ptr && none.ptr && real.bytes == 1 << 20 && none.bytes == 1 << 20);
    memset(real.ptr, 1, 1 << 20);
    packed_free(&real);
    packed_free(&none);
    assert_true(!real.ptr && !none.ptr);
    packed_free(&none);
    none = packed_take(INT64_MAX / 2, true);
    assert_null(none.ptr);
    const struct matrix x = packed_at(memory[0], 0, 3, ACCEL_FLOAT64);
    assert_true(x.ld == 1 && x.rows == 0 && x.cols == 3);
    assert_int_equal(packed_at(memory[0], 7, 3, ACCEL_FLOAT64).ld, 7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_triangle_is_mirrored),
                                       cmocka_unit_test(a_triangle_is_mirrored_in_place),
                                       cmocka_unit_test(norms_are_those_of_the_whole),
                                       cmocka_unit_test(elements_are_summed_and_copied),
                                       cmocka_unit_test(the_diagonal_is_shifted),
                                       cmocka_unit_test(random_numbers_fill_it),
                                       cmocka_unit_test(memory_is_had_or_only_addressed)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
