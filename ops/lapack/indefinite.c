/*
 * sytrf, sytrs, sysv: the Bunch-Kaufman factorisation of a symmetric matrix, of complex ones too. cuSOLVER has none of
 * Hermitian matrices.
 */
#include "cpu_ref/checks.h"
#include "gpu/solver.h"
#include "rules.h"

#include <stdlib.h>

/* The pivots as solver_sytrs() wants them. */
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

static struct array factor(struct solver *s, char uplo, struct array a)
{
    struct array pivots = solver_vector(s, a.rows, ACCEL_INT32);
    solver_sytrf(s, uplo, a, pivots);
    return widen(s, pivots);
}

static void solve_right_sides(struct solver *s, struct array ldl, struct array pivots)
{
    const struct accel_call *call = s->work->call;
    struct array x = solver_upload(s, &call->span[ACCEL_b], 0);
    solver_sytrs(s, call->blas.flag[ACCEL_uplo], ldl, pivots, x);
    solver_return(s, &call->span[ACCEL_b], x, 0);
}

/* The factors of A, which go back, and the pivots. */
static struct array factor_and_return(struct solver *s, struct array *pivots)
{
    const struct accel_call *call = s->work->call;
    char uplo = call->blas.flag[ACCEL_uplo];
    struct array ldl = solver_upload(s, &call->span[ACCEL_a], uplo);
    *pivots = factor(s, uplo, ldl);
    solver_return(s, &call->span[ACCEL_a], ldl, uplo);
    solver_return_pivots(s, &call->span[ACCEL_x], *pivots);
    return ldl;
}

static void run_sytrf(struct solver *s)
{
    struct array pivots;
    factor_and_return(s, &pivots);
}

static void run_sysv(struct solver *s)
{
    struct array pivots;
    struct array ldl = factor_and_return(s, &pivots);
    solve_right_sides(s, ldl, pivots);
}

static void run_sytrs(struct solver *s)
{
    const struct accel_call *call = s->work->call;
    struct array ldl = solver_upload(s, &call->span[ACCEL_a], call->blas.flag[ACCEL_uplo]);
    struct array pivots =
        solver_upload_pivots(s, &call->span[ACCEL_x], call->blas.size[ACCEL_n], true);
    solve_right_sides(s, ldl, pivots);
}

const struct accel_op op_sytrf = {LAPACK_BLOCKS, .triangles = 1 << ACCEL_a, .steps = run_sytrf,
                                  .check = check_sytrf};

const struct accel_op op_sysv = {LAPACK_BLOCKS, .triangles = 1 << ACCEL_a,
                                 .is_empty = lapack_has_no_matrix, .steps = run_sysv,
                                 .check = check_sysv};

const struct accel_op op_sytrs = {LAPACK_SOLVES, .definite = 1 << ACCEL_a, .steps = run_sytrs,
                                  .check = check_sytrs};

const struct accel_op op_hetrf = {LAPACK_BLOCKS, .hermitian = true, .triangles = 1 << ACCEL_a,
                                  .check = check_sytrf};

const struct accel_op op_hesv = {LAPACK_BLOCKS, .hermitian = true, .triangles = 1 << ACCEL_a,
                                 .is_empty = lapack_has_no_matrix, .check = check_sysv};

const struct accel_op op_hetrs = {LAPACK_BLOCKS, .hermitian = true, .check = check_sytrs};
