/*
 * trtri, potri, getri, lauum above the device's memory. Inverses solve for the identity, in panels,
 * by the program's factors, in blocks. Of a triangular or symmetric result, a panel begins at the
 * diagonal, and is changed by what is there; an upper triangle is seen transposed. So each does as
 * many operations as LAPACK's.
 */
#include <stdlib.h>
#include <string.h>

#include "gpu/pack/exchange.h"
#include "panel_jobs.h"

/* ---- Which jobs ---- */

static struct panels_job of_triangle(const struct accel_call *call)
{
    const int64_t n = call->blas.size[ACCEL_n];
    struct panels_job job = panel_job_applying(call, n, n, n);
    job.call.triangle = true;
    job.call.across = job.call.other_across = call->blas.flag[ACCEL_uplo] == 'U';
    job.reads = call->blas.flag[ACCEL_uplo];
    return job;
}

static struct panels_job trtri_job(const struct accel_call *call)
{
    struct panels_job job = of_triangle(call);
    const char diag = call->blas.flag[ACCEL_diag];
    panel_job_solves(&job, call->blas.flag[ACCEL_uplo], 'N', diag);
    if (diag == 'U')
        job.reads = (char)(job.reads - 'A' + 'a');
    return job;
}

/* L L^H X = 1, or X U^H U = 1, of which the triangle follows from itself. */
static struct panels_job potri_job(const struct accel_call *call)
{
    struct panels_job job = of_triangle(call);
    panel_job_solves(&job, call->blas.flag[ACCEL_uplo], 'N', 'N');
    panel_job_solves(&job, call->blas.flag[ACCEL_uplo], panel_job_adjoint(call), 'N');
    return job;
}

/* L^H L, or U U^H */
static struct panels_job lauum_job(const struct accel_call *call)
{
    struct panels_job job = of_triangle(call);
    panel_job_multiplies(&job, call->blas.flag[ACCEL_uplo], panel_job_adjoint(call));
    return job;
}

/* L U X = 1; the inverse of A is that with its columns exchanged. L's inverse is a triangle. */
static struct panels_job getri_job(const struct accel_call *call)
{
    const int64_t n = call->blas.size[ACCEL_n];
    struct panels_job job = panel_job_applying(call, n, n, n);
    panel_job_solves(&job, 'L', 'N', 'U');
    job.call.sweep[0].from_panel = true;
    panel_job_solves(&job, 'U', 'N', 'N');
    return job;
}

static int trtri_calls(const struct accel_call *call, struct panels_call *panels)
{
    panels[0] = trtri_job(call).call;
    return 1;
}

static int potri_calls(const struct accel_call *call, struct panels_call *panels)
{
    panels[0] = potri_job(call).call;
    return 1;
}

static int lauum_calls(const struct accel_call *call, struct panels_call *panels)
{
    panels[0] = lauum_job(call).call;
    return 1;
}

static int getri_calls(const struct accel_call *call, struct panels_call *panels)
{
    panels[0] = getri_job(call).call;
    return 1;
}

/* ---- Steps ---- */

/* Solves for the identity by the program's factors. Returns the packed solution. */
static char *invert(struct solver *s, struct panels_job *job)
{
    const struct accel_span *a = &s->call->span[ACCEL_a];
    job->from = job->to = panel_job_identity(s, a->rows, a->cols);
    job->from_ld = a->rows;
    job->scans = true;
    return panel_job_apply(s, job, ACCEL_a, a->ptr, a->ld);
}

/* A Hermitian result's diagonal is real, whatever was rounded. */
static void make_diagonal_real(struct solver *s, char *packed)
{
    const int64_t n = s->call->span[ACCEL_a].rows, size = (int64_t)accel_dtype_size(s->dtype);
    if (!solver_is_well(s) || !accel_is_complex(s->dtype))
        return;
    for (int64_t i = 0; i < n; i++)
        memset(packed + i * (n + 1) * size + size / 2, 0, (size_t)size / 2);
}

static void run_trtri(struct solver *s)
{
    struct panels_job job = trtri_job(s->call);
    if (s->call->blas.flag[ACCEL_diag] == 'N')
        solver_refuse_zero_diagonal(s, &s->call->span[ACCEL_a]);
    panel_job_return(s, ACCEL_a, invert(s, &job), job.reads);
}

static void run_potri(struct solver *s)
{
    struct panels_job job = potri_job(s->call);
    solver_refuse_zero_diagonal(s, &s->call->span[ACCEL_a]);
    char *inverse = invert(s, &job);
    make_diagonal_real(s, inverse);
    panel_job_return(s, ACCEL_a, inverse, job.reads);
}

static void run_lauum(struct solver *s)
{
    const struct accel_span *a = &s->call->span[ACCEL_a];
    struct panels_job job = lauum_job(s->call);
    char *product = panel_job_apply(s, &job, ACCEL_a, a->ptr, a->ld);
    make_diagonal_real(s, product);
    panel_job_return(s, ACCEL_a, product, job.reads);
}

static void run_getri(struct solver *s)
{
    const struct accel_span *a = &s->call->span[ACCEL_a];
    struct panels_job job = getri_job(s->call);
    solver_refuse_zero_diagonal(s, a);
    int64_t *pivots = panel_job_pivots(s);
    char *inverse = invert(s, &job);
    if (solver_is_well(s))
        exchange_columns_back(inverse, a->rows, a->cols, job.call.size, pivots);
    solver_packed_free(pivots);
    panel_job_return(s, ACCEL_a, inverse, 0);
}

const struct lapack_panels lapack_trtri_in_panels = {trtri_calls, run_trtri},
                           lapack_potri_in_panels = {potri_calls, run_potri},
                           lapack_lauum_in_panels = {lauum_calls, run_lauum},
                           lapack_getri_in_panels = {getri_calls, run_getri};
