/* Operands that have elements in common, compared with a list of all their elements. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "ops/op.h"
#include "ops/overlap.h"
#include "tests/lib/draw.h"
#include "tests/lib/routine.h"

enum { ELEMENTS = 400, BATCH = 4, ROUNDS = 30000 };

static double memory[ELEMENTS];
static struct accel_span matrix(int64_t ld, int64_t most_rows, enum accel_access access)
{
    return (struct accel_span){.ptr = memory + below(ELEMENTS / 4),
                               .rows = 1 + below(most_rows),
                               .cols = 1 + below(3),
                               .ld = ld,
                               .dtype = ACCEL_FLOAT64,
                               .access = access};
}

static double *matrix_of(const struct accel_span *x, int64_t i)
{
    return x->array ? x->array[i] : (double *)x->ptr + i * x->stride;
}

/* Counts into `times` how often each element belongs to a matrix of the batch. */
static void count_elements(const struct accel_span *x, int64_t batch, int times[ELEMENTS])
{
    for (int64_t i = 0; i < (x->array || x->stride ? batch : 1); i++)
        for (int64_t col = 0; col < x->cols; col++)
            for (int64_t row = 0; row < x->rows; row++)
                times[matrix_of(x, i) - memory + col * x->ld + row]++;
}

static bool common(const struct accel_span *x, const struct accel_span *y, int64_t batch)
{
    int of_x[ELEMENTS] = {0}, of_y[ELEMENTS] = {0};
    count_elements(x, batch, of_x);
    count_elements(y, batch, of_y);
    for (int i = 0; i < ELEMENTS; i++)
        if (of_x[i] && of_y[i])
            return true;
    return false;
}

static bool shares_with_itself(const struct accel_span *x, int64_t batch)
{
    int times[ELEMENTS] = {0};
    count_elements(x, batch, times);
    for (int i = 0; i < ELEMENTS; i++)
        if (times[i] > 1)
            return true;
    return false;
}

/* C of a product, written, and A, which has the same stride or none. */
static void batches_with_strides(void **state)
{
    int shared = 0;
    (void)state;
    for (int round = 0; round < ROUNDS; round++) {
        const int64_t ld = 1 + below(9);
        struct accel_call call = accel_call_of(routine("dgemm_batch_strided"));
        call.batch = 1 + below(BATCH);
        struct accel_span *a = &call.span[ACCEL_a], *c = &call.span[ACCEL_c];
        *a = matrix(ld, ld, ACCEL_READ);
        *c = matrix(ld, ld, ACCEL_READ | ACCEL_WRITE);
        c->stride = 1 + below(30);
        a->stride = below(2) ? c->stride : 0;
        const bool expected = common(a, c, call.batch);
        assert_int_equal(overlap_in_call(&call), expected);
        assert_int_equal(overlap_in_strides(c, call.batch), shares_with_itself(c, call.batch));
        shared += expected;
    }
    assert_in_range(shared, ROUNDS / 10, ROUNDS * 9 / 10);
}

/* The same in arrays of pointers, in any order. */
static void batches_in_arrays(void **state)
{
    int shared = 0;
    (void)state;
    for (int round = 0; round < ROUNDS; round++) {
        const int64_t ld = 1 + below(9);
        void *of_a[BATCH], *of_c[BATCH];
        struct accel_call call = accel_call_of(routine("dgemm_batch"));
        call.batch = 1 + below(BATCH);
        struct accel_span *a = &call.span[ACCEL_a], *c = &call.span[ACCEL_c];
        *a = matrix(ld, ld, ACCEL_READ);
        *c = matrix(ld, ld, ACCEL_READ | ACCEL_WRITE);
        for (int i = 0; i < BATCH; i++) {
            of_a[i] = memory + below(ELEMENTS / 2);
            of_c[i] = memory + below(ELEMENTS / 2);
        }
        a->array = of_a;
        c->array = of_c;
        const bool expected = common(a, c, call.batch) || shares_with_itself(c, call.batch);
        assert_int_equal(overlap_in_call(&call), expected);
        shared += expected;
    }
    assert_in_range(shared, ROUNDS / 10, ROUNDS * 9 / 10);
}

/* Whether an operand is a single column, of no more rows than the other's columns are apart. */
static bool fits_column(const struct accel_span *x, const struct accel_span *other)
{
    return x->cols == 1 && (x->rows <= other->ld || other->cols == 1);
}

/* Matrices with other leading dimensions may count as overlapping, but never the other way round. A
 * single column has none. */
static void other_leading_dimensions(void **state)
{
    int apart = 0;
    (void)state;
    for (int round = 0; round < ROUNDS; round++) {
        const int64_t ld_a = 1 + below(8), ld_c = 1 + below(8);
        struct accel_call call = accel_call_of(routine("dgemm"));
        call.batch = 1;
        struct accel_span *a = &call.span[ACCEL_a], *c = &call.span[ACCEL_c];
        *a = matrix(ld_a, ld_a, ACCEL_READ);
        *c = matrix(ld_c, ld_c, ACCEL_READ | ACCEL_WRITE);
        const bool is = overlap_in_call(&call);
        assert_true(is || !common(a, c, 1));
        if (fits_column(a, c) || fits_column(c, a))
            assert_int_equal(is, common(a, c, 1));
        apart += !is;
    }
    assert_in_range(apart, ROUNDS / 10, ROUNDS * 9 / 10);
}

/* Many are not compared: they count as overlapping. So many still are. */
static void as_many_as_are_compared(void **state)
{
    enum { MANY = 65536, FAR = 1 << 20 };
    struct accel_span x = {.ptr = memory,
                           .rows = 1,
                           .cols = 2,
                           .ld = FAR,
                           .stride = 1,
                           .dtype = ACCEL_FLOAT64,
                           .access = ACCEL_WRITE};
    (void)state;
    assert_false(overlap_in_strides(&x, MANY + 1)); /* each is compared with MANY behind it */
    assert_true(overlap_in_strides(&x, MANY + 2));
    struct accel_call call = accel_call_of(routine("dgemm_batch_strided"));
    x.stride = 2;
    call.span[ACCEL_c] = x;
    x.ptr = memory + 1;
    x.access = ACCEL_READ;
    call.span[ACCEL_a] = x;
    call.batch = MANY;
    assert_false(overlap_in_call(&call));
    call.span[ACCEL_a].stride = 4; /* two strides are not compared, either */
    assert_true(overlap_in_call(&call));
    call.span[ACCEL_a].stride = 2;
    call.batch = MANY + 1;
    assert_true(overlap_in_call(&call));
    /* But those of which one ends where the other begins: each has FAR + 1 + 2 * MANY elements. */
    const uintptr_t end = (uintptr_t)call.span[ACCEL_a].ptr + 8 * (FAR + 1 + 2 * MANY);
    call.span[ACCEL_c].ptr = (void *)end;
    assert_false(overlap_in_call(&call));
    call.span[ACCEL_c].ptr = (void *)(end - 8);
    assert_true(overlap_in_call(&call));
    call.span[ACCEL_c].ptr = call.span[ACCEL_a].ptr;
    call.span[ACCEL_a].ptr = (void *)end;
    assert_false(overlap_in_call(&call));
    call.span[ACCEL_a].ptr = (void *)(end - 8);
    assert_true(overlap_in_call(&call));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(batches_with_strides), cmocka_unit_test(batches_in_arrays),
        cmocka_unit_test(other_leading_dimensions), cmocka_unit_test(as_many_as_are_compared)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
