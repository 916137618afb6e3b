/*
 * sytrf, sytrs, sysv: the Bunch-Kaufman factorisation of a symmetric matrix, real or complex;
 * hetrf, hetrs, hesv of a Hermitian one, where cuSOLVER has functions for it.
 */
#include "cpu_ref/checks.h"
#include "gpu/exec/lapack/solver.h"
#include "ops/rules/lapack_rules.h"

#include <stdlib.h>

/* Returns the pivots as 64-bit integers, which solver_library.sytrs() wants. */
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

/* Uploads a matrix or its factors: of a Hermitian one, LAPACK takes the diagonal for real. */
static struct array upload_matrix(struct solver *s)
{
    const struct accel_span *a = &s->call->span[ACCEL_a];
    const char uplo = s->call->blas.flag[ACCEL_uplo];
    if (!accel_is_hermitian(s->call->routine))
        return solver_upload(s, a, uplo);
    if (!solver_library(s)->has_hetrf())
        solver_note(s, GPU_UNSUPPORTED);
    return solver_upload_hermitian(s, a, uplo);
}

/* Returns the pivots. */
static struct array factor_indefinite(struct solver *s, struct array a)
{
    const char uplo = s->call->blas.flag[ACCEL_uplo];
    if (!accel_is_hermitian(s->call->routine)) {
        const struct array narrow = solver_vector(s, a.rows, ACCEL_INT32);
        solver_library(s)->sytrf(s, uplo, a, narrow);
        return widen(s, narrow);
    }
    const struct array pivots = solver_vector(s, a.rows, ACCEL_INT64);
    solver_library(s)->hetrf(s, uplo, a, pivots);
    return pivots;
}

static void solve_right_sides(struct solver *s, struct array ldl, struct array pivots)
{
    const char uplo = s->call->blas.flag[ACCEL_uplo];
    struct array x = solver_upload(s, &s->call->span[ACCEL_b], 0);
    if (accel_is_hermitian(s->call->routine))
        solver_library(s)->hetrs(s, uplo, ldl, pivots, x);
    else
        solver_library(s)->sytrs(s, uplo, ldl, pivots, x);
    solver_return(s, &s->call->span[ACCEL_b], x, 0);
}

/* sytrf, and sysv, which goes on with right-hand sides. */
static void run_sytrf(struct solver *s)
{
    struct array ldl = upload_matrix(s);
    struct array pivots = factor_indefinite(s, ldl);
    solver_return(s, &s->call->span[ACCEL_a], ldl, s->call->blas.flag[ACCEL_uplo]);
    solver_return_pivots(s, &s->call->span[ACCEL_x], pivots);
    if (accel_has_size(s->call->routine, ACCEL_nrhs))
        solve_right_sides(s, ldl, pivots);
}

static void run_sytrs(struct solver *s)
{
    struct array ldl = upload_matrix(s);
    struct array pivots =
        solver_upload_pivots(s, &s->call->span[ACCEL_x], s->call->blas.size[ACCEL_n], true);
    solve_right_sides(s, ldl, pivots);
}

static const struct accel_rules factors = {.check = check_sytrf},
                                drives = {.is_empty = lapack_has_no_matrix, .check = check_sysv},
                                solves = {.check = check_sytrs};

#define FACTORS(...)                                                                               \
    LAPACK_BLOCKS(.triangles = 1 << ACCEL_a, __VA_ARGS__),                                         \
        OP_GPU(.steps = run_sytrf, .whole = LAPACK_PIVOTS_BOTH_SIDES)
#define SOLVES(...)                                                                                \
    LAPACK_SOLVES(.definite = 1 << ACCEL_a, __VA_ARGS__),                                          \
        .rules = &solves, OP_GPU(.steps = run_sytrs, .whole = LAPACK_PIVOTS_BOTH_SIDES)

const struct accel_op op_sytrf = {FACTORS(), .rules = &factors};
const struct accel_op op_sysv = {FACTORS(), .rules = &drives};
const struct accel_op op_sytrs = {SOLVES()};
const struct accel_op op_hetrf = {FACTORS(.hermitian = true), .rules = &factors};
const struct accel_op op_hesv = {FACTORS(.hermitian = true), .rules = &drives};
const struct accel_op op_hetrs = {SOLVES(.hermitian = true)};
