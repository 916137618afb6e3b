/*
 * potrf, posv, potrs, getrf, gesv, getrs, trtrs above the device's memory: the matrix is factored
 * in panels; then right-hand sides go through in panels, and the factors in blocks.
 */
#include <stdlib.h>

#include "gpu/pack/exchange.h"
#include "panel_jobs.h"

/* ---- Which jobs ---- */

static struct panels_job solving(const struct accel_call *call)
{
    const struct accel_span *a = &call->span[ACCEL_a];
    return panel_job_applying(call, a->rows, call->span[ACCEL_b].cols, a->cols);
}

static struct panels_job cholesky_solving(const struct accel_call *call)
{
    struct panels_job job = solving(call);
    const char uplo = call->blas.flag[ACCEL_uplo], adjoint = panel_job_adjoint(call);
    panel_job_solves(&job, uplo, uplo == 'L' ? 'N' : adjoint, 'N');
    panel_job_solves(&job, uplo, uplo == 'L' ? adjoint : 'N', 'N');
    return job;
}

static struct panels_job lu_solving(const struct accel_call *call, char trans)
{
    struct panels_job job = solving(call);
    panel_job_solves(&job, trans == 'N' ? 'L' : 'U', trans, trans == 'N' ? 'U' : 'N');
    panel_job_solves(&job, trans == 'N' ? 'U' : 'L', trans, trans == 'N' ? 'N' : 'U');
    return job;
}

static struct panels_job triangle_solving(const struct accel_call *call)
{
    struct panels_job job = solving(call);
    panel_job_solves(&job, call->blas.flag[ACCEL_uplo], call->blas.flag[ACCEL_trans],
                     call->blas.flag[ACCEL_diag]);
    return job;
}

static int potrf_calls(const struct accel_call *call, struct panels_call *panels)
{
    const bool solves = panel_job_has_right_sides(call);
    panels[0] = lapack_factoring(call, PANELS_CHOLESKY);
    panels[1] = solves ? cholesky_solving(call).call : panels[0];
    return 1 + solves;
}

static int potrs_calls(const struct accel_call *call, struct panels_call *panels)
{
    panels[0] = cholesky_solving(call).call;
    return 1;
}

static int getrf_calls(const struct accel_call *call, struct panels_call *panels)
{
    const bool solves = panel_job_has_right_sides(call);
    panels[0] = lapack_factoring(call, PANELS_LU);
    panels[1] = solves ? lu_solving(call, 'N').call : panels[0];
    return 1 + solves;
}

static int getrs_calls(const struct accel_call *call, struct panels_call *panels)
{
    panels[0] = lu_solving(call, call->blas.flag[ACCEL_trans]).call;
    return 1;
}

static int trtrs_calls(const struct accel_call *call, struct panels_call *panels)
{
    panels[0] = triangle_solving(call).call;
    return 1;
}

/* ---- Steps ---- */

static void run_potrf(struct solver *s)
{
    const struct accel_span *a = &s->call->span[ACCEL_a];
    char *l = panel_job_factor(s, PANELS_CHOLESKY, NULL);
    if (panel_job_has_right_sides(s->call)) {
        struct panels_job job = cholesky_solving(s->call);
        panel_job_return(s, ACCEL_b, panel_job_apply(s, &job, ACCEL_b, l, a->rows), 0);
    }
    panel_job_return(s, ACCEL_a, l, s->call->blas.flag[ACCEL_uplo]);
}

static void run_potrs(struct solver *s)
{
    const struct accel_span *a = &s->call->span[ACCEL_a];
    struct panels_job job = cholesky_solving(s->call);
    panel_job_return(s, ACCEL_b, panel_job_apply(s, &job, ACCEL_b, a->ptr, a->ld), 0);
}

static void run_getrf(struct solver *s)
{
    const struct accel_span *a = &s->call->span[ACCEL_a], *x = &s->call->span[ACCEL_x];
    int64_t *pivots = solver_panels_memory(s, x->cols, 1, sizeof *pivots);
    char *lu = panel_job_factor(s, PANELS_LU, pivots);
    solver_refuse_small_pivots_of(s, lu, a->rows, accel_min(a->rows, a->cols));
    if (panel_job_has_right_sides(s->call)) {
        struct panels_job job = lu_solving(s->call, 'N');
        job.pivots = pivots;
        panel_job_return(s, ACCEL_b, panel_job_apply(s, &job, ACCEL_b, lu, a->rows), 0);
    }
    solver_return_packed(s, x, x->cols, 1, pivots, 0);
    panel_job_return(s, ACCEL_a, lu, 0);
}

/* By the transpose, the exchanges come last, in the opposite order. */
static void run_getrs(struct solver *s)
{
    const struct accel_span *a = &s->call->span[ACCEL_a];
    const char trans = s->call->blas.flag[ACCEL_trans];
    struct panels_job job = lu_solving(s->call, trans);
    int64_t *pivots = panel_job_pivots(s);
    if (trans == 'N')
        job.pivots = pivots;
    char *x = panel_job_apply(s, &job, ACCEL_b, a->ptr, a->ld);
    if (solver_is_well(s) && trans != 'N')
        exchange_rows(x, job.call.m, job.call.n, job.call.size, pivots, 0, a->rows, true);
    solver_packed_free(pivots);
    panel_job_return(s, ACCEL_b, x, 0);
}

static void run_trtrs(struct solver *s)
{
    const struct accel_span *a = &s->call->span[ACCEL_a];
    struct panels_job job = triangle_solving(s->call);
    if (s->call->blas.flag[ACCEL_diag] == 'N')
        solver_refuse_zero_diagonal(s, a);
    panel_job_return(s, ACCEL_b, panel_job_apply(s, &job, ACCEL_b, a->ptr, a->ld), 0);
}

const struct lapack_panels lapack_potrf_in_panels = {potrf_calls, run_potrf},
                           lapack_potrs_in_panels = {potrs_calls, run_potrs},
                           lapack_getrf_in_panels = {getrf_calls, run_getrf},
                           lapack_getrs_in_panels = {getrs_calls, run_getrs},
                           lapack_trtrs_in_panels = {trtrs_calls, run_trtrs};
