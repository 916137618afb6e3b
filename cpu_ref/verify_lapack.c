#include "verify_test.h"

#include "call/operation.h"
#include "call/shape.h"

/* ---- Copies ---- */

void check_lacpy(struct test *t)
{
    const struct view a = test_input(t, ACCEL_a), b = test_result(t, ACCEL_b);
    const char uplo = t->call->blas.flag[ACCEL_uplo];
    const size_t size = accel_dtype_size(t->dtype);
    bool same = true;
    for (int64_t col = 0; col < a.cols && same; col++) {
        int64_t from = uplo == 'L' ? accel_min(col, a.rows) : 0,
                to = uplo == 'U' ? accel_min(col + 1, a.rows) : a.rows;
        same = memcmp((const char *)a.ptr + (size_t)(from + col * a.ld) * size,
                      (const char *)b.ptr + (size_t)(from + col * b.ld) * size,
                      (size_t)(to - from) * size) == 0;
    }
    test_note(t, same ? 0 : INFINITY);
}

/* B of a pencil; elsewhere it has right-hand sides. */
static bool is_second_triangle(const struct accel_call *call, enum accel_matrix which)
{
    return which == ACCEL_b && accel_has_size(call->routine, ACCEL_n) &&
           !accel_has_size(call->routine, ACCEL_nrhs) && !accel_has_size(call->routine, ACCEL_m);
}

/* What the routine reads of an operand: elsewhere may be anything. */
static struct view read_part(const struct test *t, enum accel_matrix which)
{
    const struct accel_call *call = t->call;
    const struct view x = test_input(t, which);
    const int64_t m = call->blas.size[ACCEL_m], n = call->blas.size[ACCEL_n];
    const char trans = call->blas.flag[ACCEL_trans],
               uplo = which == ACCEL_a || is_second_triangle(call, which)
                          ? call->blas.flag[ACCEL_uplo]
                          : call->span[which].triangle;
    const bool least_squares =
        accel_has_size(call->routine, ACCEL_m) && accel_has_size(call->routine, ACCEL_nrhs);
    if (which == ACCEL_a && call->op->traits.reflectors)
        return view_shaped(view_part(&x, 0, x.rows, 0, call->blas.size[ACCEL_k]), UNIT_TRIANGULAR,
                           'L');
    if (which == ACCEL_b && least_squares)
        return view_part(&x, 0, trans && trans != 'N' ? n : m, 0, x.cols);
    if ((uplo != 'U' && uplo != 'L') || (which == ACCEL_a && call->op->traits.packed))
        return x;
    return view_shaped(x, call->blas.flag[ACCEL_diag] == 'U' ? UNIT_TRIANGULAR : SYMMETRIC, uplo);
}

/* NaN and very large inputs are not judged: the original computes those calls. Another library's
 * check looks itself: the table does not say which elements its function reads. */
static bool are_inputs_numbers(const struct test *t)
{
    if (t->call->op->foreign)
        return true;
    for (int i = ACCEL_a; i <= ACCEL_c; i++) {
        const struct accel_span *x = &t->call->span[i];
        if (!x->ptr || x->access == ACCEL_WRITE || x->dtype > ACCEL_BFLOAT16)
            continue;
        const struct view view = read_part(t, (enum accel_matrix)i);
        if (!test_takes(t, &view))
            return false;
    }
    return true;
}

double cpu_ref_verify_lapack(const struct accel_call *call, const void *const before[ACCEL_SPANS],
                             uint64_t seed)
{
    cpu_ref_check *const check = accel_rules_of(call->op)->check;
    struct test t = {.call = call,
                     .before = before,
                     .dtype = call->routine->dtype,
                     .parts = parts_of(call->routine->dtype),
                     .worst = CPU_REF_NOT_JUDGED};
    for (int i = 0; i < ACCEL_DIMENSIONS; i++)
        t.order = accel_max(t.order, accel_sizes(call)[i]);
    if (!are_inputs_numbers(&t) || !vectors_open(&t.vectors, 24, t.order, seed))
        return CPU_REF_NOT_JUDGED;
    if (check)
        check(&t);
    vectors_close(&t.vectors);
    if (isnan(t.worst))
        return INFINITY;
    return t.open && t.worst <= 1 ? CPU_REF_NOT_JUDGED : t.worst;
}
