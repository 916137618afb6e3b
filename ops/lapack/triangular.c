/*
 * trtrs, trtri. Only the triangle is read; where the diagonal counts as ones, it is neither read nor written.
 */
#include "gpu/cuda/cusolver_call.h"

/* The triangle as a part of a matrix: without its diagonal where that is not used. */
static char triangle(const struct accel_call *call)
{
    char uplo = call->flag[ACCEL_uplo];
    return call->flag[ACCEL_diag] == 'U' ? (char)(uplo - 'A' + 'a') : uplo;
}

enum gpu_status gpu_triangular(struct gpu_work *work)
{
    const struct accel_call *call = work->call;
    const struct accel_operand *a = &call->operand[ACCEL_a], *b = &call->operand[ACCEL_b];
    char uplo = call->flag[ACCEL_uplo], diag = call->flag[ACCEL_diag];
    struct solver s;
    solver_begin(&s, work);
    if (diag == 'N')
        solver_refuse_zero_diagonal(&s, a);
    struct array t = solver_upload(&s, a, triangle(call));
    if (call->routine->family == ACCEL_TRTRS) {
        struct array x = solver_upload(&s, b, 0);
        solver_trsm(&s, uplo, call->flag[ACCEL_trans], diag, t, x);
        solver_return(&s, b, x, 0);
    } else {
        GENERIC(&s, cusolverDnXtrtri, fill(uplo), diagonal(diag), t.rows, s.type, MATRIX(t));
        solver_require_success(&s);
        solver_return(&s, a, t, triangle(call));
    }
    return solver_end(&s);
}
