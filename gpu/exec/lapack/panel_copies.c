#include "panel_copies.h"

#include "gpu/pack/exchange.h"

static struct lane_rectangle rectangle_of(const char *matrix, int64_t ld, int64_t size,
                                          const struct schedule_cell *cell, const char *name)
{
    char *at = (char *)(uintptr_t)matrix + (cell->row + cell->col * ld) * size;
    struct lane_rectangle rectangle = lane_whole(at, cell->rows, cell->cols, ld, size);
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
    const int64_t bytes = rows * cols * size;
    *(up ? &s->work->host->up_bytes : &s->work->host->down_bytes) += bytes;
    gpu_work_event(s->work, up ? GPU_EVENT_H2D : GPU_EVENT_D2H, x, rows, cols, bytes);
}

/* The leading dimension of the result. */
static int64_t packed_ld(const struct panels_job *job)
{
    return job->call.across ? job->call.n : job->call.m;
}

struct lane_rectangle panel_copies_result(const struct panel_copies *c, int j)
{
    const struct panels_job *job = c->job;
    const struct schedule_cell cell =
        panel_steps_stored(c->steps, panels_panel(c->steps->panels, j));
    return rectangle_of(job->to, packed_ld(job), job->call.size, &cell, job->x->name);
}

static void copy_panel(struct panel_copies *c, const struct schedule_step *step,
                       struct flow_copy *copy)
{
    const struct panels_job *job = c->job;
    const struct schedule_cell cell =
        panel_steps_stored(c->steps, panels_panel(c->steps->panels, step->j));
    const struct array x = panel_steps_panel(c->steps, step->j);
    const bool up = step->engine == SCHEDULE_UP, cholesky = job->call.kind == PANELS_CHOLESKY;
    copy->host = up ? rectangle_of(job->from, job->from_ld, job->call.size, &cell, job->x->name)
                    : panel_copies_result(c, step->j);
    copy->device = x.ptr;
    copy->device_ld = x.ld;
    if (cholesky || job->call.triangle)
        copy->host.uplo = job->call.across ? 'U' : 'L';
    if (!up)
        return;
    copy->host.hermitian = cholesky && accel_is_complex(c->s->dtype);
    copy->host.scan = &c->scan;
    panel_copies_note(c->s, job->x, true, cell.rows, cell.cols, job->call.size);
}

static void copy_block(struct panel_copies *c, const struct schedule_step *step,
                       struct flow_copy *copy)
{
    const struct panels_job *job = c->job;
    const bool applied = job->call.kind == PANELS_APPLY;
    const struct schedule_cell cell =
        panel_steps_stored_block(c->steps, panels_block(c->steps->panels, step));
    const struct array x = panel_steps_block(c->steps, step, step->place);
    const struct accel_span *span = applied ? job->other : job->x;
    copy->host =
        rectangle_of(applied ? job->factors : job->to, applied ? job->factors_ld : packed_ld(job),
                     job->call.size, &cell, span->name);
    if (applied)
        copy->host.uplo = job->reads;
    if (applied && job->scans)
        copy->host.scan = &c->scan;
    copy->device = x.ptr;
    copy->device_ld = x.ld;
    panel_copies_note(c->s, span, true, cell.rows, cell.cols, job->call.size);
}

/* On its way up, the list of the panel that a block is of. */
static void copy_list(const struct panel_copies *c, const struct schedule_step *step,
                      struct flow_copy *copy)
{
    const bool up = step->engine == SCHEDULE_UP;
    const int j = up ? step->i : step->j;
    const struct array list = panel_steps_list(c->steps, j);
    const int64_t size = (int64_t)accel_dtype_size(list.dtype);
    copy->host = lane_whole((char *)c->job->list + c->steps->panels->first[j] * size, list.rows, 1,
                            list.rows, size);
    copy->device = list.ptr;
    copy->device_ld = list.rows;
    if (up)
        panel_copies_note(c->s, panel_copies_list_operand(c->s), true, 1, list.rows, size);
}

static void copy_outcome(const struct panel_copies *c, const struct schedule_step *step,
                         struct flow_copy *copy)
{
    copy->host = lane_whole(&c->outcome[step->j], 1, 1, 1, sizeof *c->outcome);
    copy->device = solver_outcome_at(c->steps->outcomes, step->j).ptr;
    copy->device_ld = 1;
}

void panel_copies_of(struct panel_copies *c, const struct schedule_step *step,
                     struct flow_copy *copy)
{
    *copy = (struct flow_copy){.device_ld = 1};
    switch (step->operand) {
    case PANELS_PANEL:
        copy_panel(c, step, copy);
        break;
    case PANELS_BLOCK:
        copy_block(c, step, copy);
        break;
    case PANELS_LIST:
        copy_list(c, step, copy);
        break;
    default:
        copy_outcome(c, step, copy);
        break;
    }
}

void panel_copies_arrived(struct panel_copies *c, const struct schedule_step *step)
{
    const struct schedule_cell cell =
        panel_steps_stored(c->steps, panels_panel(c->steps->panels, step->j));
    const struct array list = panel_steps_list(c->steps, step->j);
    if (step->operand == PANELS_PANEL)
        panel_copies_note(c->s, c->job->x, false, cell.rows, cell.cols, c->job->call.size);
    else if (step->operand == PANELS_LIST)
        panel_copies_note(c->s, panel_copies_list_operand(c->s), false, 1, list.rows,
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
