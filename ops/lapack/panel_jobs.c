#include "panel_jobs.h"

#include <string.h>

#include "gpu/exec/lapack/solver_panels.h"
#include "ops/op.h"
#include "call/matrix.h"
#include "call/shape.h"

/* ---- Descriptions ---- */

struct panels_call panel_job_of(const struct accel_call *call, enum panels_kind kind, int64_t m,
                                int64_t n)
{
    const bool across = kind == PANELS_CHOLESKY && call->blas.flag[ACCEL_uplo] == 'U';
    return (struct panels_call){.kind = kind,
                                .across = across,
                                .m = m,
                                .n = n,
                                .size = (int64_t)accel_dtype_size(call->routine->dtype),
                                .per_term = accel_is_complex(call->routine->dtype) ? 8 : 2};
}

struct panels_call lapack_factoring(const struct accel_call *call, enum panels_kind kind)
{
    const struct accel_span *a = &call->span[ACCEL_a];
    return panel_job_of(call, kind, a->rows, a->cols);
}

struct panels_job panel_job_applying(const struct accel_call *call, int64_t m, int64_t n,
                                     int64_t order)
{
    struct panels_job job = {.call = panel_job_of(call, PANELS_APPLY, m, n)};
    job.call.order = order;
    return job;
}

static void add_sweep(struct panels_job *job, struct panels_sweep sweep,
                      struct panels_action action)
{
    struct panels_call *call = &job->call;
    sweep.from_panel = sweep.from_panel || call->triangle;
    job->action[call->sweeps] = action;
    call->sweep[call->sweeps++] = sweep;
}

void panel_job_solves(struct panels_job *job, char uplo, char trans, char diag)
{
    const bool upper = (uplo == 'U') != job->call.other_across;
    add_sweep(job, (struct panels_sweep){.backwards = upper == (trans == 'N'), .above = upper},
              (struct panels_action){PANELS_SOLVES, uplo, trans, diag});
}

void panel_job_multiplies(struct panels_job *job, char uplo, char trans)
{
    add_sweep(job, (struct panels_sweep){.backwards = false},
              (struct panels_action){PANELS_MULTIPLIES, uplo, trans, 'N'});
}

void panel_job_reflects(struct panels_job *job, char trans)
{
    const bool backwards = (trans == 'N') != job->call.across;
    add_sweep(job, (struct panels_sweep){.backwards = backwards, .reflects = true},
              (struct panels_action){.deed = PANELS_REFLECTS, .trans = trans});
}

char panel_job_adjoint(const struct accel_call *call)
{
    return accel_is_complex(call->routine->dtype) ? 'C' : 'T';
}

bool panel_job_has_right_sides(const struct accel_call *call)
{
    return accel_has_size(call->routine, ACCEL_nrhs) && call->blas.size[ACCEL_nrhs] > 0;
}

/* ---- Steps ---- */

char *panel_job_factor(struct solver *s, enum panels_kind kind, void *list)
{
    const struct accel_span *a = &s->call->span[ACCEL_a];
    struct panels_job job = {.call = lapack_factoring(s->call, kind),
                             .x = a,
                             .from = a->ptr,
                             .from_ld = a->ld,
                             .list = list};
    job.to = solver_panels_memory(s, job.call.m, job.call.n, job.call.size);
    (s->work->host->shared ? solver_shared_lead : solver_panels)(s, &job);
    return job.to;
}

char *panel_job_apply(struct solver *s, struct panels_job *job, enum accel_matrix x,
                      const void *other, int64_t other_ld)
{
    const struct accel_span *span = &s->call->span[x];
    job->x = span;
    job->other = &s->call->span[ACCEL_a];
    job->factors = other;
    job->factors_ld = other_ld;
    if (!job->from) {
        job->from = span->ptr;
        job->from_ld = span->ld;
    }
    if (!job->to)
        job->to = solver_panels_memory(s, job->call.m, job->call.n, job->call.size);
    solver_panels(s, job);
    return job->to;
}

void panel_job_return(struct solver *s, enum accel_matrix which, char *packed, char uplo)
{
    const struct accel_span *to = &s->call->span[which];
    solver_return_packed(s, to, to->rows, to->cols, packed, uplo);
}

int64_t *panel_job_pivots(struct solver *s)
{
    const struct accel_span *x = &s->call->span[ACCEL_x];
    int64_t *pivots = solver_panels_memory(s, x->cols, 1, sizeof *pivots);
    for (int64_t i = 0; pivots && i < x->cols; i++) {
        pivots[i] = accel_integer(x, i);
        if (pivots[i] < 1 || pivots[i] > s->call->span[ACCEL_a].rows) {
            solver_note(s, GPU_UNSUPPORTED);
            break;
        }
    }
    return pivots;
}

char *panel_job_identity(struct solver *s, int64_t rows, int64_t cols)
{
    char *identity = solver_panels_zeros(s, rows, cols, (int64_t)accel_dtype_size(s->dtype));
    for (int64_t i = 0; identity && i < accel_min(rows, cols); i++)
        store_element(identity, s->dtype, i * (rows + 1), 1);
    return identity;
}
