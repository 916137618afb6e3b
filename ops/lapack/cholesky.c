/*
 * potrf, potrs, posv, potri, lauum: of a symmetric or Hermitian matrix one triangle, which alone is read and written.
 */
#include "cpu_ref/checks.h"
#include "gpu/solver.h"
#include "rules.h"

static void solve_right_sides(struct solver *s, struct array factored)
{
    const struct accel_call *call = s->work->call;
    struct array x = solver_upload(s, &call->span[ACCEL_b], 0);
    solver_potrs(s, call->blas.flag[ACCEL_uplo], factored, x);
    solver_return(s, &call->span[ACCEL_b], x, 0);
}

static struct array upload_and_factor(struct solver *s)
{
    char uplo = s->work->call->blas.flag[ACCEL_uplo];
    struct array factored = solver_upload_hermitian(s, &s->work->call->span[ACCEL_a], uplo);
    solver_potrf(s, uplo, factored);
    return factored;
}

static void run_potrf(struct solver *s)
{
    const struct accel_call *call = s->work->call;
    solver_return(s, &call->span[ACCEL_a], upload_and_factor(s), call->blas.flag[ACCEL_uplo]);
}

static void run_posv(struct solver *s)
{
    const struct accel_call *call = s->work->call;
    struct array factored = upload_and_factor(s);
    solve_right_sides(s, factored);
    solver_return(s, &call->span[ACCEL_a], factored, call->blas.flag[ACCEL_uplo]);
}

static void run_potrs(struct solver *s)
{
    solve_right_sides(
        s, solver_upload(s, &s->work->call->span[ACCEL_a], s->work->call->blas.flag[ACCEL_uplo]));
}

/* The inverse, from the factor. */
static void run_potri(struct solver *s)
{
    const struct accel_span *a = &s->work->call->span[ACCEL_a];
    char uplo = s->work->call->blas.flag[ACCEL_uplo];
    solver_refuse_zero_diagonal(s, a);
    struct array x = solver_upload(s, a, uplo);
    solver_potri(s, uplo, x);
    solver_return(s, a, x, uplo);
}

/* The factor's product with its own transpose. */
static void run_lauum(struct solver *s)
{
    const struct accel_span *a = &s->work->call->span[ACCEL_a];
    char uplo = s->work->call->blas.flag[ACCEL_uplo];
    struct array x = solver_upload(s, a, uplo);
    solver_lauum(s, uplo, x);
    solver_return(s, a, x, uplo);
}

#define DEFINITE .hermitian = true, .definite = 1 << ACCEL_a

const struct accel_op op_potrf = {LAPACK_BLOCKS, DEFINITE, .triangles = 1 << ACCEL_a,
                                  .steps = run_potrf, .check = check_potrf};

const struct accel_op op_posv = {LAPACK_BLOCKS,
                                 DEFINITE,
                                 .triangles = 1 << ACCEL_a,
                                 .is_empty = lapack_has_no_matrix,
                                 .steps = run_posv,
                                 .check = check_posv};

const struct accel_op op_potrs = {LAPACK_SOLVES, DEFINITE, .steps = run_potrs,
                                  .check = check_potrs};

const struct accel_op op_potri = {LAPACK_BLOCKS, DEFINITE, .triangles = 1 << ACCEL_a,
                                  .steps = run_potri, .check = check_potri};

const struct accel_op op_lauum = {LAPACK_BLOCKS, DEFINITE, .triangles = 1 << ACCEL_a,
                                  .steps = run_lauum, .check = check_lauum};
