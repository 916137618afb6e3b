#include "panel_copies.h"

#include <limits.h>

#include "gpu/exec/executor.h"
#include "gpu/pack/exchange.h"

static struct host_rectangle rectangle_of(const char *matrix, int64_t ld, int64_t size,
                                          const struct schedule_tile *tile, const char *name)
{
    char *at = (char *)(uintptr_t)matrix + (tile->row + tile->col * ld) * size;
    struct host_rectangle rectangle = host_whole(at, tile->rows, tile->cols, ld, size);
    rectangle.name = name;
    return rectangle;
}

const struct accel_span *panel_copies_list_operand(const struct solver *s)
{
    const struct accel_span *x = &s->call->span[ACCEL_x];
    return x->ptr ? x : NULL;
}

void panel_copies_note(struct solver *s, const struct accel_span *x, bool up, int64_t rows,
                       int64_t cols, int64_t size)
{
    gpu_work_event(s->work, up ? GPU_EVENT_H2D : GPU_EVENT_D2H, x, rows, cols, rows * cols * size);
}

/* The leading dimension of the result. */
static int64_t packed_ld(const struct panels_job *job)
{
    return job->call.across ? job->call.n : job->call.m;
}

struct host_rectangle panel_copies_result(const struct panel_run *r, int j)
{
    const struct panels_job *job = r->job;
    const struct schedule_tile tile = panel_steps_stored(&r->steps, panels_panel(&r->panels, j));
    return rectangle_of(job->to, packed_ld(job), job->call.size, &tile, job->x->name);
}

static void copy_panel(struct panel_run *r, const struct schedule_step *step,
                       struct tile_copy *copy)
{
    const struct panels_job *job = r->job;
    const struct schedule_tile tile =
        panel_steps_stored(&r->steps, panels_panel(&r->panels, step->j));
    const struct array x = panel_steps_panel(&r->steps, step->j);
    const bool up = step->engine == SCHEDULE_UP, cholesky = job->call.kind == PANELS_CHOLESKY;
    copy->host = up ? rectangle_of(job->from, job->from_ld, job->call.size, &tile, job->x->name)
                    : panel_copies_result(r, step->j);
    copy->device = x.at;
    if (cholesky || job->call.triangle)
        copy->host.uplo = job->call.across ? 'U' : 'L';
    if (!up)
        return;
    copy->host.hermitian = cholesky && accel_is_complex(r->s->dtype);
    copy->host.scan = &r->scan;
    panel_copies_note(r->s, job->x, true, tile.rows, tile.cols, job->call.size);
}

static void copy_block(struct panel_run *r, const struct schedule_step *step,
                       struct tile_copy *copy)
{
    const struct panels_job *job = r->job;
    const bool applied = job->call.kind == PANELS_APPLY;
    const struct schedule_tile tile =
        panel_steps_stored_block(&r->steps, panels_block(&r->panels, step));
    const struct array x = panel_steps_block(&r->steps, step, step->slot);
    const struct accel_span *span = applied ? job->other : job->x;
    copy->host =
        rectangle_of(applied ? job->factors : job->to, applied ? job->factors_ld : packed_ld(job),
                     job->call.size, &tile, span->name);
    if (applied)
        copy->host.uplo = job->reads;
    if (applied && job->scans)
        copy->host.scan = &r->scan;
    copy->device = x.at;
    panel_copies_note(r->s, span, true, tile.rows, tile.cols, job->call.size);
}

/* On its way up, the list of the panel that a block is of. */
static void copy_list(const struct panel_run *r, const struct schedule_step *step,
                      struct tile_copy *copy)
{
    const bool up = step->engine == SCHEDULE_UP;
    const int j = up ? step->i : step->j;
    const struct array list = panel_steps_list(&r->steps, j);
    const int64_t size = (int64_t)accel_dtype_size(list.dtype);
    copy->host =
        host_whole((char *)r->job->list + r->panels.first[j] * size, list.rows, 1, list.rows, size);
    copy->device = (struct dmat){list.at.ptr, list.rows};
    if (up)
        panel_copies_note(r->s, panel_copies_list_operand(r->s), true, 1, list.rows, size);
}

static void copy_outcome(const struct panel_run *r, const struct schedule_step *step,
                         struct tile_copy *copy)
{
    copy->host = host_whole(&r->outcome[step->j], 1, 1, 1, sizeof *r->outcome);
    copy->device = (struct dmat){solver_outcome_at(r->steps.outcomes, step->j).at.ptr, 1};
}

void panel_copies_of(void *panel_run, const struct schedule_step *step, struct tile_copy *copy)
{
    struct panel_run *r = panel_run;
    *copy = (struct tile_copy){.device.ld = 1};
    switch (step->operand) {
    case PANELS_PANEL:
        copy_panel(r, step, copy);
        break;
    case PANELS_BLOCK:
        copy_block(r, step, copy);
        break;
    case PANELS_LIST:
        copy_list(r, step, copy);
        break;
    default:
        copy_outcome(r, step, copy);
        break;
    }
}

