/*
 * getrf, getrs, gesv, getri: LU with partial pivoting. cuSOLVER has no getri: the inverse is the solution for the
 * identity.
 */
#include "cpu_ref/checks.h"
#include "gpu/cuda/cusolver_call.h"
#include "rules.h"

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

/* The factors of A, which go back, and the pivots. */
static struct array factor_and_return(struct solver *s, struct array *pivots)
{
    const struct accel_span *a = &s->work->call->span[ACCEL_a];
    struct array lu = solver_upload(s, a, 0);
    *pivots = factor(s, lu);
    solver_return(s, a, lu, 0);
    solver_return_pivots(s, &s->work->call->span[ACCEL_x], *pivots);
    return lu;
}

/* Those that the program has. */
static struct array upload_factors(struct solver *s, struct array *pivots)
{
    const struct accel_call *call = s->work->call;
    struct array lu = solver_upload(s, &call->span[ACCEL_a], 0);
    *pivots = solver_upload_pivots(s, &call->span[ACCEL_x], call->size[ACCEL_n], false);
    return lu;
}

static void solve_right_sides(struct solver *s, char trans, struct array lu, struct array pivots)
{
    const struct accel_span *b = &s->work->call->span[ACCEL_b];
    struct array x = solver_upload(s, b, 0);
    solve(s, trans, lu, pivots, x);
    solver_return(s, b, x, 0);
}

static enum gpu_status run_getrf(struct gpu_work *work)
{
    struct solver s;
    struct array pivots;
    solver_begin(&s, work);
    factor_and_return(&s, &pivots);
    return solver_end(&s);
}

static enum gpu_status run_gesv(struct gpu_work *work)
{
    struct solver s;
    struct array pivots;
    solver_begin(&s, work);
    struct array lu = factor_and_return(&s, &pivots);
    solve_right_sides(&s, 'N', lu, pivots);
    return solver_end(&s);
}

static enum gpu_status run_getrs(struct gpu_work *work)
{
    struct solver s;
    struct array pivots;
    solver_begin(&s, work);
    struct array lu = upload_factors(&s, &pivots);
    solve_right_sides(&s, work->call->flag[ACCEL_trans], lu, pivots);
    return solver_end(&s);
}

static enum gpu_status run_getri(struct gpu_work *work)
{
    const struct accel_span *a = &work->call->span[ACCEL_a];
    struct solver s;
    struct array pivots;
    solver_begin(&s, work);
    solver_refuse_zero_diagonal(&s, a);
    struct array lu = upload_factors(&s, &pivots), x = solver_zeros(&s, lu.rows, lu.cols);
    solver_set_diagonal(&s, x, NULL);
    solve(&s, 'N', lu, pivots, x);
    solver_return(&s, a, x, 0);
    return solver_end(&s);
}

const struct accel_op op_getrf = {LAPACK_BLOCKS, .run = run_getrf, .check = check_getrf};

const struct accel_op op_gesv = {LAPACK_BLOCKS, .is_empty = lapack_has_no_matrix, .run = run_gesv,
                                 .check = check_gesv};

const struct accel_op op_getrs = {LAPACK_SOLVES, .definite = 1 << ACCEL_a, .run = run_getrs,
                                  .check = check_getrs};

const struct accel_op op_getri = {LAPACK_BLOCKS, .definite = 1 << ACCEL_a,
                                  .workspace = lapack_n_workspace, .run = run_getri,
                                  .check = check_getri};
