/*
 * sytrf, sytrs, sysv: the Bunch-Kaufman factorisation of a symmetric matrix, real or complex. cuSOLVER has none for Hermitian
 * matrices: hetrf, hetrs, hesv have no steps.
 */
#include "cpu_ref/checks.h"
#include "gpu/solver.h"
#include "rules.h"

#include <stdlib.h>

/* Returns the pivots as 64-bit integers, which solver_sytrs() wants. */
static struct array widen(struct solver *s, struct array pivots)
{
    struct array wide = solver_vector(s, pivots.rows, ACCEL_INT64);
    int32_t *narrow = malloc((size_t)pivots.rows * sizeof *narrow + 1);
    int64_t *values = malloc((size_t)pivots.rows * sizeof *values + 1);
    if (narrow && values) {
        solver_get(s, narrow, pivots);
        for (int64_t i = 0; solver_is_well(s) && i < pivots.rows; i++)
            values[i] = narrow[i];
        solver_put(s, wide, values);
    } else {
        solver_note(s, GPU_NO_MEMORY);
    }
    free(narrow);
    free(values);
    return wide;
}

static void solve_right_sides(struct solver *s, struct array ldl, struct array pivots)
{
    struct array x = solver_upload(s, &s->call->span[ACCEL_b], 0);
    solver_sytrs(s, s->call->blas.flag[ACCEL_uplo], ldl, pivots, x);
    solver_return(s, &s->call->span[ACCEL_b], x, 0);
}

/* sytrf, and sysv, which goes on with right-hand sides. */
static void run_sytrf(struct solver *s)
{
    const struct accel_span *a = &s->call->span[ACCEL_a];
    char uplo = s->call->blas.flag[ACCEL_uplo];
    struct array ldl = solver_upload(s, a, uplo);
    struct array narrow = solver_vector(s, ldl.rows, ACCEL_INT32);
    solver_sytrf(s, uplo, ldl, narrow);
    struct array pivots = widen(s, narrow);
    solver_return(s, a, ldl, uplo);
    solver_return_pivots(s, &s->call->span[ACCEL_x], pivots);
    if (accel_has_size(s->call->routine, ACCEL_nrhs))
        solve_right_sides(s, ldl, pivots);
}

static void run_sytrs(struct solver *s)
{
    struct array ldl = solver_upload(s, &s->call->span[ACCEL_a], s->call->blas.flag[ACCEL_uplo]);
    struct array pivots =
        solver_upload_pivots(s, &s->call->span[ACCEL_x], s->call->blas.size[ACCEL_n], true);
    solve_right_sides(s, ldl, pivots);
}

#define TRIANGLE LAPACK_BLOCKS, .triangles = 1 << ACCEL_a

const struct accel_op op_sytrf = {TRIANGLE, .steps = run_sytrf, .whole = LAPACK_PIVOTS_BOTH_SIDES,
                                  .check = check_sytrf};
const struct accel_op op_sysv = {TRIANGLE, .is_empty = lapack_has_no_matrix, .steps = run_sytrf,
                                 .whole = LAPACK_PIVOTS_BOTH_SIDES, .check = check_sysv};
const struct accel_op op_sytrs = {LAPACK_SOLVES, .definite = 1 << ACCEL_a, .steps = run_sytrs,
                                  .whole = LAPACK_PIVOTS_BOTH_SIDES, .check = check_sytrs};
const struct accel_op op_hetrf = {TRIANGLE, .hermitian = true, .check = check_sytrf};
const struct accel_op op_hesv = {TRIANGLE, .hermitian = true, .is_empty = lapack_has_no_matrix,
                                 .check = check_sysv};
const struct accel_op op_hetrs = {LAPACK_BLOCKS, .hermitian = true, .check = check_sytrs};
