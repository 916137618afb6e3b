/*
 * getrf, getrs, gesv, getri: LU with partial pivoting. cuSOLVER has no getri: the inverse is the solution for the
 * identity.
 */
#include "cpu_ref/checks.h"
#include "gpu/solver.h"
#include "rules.h"

/* The factors of A, which go back, and the pivots. */
static struct array factor_and_return(struct solver *s, struct array *pivots)
{
    const struct accel_span *a = &s->work->call->span[ACCEL_a];
    struct array lu = solver_upload(s, a, 0);
    *pivots = solver_vector(s, accel_min(lu.rows, lu.cols), ACCEL_INT64);
    solver_getrf(s, lu, *pivots);
    solver_return(s, a, lu, 0);
    solver_return_pivots(s, &s->work->call->span[ACCEL_x], *pivots);
    return lu;
}

/* Those that the program has. */
static struct array upload_factors(struct solver *s, struct array *pivots)
{
    const struct accel_call *call = s->work->call;
    struct array lu = solver_upload(s, &call->span[ACCEL_a], 0);
    *pivots = solver_upload_pivots(s, &call->span[ACCEL_x], call->blas.size[ACCEL_n], false);
    return lu;
}

static void solve_right_sides(struct solver *s, char trans, struct array lu, struct array pivots)
{
    const struct accel_span *b = &s->work->call->span[ACCEL_b];
    struct array x = solver_upload(s, b, 0);
    solver_getrs(s, trans, lu, pivots, x);
    solver_return(s, b, x, 0);
}

static void run_getrf(struct solver *s)
{
    struct array pivots;
    factor_and_return(s, &pivots);
}

static void run_gesv(struct solver *s)
{
    struct array pivots;
    struct array lu = factor_and_return(s, &pivots);
    solve_right_sides(s, 'N', lu, pivots);
}

static void run_getrs(struct solver *s)
{
    struct array pivots;
    struct array lu = upload_factors(s, &pivots);
    solve_right_sides(s, s->work->call->blas.flag[ACCEL_trans], lu, pivots);
}

static void run_getri(struct solver *s)
{
    const struct accel_span *a = &s->work->call->span[ACCEL_a];
    struct array pivots;
    solver_refuse_zero_diagonal(s, a);
    struct array lu = upload_factors(s, &pivots), x = solver_zeros(s, lu.rows, lu.cols);
    solver_set_diagonal(s, x, NULL);
    solver_getrs(s, 'N', lu, pivots, x);
    solver_return(s, a, x, 0);
}

const struct accel_op op_getrf = {LAPACK_BLOCKS, .steps = run_getrf, .check = check_getrf};

const struct accel_op op_gesv = {LAPACK_BLOCKS, .is_empty = lapack_has_no_matrix, .steps = run_gesv,
                                 .check = check_gesv};

const struct accel_op op_getrs = {LAPACK_SOLVES, .definite = 1 << ACCEL_a, .steps = run_getrs,
                                  .check = check_getrs};

const struct accel_op op_getri = {LAPACK_BLOCKS, .definite = 1 << ACCEL_a,
                                  .workspace = lapack_n_workspace, .steps = run_getri,
                                  .check = check_getri};
