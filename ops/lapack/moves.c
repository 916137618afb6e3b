/*
 * lacpy, laswp: a chain of calls on the device needs them between its steps. Data in device memory
 * does not leave it.
 */
#include "cpu_ref/checks.h"
#include "gpu/exec/lapack/solver.h"
#include "ops/rules/lapack_rules.h"

#include <limits.h>
#include <stdlib.h>

/* ---- lacpy ---- */

static void run_lacpy(struct solver *s)
{
    const struct accel_span *a = &s->call->span[ACCEL_a], *b = &s->call->span[ACCEL_b];
    char uplo = s->call->blas.flag[ACCEL_uplo] == '*' ? 0 : s->call->blas.flag[ACCEL_uplo];
    if (!uplo && gpu_in_place(a) && gpu_in_place(b))
        solver_copy(s, solver_in_place(b), solver_in_place(a));
    else
        solver_return(s, b, solver_upload(s, a, uplo), uplo);
}

/* ---- laswp ---- */

/* Returns the exchanges of rows k1 .. k2 in an array that begins with row 1's, to be freed; NULL
 * without memory. *last: the largest row that is exchanged. Notes a failure if one is out of
 * bounds. */
static int32_t *read_swaps(struct solver *s, int64_t *last)
{
    const struct accel_span *ipiv = &s->call->span[ACCEL_x];
    int64_t k1 = s->call->blas.size[ACCEL_k1], k2 = s->call->blas.size[ACCEL_k2],
            inc = s->call->blas.size[ACCEL_incx];
    int32_t *swaps = calloc((size_t)k2 + 1, sizeof *swaps);
    void *copy = ipiv->place == ACCEL_HOST ? NULL : malloc((size_t)accel_bytes(ipiv) + 1);
    const void *from = ipiv->place == ACCEL_HOST ? ipiv->ptr : copy;
    inc = inc < 0 ? -inc : inc;
    *last = k2;
    if (!swaps || !from)
        solver_note(s, GPU_NO_MEMORY);
    else if (copy && !gpu_fetch(s->work->device, copy, ipiv))
        solver_note(s, GPU_ERROR);
    for (int64_t k = k1; solver_is_well(s) && k <= k2; k++) {
        int64_t at = k1 - 1 + (k - k1) * inc;
        int64_t row = accel_integer_at(ipiv->dtype, from, at);
        if (row < 1 || row > s->call->span[ACCEL_a].ld || row > INT_MAX)
            solver_note(s, GPU_UNSUPPORTED);
        else
            *last = accel_max(*last, swaps[k - 1] = (int32_t)row);
    }
    free(copy);
    return swaps;
}

static void exchange_rows(struct solver *s, struct array a, struct array swaps)
{
    int64_t k1 = s->call->blas.size[ACCEL_k1], k2 = s->call->blas.size[ACCEL_k2];
    if (s->call->blas.size[ACCEL_incx] > 0)
        solver_library(s)->laswp(s, a, swaps, k1, k2);
    else
        for (int64_t k = k2; k >= k1; k--)
            solver_library(s)->laswp(s, a, swaps, k, k);
}

/* Works on a copy, so that a failure on the way has exchanged nothing. */
static void run_laswp(struct solver *s)
{
    const struct accel_span *a = &s->call->span[ACCEL_a];
    int64_t last;
    int32_t *rows = read_swaps(s, &last);
    struct array swaps = solver_vector(s, s->call->blas.size[ACCEL_k2], ACCEL_INT32);
    if (rows)
        solver_put(s, swaps, rows);
    free(rows);
    struct array copy = solver_array(s, last, a->cols), there = solver_in_place(a);
    there.rows = last;
    if (gpu_in_place(a))
        solver_copy(s, copy, there);
    else
        solver_upload_to(s, copy, a, last, a->cols, 0);
    exchange_rows(s, copy, swaps);
    if (!gpu_in_place(a)) {
        solver_return(s, a, copy, 0);
        return;
    }
    GPU_DO(s, gpu_work_settle(s->work));
    solver_copy(s, there, copy);
    /* A copy that the device refused has written nothing; any other failure has. */
    if (solver_is_well(s) && gpu_work_settle(s->work) != GPU_OK)
        solver_note(s, GPU_LOST);
}

/* The original has no INFO: with these arguments it does nothing, or anything. */
static const char *laswp_fault(const struct accel_call *call)
{
    return call->blas.size[ACCEL_incx] == 0                                   ? "incx"
           : call->blas.size[ACCEL_k1] < 1                                    ? "k1"
           : call->blas.size[ACCEL_k2] > accel_max(call->span[ACCEL_a].ld, 0) ? "k2"
                                                                              : NULL;
}

static bool laswp_is_empty(const struct accel_call *call)
{
    return call->blas.size[ACCEL_n] == 0 || call->blas.size[ACCEL_k2] < call->blas.size[ACCEL_k1];
}

/* Returns the rows of A up to the last that is exchanged. */
static int64_t laswp_rows(const struct accel_call *call)
{
    int64_t k1 = call->blas.size[ACCEL_k1], k2 = call->blas.size[ACCEL_k2],
            inc = call->blas.size[ACCEL_incx];
    int64_t rows = k2;
    for (int64_t k = k1; k <= k2; k++)
        rows = accel_max(
            rows, accel_integer(&call->span[ACCEL_x], k1 - 1 + (k - k1) * (inc < 0 ? -inc : inc)));
    return accel_min(rows, call->span[ACCEL_a].ld);
}

const struct accel_op op_lacpy = {LAPACK_BLOCKS(.moves = true, .triangles = 1 << ACCEL_b),
                                  OP_RULES(.check = check_lacpy), OP_GPU(.steps = run_lacpy)};
const struct accel_op op_laswp = {
    LAPACK_BLOCKS(.moves = true),
    OP_RULES(.fault = laswp_fault, .is_empty = laswp_is_empty, .rows = laswp_rows),
    OP_GPU(.steps = run_laswp)};
