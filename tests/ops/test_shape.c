/*
 * A part of a call as a call of its own: where each operand begins, and its shape.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "ops/names.h"
#include "call/shape.h"
#include "ops/typical.h"

static char memory[1 << 16];

/* An operand of a part: the element of the whole one that it begins with, and its shape. */
struct expected {
    enum accel_matrix which;
    int64_t row, col, rows, cols;
};

/* Of sizes m = 7, n = 5, k = 3, leading dimensions one larger than need be, all vectors with this
 * increment. */
static struct accel_call call_of(const char *name, char trans, int64_t inc)
{
    struct accel_call call;
    shape_typical(&call, accel_name_routine((uint32_t)accel_name_find(name)),
                  (int64_t[ACCEL_DIMENSIONS]){7, 5, 3, 0});
    call.blas.flag[ACCEL_transa] = call.blas.flag[ACCEL_transb] = call.blas.flag[ACCEL_trans] =
        trans;
    shape_operands(&call);
    for (int i = 0; i < ACCEL_SPANS; i++) {
        struct accel_span *x = &call.span[i];
        bool vector = i == ACCEL_x || i == ACCEL_y;
        x->ptr = memory + i * 1024;
        x->inc = vector ? inc : 0;
        x->ld = vector ? (inc < 0 ? -inc : inc) : x->rows + 1;
    }
    return call;
}

static void check(const struct accel_call *call, const struct accel_call *part,
                  const struct expected *expected, int count)
{
    for (int i = 0; i < count; i++) {
        const struct expected *e = &expected[i];
        const struct accel_span *x = &call->span[e->which], *y = &part->span[e->which];
        int64_t at = e->col * x->ld + e->row;
        if (x->inc < 0) /* element j of n is stored at (n - 1 - j) |inc| */
            at = (x->cols - e->col - e->cols) * -x->inc;
        assert_int_equal((char *)y->ptr - (char *)x->ptr,
                         at * (int64_t)accel_dtype_size(call->routine->dtype));
        assert_int_equal(y->rows, e->rows);
        assert_int_equal(y->cols, e->cols);
        assert_int_equal(y->ld, x->ld);
    }
}

static void sizes_beyond_all_memory(void **state)
{
    struct accel_call call;
    (void)state;
    shape_typical(&call, accel_name_routine((uint32_t)accel_name_find("dgemm_")),
                  (int64_t[ACCEL_DIMENSIONS]){(int64_t)1 << 32, (int64_t)1 << 33, 3, 0});
    assert_int_equal(call.span[ACCEL_c].stride, INT64_MAX);
    assert_int_equal(call.span[ACCEL_a].stride, (int64_t)3 << 32);
}

static void a_rectangle_of_a_product(void **state)
{
    static const struct expected plain[] = {
        {ACCEL_a, 2, 0, 4, 3}, {ACCEL_b, 0, 1, 3, 3}, {ACCEL_c, 2, 1, 4, 3}};
    static const struct expected transposed[] = {
        {ACCEL_a, 0, 2, 3, 4}, {ACCEL_b, 1, 0, 3, 3}, {ACCEL_c, 2, 1, 4, 3}};
    (void)state;
    for (int i = 0; i < 2; i++) {
        const struct accel_call call = call_of("zgemm_", i == 0 ? 'N' : 'C', 0);
        const struct accel_call part = shape_part(&call, 2, 1, 4, 3);
        check(&call, &part, i == 0 ? plain : transposed, 3);
        assert_int_equal(part.blas.size[ACCEL_m], 4);
        assert_int_equal(part.blas.size[ACCEL_n], 3);
        assert_int_equal(part.blas.size[ACCEL_k], 3);
    }
}

/* The part is at its own place, and no longer in the array, which has the whole one. */
static void a_rectangle_of_a_batch_of_one(void **state)
{
    struct accel_call call = call_of("dgemm_batch_", 'N', 0);
    (void)state;
    call.batch = 1;
    void *at[3];
    for (int i = 0; i < 3; i++) {
        at[i] = call.span[i].ptr;
        call.span[i].array = &at[i];
    }
    const struct accel_call part = shape_part(&call, 2, 1, 4, 3);
    for (int i = 0; i < 3; i++) {
        assert_null(part.span[i].array);
        assert_ptr_equal(accel_products_of(&part, 0, 1).span[i].ptr, part.span[i].ptr);
    }
    assert_true((char *)part.span[ACCEL_c].ptr - (char *)at[ACCEL_c] ==
                (2 + call.span[ACCEL_c].ld) * 8);
}

static void columns_beside_a_square_matrix(void **state)
{
    static const struct expected expected[] = {{ACCEL_a, 0, 0, 7, 7}, {ACCEL_b, 0, 3, 7, 2}};
    const struct accel_call call = call_of("dtrsm_", 'T', 0);
    const struct accel_call part = shape_part(&call, 0, 3, 7, 2);
    (void)state;
    check(&call, &part, expected, 2);
}

static void a_triangle_of_a_triangle(void **state)
{
    static const struct expected plain[] = {{ACCEL_a, 2, 0, 3, 3}, {ACCEL_c, 2, 2, 3, 3}};
    static const struct expected transposed[] = {{ACCEL_a, 0, 2, 3, 3}, {ACCEL_c, 2, 2, 3, 3}};
    (void)state;
    for (int i = 0; i < 2; i++) {
        const struct accel_call call = call_of("ssyrk_", i == 0 ? 'N' : 'T', 0);
        const struct accel_call part = shape_part(&call, 2, 2, 3, 3);
        check(&call, &part, i == 0 ? plain : transposed, 2);
        assert_int_equal(part.blas.size[ACCEL_m], 0); /* it has none */
        assert_int_equal(part.blas.size[ACCEL_n], 3);
    }
}

static void columns_of_an_update_by_vectors(void **state)
{
    static const struct expected expected[] = {
        {ACCEL_a, 0, 3, 7, 2}, {ACCEL_x, 0, 0, 1, 7}, {ACCEL_y, 0, 3, 1, 2}};
    (void)state;
    for (int64_t inc = -2; inc <= 2; inc += 4) {
        const struct accel_call call = call_of("dger_", 'N', inc);
        const struct accel_call part = shape_part(&call, 0, 3, 7, 2);
        check(&call, &part, expected, 3);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes_beyond_all_memory),
        cmocka_unit_test(a_rectangle_of_a_product),
        cmocka_unit_test(a_rectangle_of_a_batch_of_one),
        cmocka_unit_test(columns_beside_a_square_matrix),
        cmocka_unit_test(a_triangle_of_a_triangle),
        cmocka_unit_test(columns_of_an_update_by_vectors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
