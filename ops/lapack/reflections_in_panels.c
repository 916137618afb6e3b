/*
 * geqrf, orgqr, ormqr, gels above the device's memory: Q's reflectors go through in blocks, what
 * they are applied to in panels. A wide matrix of gels is factored as its adjoint, which is tall: p
 * x q.
 */
#include <stdlib.h>
#include <string.h>

#include "gpu/pack/adjoint.h"
#include "panel_jobs.h"

/* ---- Which jobs ---- */

static int geqrf_calls(const struct accel_call *call, struct panels_call *panels)
{
    panels[0] = lapack_factoring(call, PANELS_QR);
    return 1;
}

/* Q times the first columns of the identity: to a panel of them, later reflectors do nothing. */
static struct panels_job generating(const struct accel_call *call)
{
    const struct accel_span *a = &call->span[ACCEL_a];
    struct panels_job job = panel_job_applying(call, a->rows, a->cols, call->blas.size[ACCEL_k]);
    panel_job_reflects(&job, 'N');
    job.call.sweep[0].to_panel = true;
    return job;
}

/* On Q's left, panels are of rows. */
static struct panels_job multiplying(const struct accel_call *call)
{
    const struct accel_span *a = &call->span[ACCEL_a], *c = &call->span[ACCEL_c];
    const bool across = call->blas.flag[ACCEL_side] == 'R';
    struct panels_job job = panel_job_applying(call, a->rows, across ? c->rows : c->cols, a->cols);
    job.call.across = across;
    panel_job_reflects(&job, call->blas.flag[ACCEL_trans]);
    return job;
}

static int orgqr_calls(const struct accel_call *call, struct panels_call *panels)
{
    panels[0] = generating(call).call;
    return 1;
}

static int ormqr_calls(const struct accel_call *call, struct panels_call *panels)
{
    panels[0] = multiplying(call).call;
    return 1;
}

static bool is_wide(const struct accel_call *call)
{
    return call->span[ACCEL_a].rows < call->span[ACCEL_a].cols;
}

static struct panels_call tall_factoring(const struct accel_call *call)
{
    const struct accel_span *a = &call->span[ACCEL_a];
    return panel_job_of(call, PANELS_QR, accel_max(a->rows, a->cols), accel_min(a->rows, a->cols));
}

/* Else the system has the tall matrix's adjoint, and wants the shortest solution. */
static bool is_least_squares(const struct accel_call *call)
{
    return (call->blas.flag[ACCEL_trans] == 'N') == !is_wide(call);
}

static struct panels_job qr_solving(const struct accel_call *call)
{
    const struct panels_call tall = tall_factoring(call);
    struct panels_job job = panel_job_applying(call, tall.m, call->span[ACCEL_b].cols, tall.n);
    const char adjoint = panel_job_adjoint(call);
    if (is_least_squares(call)) {
        panel_job_reflects(&job, adjoint);
        panel_job_solves(&job, 'U', 'N', 'N');
    } else {
        panel_job_solves(&job, 'U', adjoint, 'N');
        panel_job_reflects(&job, 'N');
    }
    return job;
}

static int gels_calls(const struct accel_call *call, struct panels_call *panels)
{
    panels[0] = tall_factoring(call);
    panels[1] = qr_solving(call).call;
    return 1 + panel_job_has_right_sides(call);
}

/* ---- geqrf, orgqr, ormqr ---- */

static void run_geqrf(struct solver *s)
{
    const int64_t size = (int64_t)accel_dtype_size(s->dtype);
    const struct accel_span *tau = &s->call->span[ACCEL_x];
    char *scalars = solver_panels_memory(s, tau->cols, 1, size);
    char *qr = panel_job_factor(s, PANELS_QR, scalars);
    solver_return_packed(s, tau, tau->cols, 1, scalars, 0);
    panel_job_return(s, ACCEL_a, qr, 0);
}

/* Applies the reflectors that the program has. */
static char *reflect(struct solver *s, struct panels_job *job, enum accel_matrix x)
{
    const struct accel_span *a = &s->call->span[ACCEL_a];
    job->scalars = s->call->span[ACCEL_x].ptr;
    job->reads = 'l';
    job->scans = true;
    return panel_job_apply(s, job, x, a->ptr, a->ld);
}

