/*
 * potrf, potrs, posv, potri, lauum: of a symmetric or Hermitian matrix one triangle, which alone is read and written.
 */
#include "gpu/cuda/cusolver_call.h"

static void factor(struct solver *s, char uplo, struct array a)
{
    GENERIC(s, cusolverDnXpotrf, SOLVER_PARAMS(s), fill(uplo), a.rows, s->type, MATRIX(a), s->type);
    solver_require_success(s);
}

static void solve(struct solver *s, char uplo, struct array a, struct array b)
{
    if (b.cols == 0)
        return;
    SOLVE(s, cusolverDnXpotrs, SOLVER_PARAMS(s), fill(uplo), a.rows, b.cols, s->type, MATRIX(a),
          s->type, MATRIX(b), SOLVER_INFO(s));
    solver_require_success(s);
}

/* From the factor: the inverse, or the factor's product with its own transpose. */
static void multiply(struct solver *s, enum accel_family family, char uplo, struct array a)
{
    if (!solver_fits_int(s, a.rows, a.ld))
        return;
    if (family == ACCEL_POTRI)
        LEGACY(s, potri, potri, fill(uplo), (int)a.rows, TYPED(a));
    else
        LEGACY(s, lauum, lauum, fill(uplo), (int)a.rows, TYPED(a));
    solver_require_success(s);
}

enum gpu_status gpu_cholesky(struct gpu_work *work)
{
    const struct accel_call *call = work->call;
    const struct accel_operand *a = &call->operand[ACCEL_a], *b = &call->operand[ACCEL_b];
    enum accel_family family = call->routine->family;
    char uplo = call->flag[ACCEL_uplo];
    struct solver s;
    solver_begin(&s, work);
    if (family == ACCEL_POTRI)
        solver_refuse_zero_diagonal(&s, a);
    bool hermitian = family == ACCEL_POTRF || family == ACCEL_POSV; /* else a factor */
    struct array factored =
        hermitian ? solver_upload_hermitian(&s, a, uplo) : solver_upload(&s, a, uplo);
    if (hermitian)
        factor(&s, uplo, factored);
    if (family == ACCEL_POTRI || family == ACCEL_LAUUM)
        multiply(&s, family, uplo, factored);
    if (family == ACCEL_POTRS || family == ACCEL_POSV) {
        struct array x = solver_upload(&s, b, 0);
        solve(&s, uplo, factored, x);
        solver_return(&s, b, x, 0);
    }
    if (family != ACCEL_POTRS)
        solver_return(&s, a, factored, uplo);
    return solver_end(&s);
}
