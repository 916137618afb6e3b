/*
 * Matrices in host memory that are rearranged: columns exchanged, the adjoint made. Each element is
 * where it should be, whatever the shape, and with help as without.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "gpu/pack/adjoint.h"
#include "gpu/pack/exchange.h"

static uint64_t state = 1;

static int64_t random_below(int64_t n)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (int64_t)((state >> 33) % (uint64_t)n);
}

/* A matrix whose real and imaginary parts tell where they are. */
static char *numbered(enum accel_dtype dtype, int64_t ld, int64_t cols)
{
    const int parts = accel_is_complex(dtype) ? 2 : 1;
    char *x = malloc((size_t)(ld * cols + 1) * accel_dtype_size(dtype));
    assert_non_null(x);
    for (int64_t i = 0; i < ld * cols * parts; i++)
        if (accel_is_double(dtype))
            ((double *)x)[i] = (double)(i + 1);
        else
            ((float *)x)[i] = (float)(i + 1);
    return x;
}

static double part_at(const char *x, enum accel_dtype dtype, int64_t number)
{
    return accel_is_double(dtype) ? ((const double *)x)[number] : ((const float *)x)[number];
}

static void check_adjoint(enum accel_dtype dtype, int64_t rows, int64_t cols, int64_t ld)
{
    const int parts = accel_is_complex(dtype) ? 2 : 1;
    char *from = numbered(dtype, ld, cols), *to = numbered(dtype, cols, rows);
    adjoint_of(to, (struct matrix){from, rows, cols, ld, dtype});
    for (int64_t row = 0; row < rows; row++)
        for (int64_t col = 0; col < cols; col++)
            for (int part = 0; part < parts; part++)
                assert_true(part_at(to, dtype, (row * cols + col) * parts + part) ==
                            (part ? -1 : 1) *
                                part_at(from, dtype, (col * ld + row) * parts + part));
    free(from);
    free(to);
}

static void adjoints(void **unused)
{
    static const enum accel_dtype dtypes[] = {ACCEL_FLOAT32, ACCEL_FLOAT64, ACCEL_COMPLEX64,
                                              ACCEL_COMPLEX128};
    (void)unused;
    for (int i = 0; i < 400; i++) {
        const int64_t rows = 1 + random_below(100), cols = 1 + random_below(100);
        check_adjoint(dtypes[i % 4], rows, cols, rows + random_below(5));
    }
    for (int i = 0; i < 4; i++) /* more than a call does alone */
        check_adjoint(dtypes[i], 700, 1100, 703);
}

/* The columns are exchanged as a list of their numbers is. */
static void check_exchange(int64_t rows, int64_t cols, int64_t size)
{
    char *x = malloc((size_t)(rows * cols * size) + 1);
    int64_t *pivots = malloc((size_t)cols * sizeof *pivots),
            *now = malloc((size_t)cols * sizeof *now);
    assert_true(x && pivots && now);
    for (int64_t col = 0; col < cols; col++) {
        pivots[col] = 1 + random_below(cols);
        now[col] = col;
        for (int64_t i = 0; i < rows * size; i++)
            x[col * rows * size + i] = (char)(31 * col + i);
    }
    for (int64_t col = cols; col-- > 0;) {
        const int64_t other = pivots[col] - 1, kept = now[col];
        now[col] = now[other];
        now[other] = kept;
    }
    exchange_columns_back(x, rows, cols, size, pivots);
    for (int64_t col = 0; col < cols; col++)
        for (int64_t i = 0; i < rows * size; i++)
            assert_int_equal(x[col * rows * size + i], (char)(31 * now[col] + i));
    free(x);
    free(pivots);
    free(now);
}

static void exchanges_of_columns(void **unused)
{
    static const int64_t sizes[] = {4, 8, 16};
    (void)unused;
    for (int i = 0; i < 200; i++)
        check_exchange(1 + random_below(50), 1 + random_below(50), sizes[i % 3]);
    check_exchange(5000, 60, 8);  /* columns longer than a part of them */
    check_exchange(40000, 12, 4); /* more than a call does alone */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(adjoints),
        cmocka_unit_test(exchanges_of_columns),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