static void run_orgqr(struct solver *s)
{
    struct panels_job job = generating(s->call);
    job.from = job.to = panel_job_identity(s, job.call.m, job.call.n);
    job.from_ld = job.call.m;
    panel_job_return(s, ACCEL_a, reflect(s, &job, ACCEL_a), 0);
}

static void run_ormqr(struct solver *s)
{
    struct panels_job job = multiplying(s->call);
    panel_job_return(s, ACCEL_c, reflect(s, &job, ACCEL_c), 0);
}

/* ---- gels ---- */

/* The tall matrix, factored. The caller frees it. */
static char *factor_tall(struct solver *s, void *scalars)
{
    const struct accel_span *a = &s->call->span[ACCEL_a];
    if (!is_wide(s->call))
        return panel_job_factor(s, PANELS_QR, scalars);
    struct panels_job job = {.call = tall_factoring(s->call), .x = a, .list = scalars};
    job.to = solver_panels_memory(s, job.call.m, job.call.n, job.call.size);
    job.from = job.to;
    job.from_ld = job.call.m;
    if (job.to)
        adjoint_of(job.to, matrix_of_span(a));
    solver_panels(s, &job);
    return job.to;
}

/* LAPACK says which element of R's diagonal is zero, and computes no solution. */
static void refuse_singular(struct solver *s, const struct panels_call *tall, const char *qr)
{
    for (int64_t i = 0; solver_is_well(s) && i < tall->n; i++)
        if (solver_has_zero(s, qr + i * (tall->m + 1) * tall->size, 1))
            solver_note(s, GPU_UNSUPPORTED);
}

/* Returns B's first `rows` rows above zeros: what the shortest solution begins with. */
static char *above_zeros(struct solver *s, int64_t rows)
{
    const struct accel_span *b = &s->call->span[ACCEL_b];
    const int64_t size = gpu_size_of(b);
    char *x = solver_panels_zeros(s, b->rows, b->cols, size);
    for (int64_t j = 0; x && j < b->cols; j++)
        memcpy(x + j * b->rows * size, gpu_element(b, 0, j), (size_t)(rows * size));
    return x;
}

/* LAPACK scales B, too, if its numbers are very large or small, but zeros it does not. Their size
 * does not count in s->largest. */
static char *solve_least_squares(struct solver *s, const char *qr, const void *scalars)
{
    struct panels_job job = qr_solving(s->call);
    if (!is_least_squares(s->call)) {
        job.from = job.to = above_zeros(s, job.call.order);
        job.from_ld = job.call.m;
    }
    job.scalars = scalars;
    s->largest = 0;
    char *x = panel_job_apply(s, &job, ACCEL_b, qr, job.call.m);
    if (s->largest > 0)
        solver_refuse_extremes(s);
    return x;
}

/* Gives the program the factors: of a wide matrix as LQ, and then frees the tall ones. */
static void return_factors(struct solver *s, const struct panels_call *tall, char *qr)
{
    if (!is_wide(s->call)) {
        panel_job_return(s, ACCEL_a, qr, 0);
        return;
    }
    char *lq = solver_panels_memory(s, tall->n, tall->m, tall->size);
    if (lq)
        adjoint_of(lq, (struct matrix){qr, tall->m, tall->n, tall->m, s->dtype});
    solver_packed_free(qr);
    panel_job_return(s, ACCEL_a, lq, 0);
}

static void run_gels(struct solver *s)
{
    const struct panels_call tall = tall_factoring(s->call);
    char *scalars = solver_panels_memory(s, tall.n, 1, tall.size);
    char *qr = factor_tall(s, scalars);
    solver_refuse_extremes(s);
    refuse_singular(s, &tall, qr);
    if (panel_job_has_right_sides(s->call))
        panel_job_return(s, ACCEL_b, solve_least_squares(s, qr, scalars), 0);
    solver_packed_free(scalars);
    return_factors(s, &tall, qr);
}

const struct lapack_panels lapack_geqrf_in_panels = {geqrf_calls, run_geqrf},
                           lapack_orgqr_in_panels = {orgqr_calls, run_orgqr},
                           lapack_ormqr_in_panels = {ormqr_calls, run_ormqr},
                           lapack_gels_in_panels = {gels_calls, run_gels};