/* Counts what has come down. */
static void note_arrival(void *panel_run, const struct schedule_step *step)
{
    struct panel_run *r = panel_run;
    const struct schedule_tile tile =
        panel_steps_stored(&r->steps, panels_panel(&r->panels, step->j));
    const struct array list = panel_steps_list(&r->steps, step->j);
    if (step->operand == PANELS_PANEL)
        panel_copies_note(r->s, r->job->x, false, tile.rows, tile.cols, r->job->call.size);
    else if (step->operand == PANELS_LIST)
        panel_copies_note(r->s, panel_copies_list_operand(r->s), false, 1, list.rows,
                          (int64_t)accel_dtype_size(list.dtype));
}

/* The pivots of a panel count from its diagonal. A panel has the exchanges of those before it, and
 * lacks those after it. */
void panel_copies_end_lu(const struct panels_job *job, const int64_t *first, int count)
{
    const int64_t pivots_end = accel_min(job->call.m, job->call.n), m = job->call.m;
    int64_t *pivots = job->list;
    for (int j = 0; j < count; j++)
        for (int64_t i = first[j]; i < accel_min(first[j + 1], pivots_end); i++)
            pivots[i] += first[j];
    for (int j = 0; j < count; j++)
        exchange_rows(job->to + first[j] * m * job->call.size, m, first[j + 1] - first[j],
                      job->call.size, pivots, first[j + 1], pivots_end, false);
}

/* ---- The run ---- */

static enum gpu_status alloc_panels(void *panel_run, bool first)
{
    struct panel_run *r = panel_run;
    struct solver *s = r->s;
    const struct panels *p = &r->panels;
    const int64_t buffers = accel_min(p->buffers, p->count);
    const int64_t outcome_bytes = p->count * (int64_t)sizeof(struct solver_outcome);
    (void)first;
    r->steps.list = (struct array){.rows = 0}; /* an attempt before may have had one */
    panel_steps_take_lists(&r->steps, r->job->scalars != NULL);
    r->steps.panel = solver_work(s, (size_t)(buffers * p->panel_bytes)).at.ptr;
    r->steps.block = solver_work(s, (size_t)(2 * p->block_bytes)).at.ptr;
    panel_steps_take_reserve(&r->steps, &r->reserve);
    /* Panels without a diagonal are not factored, but others may read their outcomes. Only now:
     * what an attempt without memory gives back must not be written any more. */
    if (solver_is_well(s) && r->steps.shared)
        solver_note(s, gpu_memory(s->work)->zero(s->work, r->steps.outcomes.at.ptr, outcome_bytes));
    const enum gpu_status status = s->status;
    if (status == GPU_NO_MEMORY)
        s->status = GPU_OK;
    return status;
}

struct panel_run panel_run_begin(struct solver *s, const struct panels_job *job)
{
    if (job->call.m > INT_MAX || job->call.n > INT_MAX) /* cuSOLVER's laswp and ormqr take int */
        solver_note(s, GPU_UNSUPPORTED);
    return (struct panel_run){
        .s = s,
        .job = job,
        .steps = {.s = s, .action = job->action, .exchanges = job->pivots != NULL},
        .scan = gpu_scan_begin(accel_is_double(s->dtype))};
}

void panel_run_prepare(struct panel_run *r, bool (*plan)(void *panel_run, int64_t bytes))
{
    const struct executor_memory memory = {.plan = plan, .take = alloc_panels};
    r->steps.panels = &r->panels;
    if (solver_is_well(r->s)) /* a plan may note a failure of its own */
        solver_note(r->s, executor_prepare(r->s->work, &memory, r));
}

enum gpu_status panel_run_compute(struct panel_run *r, const struct schedule_step *step,
                                  bool goes_on)
{
    if (!goes_on || !r->scan.finite)
        return GPU_UNSUPPORTED;
    panel_steps_put(&r->steps, step);
    return r->s->status;
}

void panel_run_pipeline(struct panel_run *r, struct pipeline_job *pipeline)
{
    struct solver *s = r->s;
    pipeline->schedule = &r->panels.schedule;
    pipeline->result_bytes = r->job->call.m * r->job->call.n * r->job->call.size;
    pipeline->reads_results = true;
    pipeline->context = r;
    pipeline->arrived = note_arrival;
    s->reserve = &r->reserve;
    solver_note(s, gpu_copies(s->work)->pipeline(s->work->ctx, pipeline));
    s->reserve = NULL;
    s->largest = r->scan.largest > s->largest ? r->scan.largest : s->largest;
}
