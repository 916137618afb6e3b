/*
 * lacpy, laswp: what a chain on the device needs between its steps. What is in device memory does not leave it.
 */
#include "cpu_ref/checks.h"
#include "gpu/solver.h"
#include "rules.h"

#include <limits.h>
#include <stdlib.h>

/* ---- lacpy ---- */

static void run_lacpy(struct solver *s)
{
    const struct accel_call *call = s->work->call;
    const struct accel_span *a = &call->span[ACCEL_a], *b = &call->span[ACCEL_b];
    char uplo = call->blas.flag[ACCEL_uplo] == '*' ? 0 : call->blas.flag[ACCEL_uplo];
    if (!uplo && gpu_in_place(a) && gpu_in_place(b))
        solver_copy(s, solver_in_place(b), solver_in_place(a));
    else
        solver_return(s, b, solver_upload(s, a, uplo), uplo);
}

/* ---- laswp ---- */

/* The exchanges of rows k1 .. k2, at their places in an array that begins with row 1's; and the largest row that is
 * concerned. NULL where one is out of bounds. */
static int32_t *read_swaps(struct solver *s, int64_t *last)
{
    const struct accel_call *call = s->work->call;
    const struct accel_span *ipiv = &call->span[ACCEL_x];
    int64_t k1 = call->blas.size[ACCEL_k1], k2 = call->blas.size[ACCEL_k2],
            inc = call->blas.size[ACCEL_incx];
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
        if (row < 1 || row > call->span[ACCEL_a].ld || row > INT_MAX)
            solver_note(s, GPU_UNSUPPORTED);
        else
            *last = accel_max(*last, swaps[k - 1] = (int32_t)row);
    }
    free(copy);
    return swaps;
}

static void exchange_rows(struct solver *s, struct array a, struct array swaps)
{
    const struct accel_call *call = s->work->call;
    int64_t k1 = call->blas.size[ACCEL_k1], k2 = call->blas.size[ACCEL_k2];
    if (call->blas.size[ACCEL_incx] > 0)
        solver_laswp(s, a, swaps, k1, k2);
    else
        for (int64_t k = k2; k >= k1; k--)
            solver_laswp(s, a, swaps, k, k);
}

/* On a copy, so that what fails on the way has exchanged nothing. */
static void run_laswp(struct solver *s)
{
    const struct accel_call *call = s->work->call;
    const struct accel_span *a = &call->span[ACCEL_a];
    int64_t last;
    int32_t *rows = read_swaps(s, &last);
    struct array swaps = solver_vector(s, call->blas.size[ACCEL_k2], ACCEL_INT32);
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
    if (solver_is_well(s))
        solver_note(s, gpu_work_settle(s->work));
    solver_copy(s, there, copy);
    /* What was refused has written nothing. */
    if (solver_is_well(s) && gpu_work_settle(s->work) != GPU_OK)
        solver_note(s, GPU_LOST);
}

/* It has no INFO: nothing is done, or what cannot be foreseen. */
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

/* Those that are exchanged. */
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

const struct accel_op op_lacpy = {LAPACK_BLOCKS, .moves = true, .triangles = 1 << ACCEL_b,
                                  .steps = run_lacpy, .check = check_lacpy};

const struct accel_op op_laswp = {LAPACK_BLOCKS,
                                  .moves = true,
                                  .rows = laswp_rows,
                                  .fault = laswp_fault,
                                  .is_empty = laswp_is_empty,
                                  .steps = run_laswp};
