/* Calls cut into parts, and parts of a triangle that an original computes (ops/cut.h). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "call/shape.h"
#include "ops/cut.h"
#include "ops/typical.h"
#include "tests/lib/routine.h"

enum { N = 9, LD = 11, K = 3 };

static double a[LD * N], b[LD * N], c[LD * N];

static struct accel_call call_of(const char *name, char uplo)
{
    struct accel_call call;
    shape_typical(&call, routine(name), (int64_t[ACCEL_DIMENSIONS]){N, N, K, 0});
    call.blas.flag[ACCEL_uplo] = uplo;
    shape_operands(&call);
    double *const memory[] = {[ACCEL_a] = a, [ACCEL_b] = b, [ACCEL_c] = c};
    for (int i = ACCEL_a; i <= ACCEL_c; i++) {
        call.span[i].ptr = call.span[i].rows ? memory[i] : NULL;
        call.span[i].ld = LD;
    }
    return call;
}

static void whole_results(void **state)
{
    const struct accel_call product = call_of("dgemm", 0), triangle = call_of("dsyrk", 'L'),
                            upper = call_of("dsyrk", 'U');
    struct accel_call batch = call_of("dgemm_batch_strided", 0), scaled = call_of("dsyrk", 'L');
    (void)state;
    batch.batch = 6;
    scaled.blas.scalar[ACCEL_alpha].re = 0;
    const struct accel_region of_product = accel_cut_whole(&product),
                              of_triangle = accel_cut_whole(&triangle),
                              of_batch = accel_cut_whole(&batch);
    assert_true(of_product.rows == N && of_product.cols == N && of_product.blocks == 0);
    assert_true(of_triangle.rows == N && of_triangle.cols == 0 &&
                of_triangle.blocks == SCHEDULE_TAIL);
    assert_true(of_batch.rows == 1 && of_batch.cols == 6);
    assert_true(!(of_product.row || of_product.col || of_triangle.row || of_triangle.col ||
                  of_batch.row || of_batch.col));
    /* Memory for a copy is wanted for triangles alone, and for those that are cut. */
    assert_int_equal(accel_cut_copy_bytes(&triangle), N * N * 8);
    assert_int_equal(accel_cut_copy_bytes(&upper), N * N * 8);
    assert_int_equal(accel_cut_copy_bytes(&product), 0);
    assert_int_equal(accel_cut_copy_bytes(&batch), 0);
    assert_int_equal(accel_cuts_of(&scaled), 0);
    assert_int_equal(accel_cut_copy_bytes(&scaled), 0);
}

static void parts_of_products(void **state)
{
    struct accel_call batch = call_of("dgemm_batch_strided", 0);
    const struct accel_call product = call_of("dgemm", 0);
    (void)state;
    batch.batch = 6;
    batch.span[ACCEL_c].stride = 5;
    const struct accel_call some =
        accel_cut_part(&batch, &(struct accel_region){.col = 2, .rows = 1, .cols = 3});
    assert_int_equal(some.batch, 3);
    assert_ptr_equal(some.span[ACCEL_c].ptr, c + 10);
    const struct accel_call rectangle =
        accel_cut_part(&product, &(struct accel_region){2, 1, 4, 3, 0});
    assert_ptr_equal(rectangle.span[ACCEL_c].ptr, c + 2 + LD);
    assert_int_equal(rectangle.span[ACCEL_c].rows, 4);
    assert_int_equal(rectangle.span[ACCEL_c].cols, 3);
    assert_ptr_equal(rectangle.span[ACCEL_a].ptr, a + 2);
    assert_ptr_equal(rectangle.span[ACCEL_b].ptr, b + LD);
}

/* ---- Parts of a triangle ---- */

/* Whether an element of the triangle is of the region: by its lines, seen as a lower triangle. */
static bool is_of(const struct accel_region *region, char uplo, int64_t row, int64_t col)
{
    const int64_t i = uplo == 'L' ? row : col, j = uplo == 'L' ? col : row;
    const bool i_head = i >= region->col && i < region->col + region->cols,
               j_head = j >= region->col && j < region->col + region->cols,
               i_tail = i >= region->row && i < region->row + region->rows,
               j_tail = j >= region->row && j < region->row + region->rows;
    if (i < j)
        return false;
    return (i_head && j_head && region->blocks & SCHEDULE_HEAD) ||
           (i_tail && j_head && region->blocks & SCHEDULE_BETWEEN) ||
           (i_tail && j_tail && region->blocks & SCHEDULE_TAIL);
}

/* The original of a whole triangle: it changes each element that it is given, by what it was. */
static bool original(void *context, const struct accel_call *call)
{
    const struct accel_span *x = &call->span[ACCEL_c];
    double *elements = x->ptr;
    int *calls = context;
    ++*calls;
    assert_true(call->blas.head == 0 && call->blas.gap == 0 && call->blas.omits == 0);
    assert_int_equal(x->rows, x->cols);
    assert_int_equal(call->blas.size[ACCEL_n], x->cols);
    for (int64_t j = 0; j < x->cols; j++)
        for (int64_t i = 0; i < x->rows; i++)
            if (x->triangle == 'L' ? i >= j : i <= j)
                elements[i + j * x->ld] = elements[i + j * x->ld] * 2 + 1;
    return true;
}

static bool fails(void *context, const struct accel_call *call)
{
    (void)context;
    (void)call;
    return false;
}

static void fill(void)
{
    for (int i = 0; i < LD * N; i++)
        c[i] = i + 1;
}

/* Each element of the part gets what the original makes of it, and no other changes. */
static void check_part(const struct accel_region *region, char uplo)
{
    static double copy[N * N];
    const struct accel_call call = call_of("dsyrk", uplo), part = accel_cut_part(&call, region);
    int calls = 0;
    fill();
    memset(copy, 0, sizeof copy);
    assert_true(accel_cut_by_original(&part, copy, original, &calls));
    assert_int_equal(calls, 1);
    for (int64_t j = 0; j < N; j++)
        for (int64_t i = 0; i < LD; i++) {
            const double was = (double)(i + j * LD + 1);
            const double expected = i < N && is_of(region, uplo, i, j) ? was * 2 + 1 : was;
            if (c[i + j * LD] != expected)
                fail_msg("%c, lines %d + %d and %d + %d, blocks %d: element (%d, %d) is %g, not %g",
                         uplo, (int)region->col, (int)region->cols, (int)region->row,
                         (int)region->rows, (int)region->blocks, (int)i, (int)j, c[i + j * LD],
                         expected);
        }
    fill();
    assert_false(accel_cut_by_original(&part, copy, fails, NULL));
    for (int i = 0; i < LD * N; i++)
        assert_true(c[i] == i + 1);
}

static void parts_of_triangles(void **state)
{
    (void)state;
    for (int64_t col = 0; col < N; col += 2)
        for (int64_t cols = 0; col + cols < N; cols += 3)
            for (int64_t row = col + cols; row < N; row += 2)
                for (int64_t rows = 1; row + rows <= N; rows += 3)
                    for (int64_t blocks = 1; blocks <= SCHEDULE_BLOCKS; blocks++) {
                        const struct accel_region region = {row, col, rows, cols,
                                                            cols ? blocks : SCHEDULE_TAIL};
                        check_part(&region, 'L');
                        check_part(&region, 'U');
                    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(whole_results),
                                       cmocka_unit_test(parts_of_products),
                                       cmocka_unit_test(parts_of_triangles)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
