/*
 * potrf, potrs, posv, potri, lauum: read and write one triangle of a symmetric or Hermitian matrix.
 */
#include "cpu_ref/checks.h"
#include "diagonal.h"
#include "gpu/exec/lapack/solver_in_core.h"
#include "in_panels.h"
#include "ops/rules/lapack_rules.h"

static void solve_right_sides(struct solver *s, struct array factored)
{
    struct array x = solver_upload(s, &s->call->span[ACCEL_b], 0);
    solver_library(s)->potrs(s, s->call->blas.flag[ACCEL_uplo], factored, x);
    solver_return(s, &s->call->span[ACCEL_b], x, 0);
}

/* potrf, and posv, which goes on with right-hand sides. */
static void run_potrf(struct solver *s)
{
    const struct accel_span *a = &s->call->span[ACCEL_a];
    char uplo = s->call->blas.flag[ACCEL_uplo];
    const struct panels_call call = lapack_factoring(s->call, PANELS_CHOLESKY);
    struct array factored = solver_factor(s, &call, a, (struct array){0});
    if (accel_has_size(s->call->routine, ACCEL_nrhs))
        solve_right_sides(s, factored);
    solver_return(s, a, factored, uplo);
}

static void run_potrs(struct solver *s)
{
    solve_right_sides(s, solver_upload(s, &s->call->span[ACCEL_a], s->call->blas.flag[ACCEL_uplo]));
}

/* The inverse, from the factor. */
static void run_potri(struct solver *s)
{
    const struct accel_span *a = &s->call->span[ACCEL_a];
    char uplo = s->call->blas.flag[ACCEL_uplo];
    solver_refuse_zero_diagonal(s, a);
    struct array x = solver_upload(s, a, uplo);
    solver_library(s)->potri(s, uplo, x);
    solver_return(s, a, x, uplo);
}

/* The factor's product with its own transpose. */
static void run_lauum(struct solver *s)
{
    const struct accel_span *a = &s->call->span[ACCEL_a];
    char uplo = s->call->blas.flag[ACCEL_uplo];
    struct array x = solver_upload(s, a, uplo);
    solver_library(s)->lauum(s, uplo, x);
    solver_return(s, a, x, uplo);
}

#define DEFINITE .hermitian = true, .definite = 1 << ACCEL_a
#define TRIANGLE DEFINITE, .triangles = 1 << ACCEL_a

static const struct accel_gpu factoring = {.is_hopeless = lapack_hopeless_by_definiteness,
                                           .steps = run_potrf,
                                           .in_panels = &lapack_potrf_in_panels};

const struct accel_op op_potrf = {LAPACK_BLOCKS(TRIANGLE), OP_RULES(.check = check_potrf),
                                  .gpu = &factoring};
const struct accel_op op_posv = {LAPACK_BLOCKS(TRIANGLE),
                                 OP_RULES(.is_empty = lapack_has_no_matrix, .check = check_posv),
                                 .gpu = &factoring};
const struct accel_op op_potrs = {LAPACK_SOLVES(DEFINITE), OP_RULES(.check = check_potrs),
                                  OP_GPU(.steps = run_potrs, .in_panels = &lapack_potrs_in_panels)};
const struct accel_op op_potri = {LAPACK_BLOCKS(TRIANGLE), OP_RULES(.check = check_potri),
                                  OP_GPU(.is_hopeless = lapack_hopeless_by_zeros,
                                         .steps = run_potri, .in_panels = &lapack_potri_in_panels)};
const struct accel_op op_lauum = {LAPACK_BLOCKS(TRIANGLE), OP_RULES(.check = check_lauum),
                                  OP_GPU(.steps = run_lauum, .in_panels = &lapack_lauum_in_panels)};
