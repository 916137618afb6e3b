/*
 * trtrs, trtri. Only the triangle is read; where the diagonal counts as ones, it is neither read nor written.
 */
#include "cpu_ref/checks.h"
#include "gpu/solver.h"
#include "rules.h"

/* The triangle as a part of a matrix: without its diagonal where that is not used. */
static char triangle(const struct accel_call *call)
{
    char uplo = call->blas.flag[ACCEL_uplo];
    return call->blas.flag[ACCEL_diag] == 'U' ? (char)(uplo - 'A' + 'a') : uplo;
}

static struct array upload_triangle(struct solver *s)
{
    const struct accel_call *call = s->work->call;
    if (call->blas.flag[ACCEL_diag] == 'N')
        solver_refuse_zero_diagonal(s, &call->span[ACCEL_a]);
    return solver_upload(s, &call->span[ACCEL_a], triangle(call));
}

static void run_trtrs(struct solver *s)
{
    const struct accel_call *call = s->work->call;
    struct array t = upload_triangle(s), x = solver_upload(s, &call->span[ACCEL_b], 0);
    solver_trsm(s, call->blas.flag[ACCEL_uplo], call->blas.flag[ACCEL_trans],
                call->blas.flag[ACCEL_diag], t, x);
    solver_return(s, &call->span[ACCEL_b], x, 0);
}

static void run_trtri(struct solver *s)
{
    const struct accel_call *call = s->work->call;
    struct array t = upload_triangle(s);
    solver_trtri(s, call->blas.flag[ACCEL_uplo], call->blas.flag[ACCEL_diag], t);
    solver_return(s, &call->span[ACCEL_a], t, triangle(call));
}

const struct accel_op op_trtrs = {LAPACK_SOLVES, .definite = 1 << ACCEL_a, .steps = run_trtrs,
                                  .check = check_trtrs};

const struct accel_op op_trtri = {LAPACK_BLOCKS, .definite = 1 << ACCEL_a,
                                  .triangles = 1 << ACCEL_a, .steps = run_trtri,
                                  .check = check_trtri};
