/*
 * getrf, getrs, gesv, getri: LU with partial pivoting. cuSOLVER has no getri: getrs solves for the
 * identity.
 */
#include "cpu_ref/checks.h"
#include "diagonal.h"
#include "gpu/exec/lapack/solver_in_core.h"
#include "in_panels.h"
#include "ops/rules/lapack_rules.h"

/* Uploads the factors and pivots that the program has. */
static struct array upload_factors(struct solver *s, struct array *pivots)
{
    struct array lu = solver_upload(s, &s->call->span[ACCEL_a], 0);
    *pivots = solver_upload_pivots(s, &s->call->span[ACCEL_x], s->call->blas.size[ACCEL_n], false);
    return lu;
}

static void solve_right_sides(struct solver *s, char trans, struct array lu, struct array pivots)
{
    const struct accel_span *b = &s->call->span[ACCEL_b];
    struct array x = solver_upload(s, b, 0);
    solver_library(s)->getrs(s, trans, lu, pivots, x);
    solver_return(s, b, x, 0);
}

/* getrf, and gesv, which goes on with right-hand sides. */
static void run_getrf(struct solver *s)
{
    const struct accel_span *a = &s->call->span[ACCEL_a];
    const struct panels_call call = lapack_factoring(s->call, PANELS_LU);
    struct array pivots = solver_vector(s, accel_min(a->rows, a->cols), ACCEL_INT64);
    struct array lu = solver_factor(s, &call, a, pivots);
    solver_return_lu(s, a, lu);
    solver_return_pivots(s, &s->call->span[ACCEL_x], pivots);
    if (accel_has_size(s->call->routine, ACCEL_nrhs))
        solve_right_sides(s, 'N', lu, pivots);
}

static void run_getrs(struct solver *s)
{
    struct array pivots;
    struct array lu = upload_factors(s, &pivots);
    solve_right_sides(s, s->call->blas.flag[ACCEL_trans], lu, pivots);
}

static void run_getri(struct solver *s)
{
    const struct accel_span *a = &s->call->span[ACCEL_a];
    struct array pivots;
    solver_refuse_zero_diagonal(s, a);
    struct array lu = upload_factors(s, &pivots), x = solver_zeros(s, lu.rows, lu.cols);
    solver_set_diagonal(s, x, NULL);
    solver_library(s)->getrs(s, 'N', lu, pivots, x);
    solver_return(s, a, x, 0);
}

static void getri_left(const struct lapack_sizes *x, struct accel_lengths *lengths)
{
    lapack_left_by_blocks(x, x->n, 0, lengths);
}

/* Without right-hand sides, LAPACK factors the matrix, and OpenBLAS leaves it as it is: the
 * original does what it does. */
static bool gesv_is_supported(const struct accel_call *call)
{
    return call->blas.size[ACCEL_nrhs] > 0;
}

const struct accel_op op_getrf = {LAPACK_BLOCKS(), OP_RULES(.check = check_getrf),
                                  OP_GPU(.steps = run_getrf, .in_panels = &lapack_getrf_in_panels)};
const struct accel_op op_gesv = {LAPACK_BLOCKS(),
                                 OP_RULES(.is_empty = lapack_has_no_matrix, .check = check_gesv),
                                 OP_GPU(.is_supported = gesv_is_supported, .steps = run_getrf,
                                        .in_panels = &lapack_getrf_in_panels)};
const struct accel_op op_getrs = {LAPACK_SOLVES(.definite = 1 << ACCEL_a),
                                  OP_RULES(.check = check_getrs),
                                  OP_GPU(.steps = run_getrs, .in_panels = &lapack_getrs_in_panels)};
const struct accel_op op_getri = {
    LAPACK_BLOCKS(.definite = 1 << ACCEL_a),
    OP_RULES(.workspace = lapack_n_workspace, .left = getri_left, .check = check_getri),
    OP_GPU(.is_hopeless = lapack_hopeless_by_zeros, .steps = run_getri,
           .in_panels = &lapack_getri_in_panels)};
