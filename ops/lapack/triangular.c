/*
 * trtrs, trtri. They read only the triangle; a unit diagonal they neither read nor write.
 */
#include "cpu_ref/checks.h"
#include "diagonal.h"
#include "gpu/exec/lapack/solver.h"
#include "in_panels.h"
#include "ops/rules/lapack_rules.h"

/* Returns the triangle as a part of a matrix: without a unit diagonal. */
static char triangle(const struct accel_call *call)
{
    char uplo = call->blas.flag[ACCEL_uplo];
    return call->blas.flag[ACCEL_diag] == 'U' ? (char)(uplo - 'A' + 'a') : uplo;
}

static struct array upload_triangle(struct solver *s)
{
    if (s->call->blas.flag[ACCEL_diag] == 'N')
        solver_refuse_zero_diagonal(s, &s->call->span[ACCEL_a]);
    return solver_upload(s, &s->call->span[ACCEL_a], triangle(s->call));
}

static void run_trtrs(struct solver *s)
{
    struct array t = upload_triangle(s), x = solver_upload(s, &s->call->span[ACCEL_b], 0);
    solver_trsm(s, s->call->blas.flag[ACCEL_uplo], s->call->blas.flag[ACCEL_trans],
                s->call->blas.flag[ACCEL_diag], t, x);
    solver_return(s, &s->call->span[ACCEL_b], x, 0);
}

static void run_trtri(struct solver *s)
{
    struct array t = upload_triangle(s);
    solver_library(s)->trtri(s, s->call->blas.flag[ACCEL_uplo], s->call->blas.flag[ACCEL_diag], t);
    solver_return(s, &s->call->span[ACCEL_a], t, triangle(s->call));
}

const struct accel_op op_trtrs = {LAPACK_SOLVES(.definite = 1 << ACCEL_a),
                                  OP_RULES(.check = check_trtrs),
                                  OP_GPU(.is_hopeless = lapack_hopeless_by_zeros,
                                         .steps = run_trtrs, .in_panels = &lapack_trtrs_in_panels)};
const struct accel_op op_trtri = {
    LAPACK_BLOCKS(.definite = 1 << ACCEL_a, .triangles = 1 << ACCEL_a),
    OP_RULES(.check = check_trtri),
    OP_GPU(.is_hopeless = lapack_hopeless_by_zeros, .steps = run_trtri,
           .in_panels = &lapack_trtri_in_panels)};
