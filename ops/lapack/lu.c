/*
 * getrf, getrs, gesv, getri: LU with partial pivoting. cuSOLVER has no getri: the inverse is the solution for the
 * identity.
 */
#include "gpu/cuda/cusolver_call.h"

static struct array factor(struct solver *s, struct array a)
{
    struct array pivots = solver_vector(s, accel_min(a.rows, a.cols), ACCEL_INT64);
    size_t on_device = 0, on_host = 0;
    SOLVE(s, cusolverDnXgetrf_bufferSize, SOLVER_PARAMS(s), a.rows, a.cols, s->type, MATRIX(a),
          s->type, &on_device, &on_host);
    struct array work = solver_work(s, on_device);
    void *host = solver_host_work(s, on_host);
    SOLVE(s, cusolverDnXgetrf, SOLVER_PARAMS(s), a.rows, a.cols, s->type, MATRIX(a), PIVOTS(pivots),
          s->type, AT(work), on_device, host, on_host, SOLVER_INFO(s));
    solver_require_success(s);
    return pivots;
}

static void solve(struct solver *s, char trans, struct array a, struct array pivots, struct array b)
{
    if (b.cols == 0)
        return;
    SOLVE(s, cusolverDnXgetrs, SOLVER_PARAMS(s), operation(trans), a.rows, b.cols, s->type,
          MATRIX(a), PIVOTS(pivots), s->type, MATRIX(b), SOLVER_INFO(s));
    solver_require_success(s);
}

enum gpu_status gpu_lu(struct gpu_work *work)
{
    const struct accel_call *call = work->call;
    const struct accel_operand *a = &call->operand[ACCEL_a], *b = &call->operand[ACCEL_b],
                               *ipiv = &call->operand[ACCEL_x];
    enum accel_family family = call->routine->family;
    struct solver s;
    solver_begin(&s, work);
    if (family == ACCEL_GETRI)
        solver_refuse_zero_diagonal(&s, a);
    struct array lu = solver_upload(&s, a, 0), pivots, x;
    if (family == ACCEL_GETRF || family == ACCEL_GESV) {
        pivots = factor(&s, lu);
        solver_return(&s, a, lu, 0);
        solver_return_pivots(&s, ipiv, pivots);
    } else {
        pivots = solver_upload_pivots(&s, ipiv, call->size[ACCEL_n], false);
    }
    if (family == ACCEL_GETRI) {
        x = solver_zeros(&s, lu.rows, lu.cols);
        solver_set_diagonal(&s, x, NULL);
        solve(&s, 'N', lu, pivots, x);
        solver_return(&s, a, x, 0);
    } else if (family != ACCEL_GETRF) {
        x = solver_upload(&s, b, 0);
        solve(&s, family == ACCEL_GETRS ? call->flag[ACCEL_trans] : 'N', lu, pivots, x);
        solver_return(&s, b, x, 0);
    }
    return solver_end(&s);
}
