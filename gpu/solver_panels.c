#include "solver_panels.h"

#include <limits.h>
#include <stdlib.h>

#include "base/host_memory.h"
#include "exchange.h"
#include "flow.h"

/* A job under way. */
struct run {
    struct solver *s;
    struct panels_job *job;
    struct panels panels;
    struct panel_steps steps;
    struct solver_reserve reserve;
    int32_t *info; /* of each panel, once it has come down */
    struct gpu_scan scan;
    bool refused; /* a panel cannot be factored */
};

static int64_t size_of(const struct run *r)
{
    return r->job->call.size;
}

/* ---- Copies ---- */

static bool is_cholesky(const struct run *r)
{
    return r->job->call.kind == PANELS_CHOLESKY;
}

static bool is_applied(const struct run *r)
{
    return r->job->call.kind == PANELS_APPLY;
}

static struct lane_rectangle rectangle_of(const char *matrix, int64_t ld, int64_t size,
                                          const struct schedule_cell *cell, const char *name)
{
    char *at = (char *)(uintptr_t)matrix + (cell->row + cell->col * ld) * size;
    struct lane_rectangle rectangle = lane_whole(at, cell->rows, cell->cols, ld, size);
    rectangle.name = name;
    return rectangle;
}

static void note_copy(struct run *r, const struct accel_span *x, bool up, int64_t rows,
                      int64_t cols, int64_t size)
{
    const int64_t bytes = rows * cols * size;
    *(up ? &r->s->work->host->up_bytes : &r->s->work->host->down_bytes) += bytes;
    gpu_work_event(r->s->work, up ? GPU_EVENT_H2D : GPU_EVENT_D2H, x, rows, cols, bytes);
}

/* The operand for pivots or scalars of reflectors; NULL: the call has none. */
static const struct accel_span *list_operand(const struct run *r)
{
    const struct accel_span *x = &r->s->call->span[ACCEL_x];
    return x->ptr ? x : NULL;
}

static void copy_panel(struct run *r, const struct schedule_step *step, struct flow_copy *copy)
{
    const struct panels_job *job = r->job;
    const struct schedule_cell cell =
        panel_steps_stored(&r->steps, panels_panel(&r->panels, step->j));
    const struct array x = panel_steps_panel(&r->steps, step->j);
    const bool up = step->engine == SCHEDULE_UP;
    copy->host = rectangle_of(up ? job->from : job->to, up ? job->from_ld : job->call.m, size_of(r),
                              &cell, job->x->name);
    copy->device = x.ptr;
    copy->device_ld = x.ld;
    if (is_cholesky(r))
        copy->host.uplo = job->call.across ? 'U' : 'L';
    if (!up)
        return;
    copy->host.hermitian = is_cholesky(r) && accel_is_complex(r->s->dtype);
    copy->host.scan = &r->scan;
    note_copy(r, job->x, true, cell.rows, cell.cols, size_of(r));
}

/* The panel that the block is of is in host memory, and so is its INFO. */
static void copy_block(struct run *r, const struct schedule_step *step, struct flow_copy *copy)
{
    const struct panels_job *job = r->job;
    const struct schedule_cell cell = panel_steps_stored(&r->steps, panels_block(&r->panels, step));
    const struct array x = panel_steps_block(&r->steps, step, step->place);
    const struct accel_span *span = is_applied(r) ? job->other : job->x;
    copy->host =
        rectangle_of(is_applied(r) ? job->factors : job->to,
                     is_applied(r) ? job->factors_ld : job->call.m, size_of(r), &cell, span->name);
    copy->device = x.ptr;
    copy->device_ld = x.ld;
    r->refused = r->refused || (!is_applied(r) && r->info[step->i] != 0);
    note_copy(r, span, true, cell.rows, cell.cols, size_of(r));
}

static void copy_list(const struct run *r, const struct schedule_step *step, struct flow_copy *copy)
{
    const struct array list = panel_steps_list(&r->steps, step->j);
    const int64_t size = (int64_t)accel_dtype_size(list.dtype);
    copy->host = lane_whole((char *)r->job->list + r->panels.first[step->j] * size, list.rows, 1,
                            list.rows, size);
    copy->device = list.ptr;
    copy->device_ld = list.rows;
}

static void copy_info(const struct run *r, const struct schedule_step *step, struct flow_copy *copy)
{
    copy->host = lane_whole(&r->info[step->j], 1, 1, 1, sizeof(int32_t));
    copy->device = solver_part(r->steps.infos, step->j, 0, 1, 1).ptr;
    copy->device_ld = 1;
}

static void copy_of(void *context, const struct schedule_step *step, struct flow_copy *copy)
{
    *copy = (struct flow_copy){.device_ld = 1};
    switch (step->operand) {
    case PANELS_PANEL:
        copy_panel(context, step, copy);
        break;
    case PANELS_BLOCK:
        copy_block(context, step, copy);
        break;
    case PANELS_LIST:
        copy_list(context, step, copy);
        break;
    default:
        copy_info(context, step, copy);
        break;
    }
}

static void note_arrival(void *context, const struct schedule_step *step)
{
    struct run *r = context;
    const struct schedule_cell cell =
        panel_steps_stored(&r->steps, panels_panel(&r->panels, step->j));
    const struct array list = panel_steps_list(&r->steps, step->j);
    if (step->operand == PANELS_PANEL)
        note_copy(r, r->job->x, false, cell.rows, cell.cols, size_of(r));
    else if (step->operand == PANELS_LIST)
        note_copy(r, list_operand(r), false, 1, list.rows, (int64_t)accel_dtype_size(list.dtype));
}

static enum gpu_status compute(void *context, const struct schedule_step *step)
{
    struct run *r = context;
    if (r->refused || !r->scan.finite)
        return GPU_UNSUPPORTED;
    panel_steps_put(&r->steps, step);
    return r->s->status;
}

/* ---- Memory ---- */

/* Gives back what the steps before had. */
static void restart(struct solver *s)
{
    if (!solver_note(s, gpu_work_settle(s->work)))
        return;
    gpu_work_drop(s->work);
    free(s->host);
    s->host = NULL;
    s->strip = 0;
    s->strip_bytes = 0;
    s->reserve = NULL;
}

/* Makes a schedule for so much memory, and the workspaces that it needs. */
static bool plan(struct run *r, const struct schedule_rates *rates, int64_t available)
{
    int64_t reserved = 0;
    for (int attempt = 0; attempt < 4 && solver_is_well(r->s); attempt++) {
        panels_free(&r->panels);
        if (!panels_make(&r->panels, &r->job->call, rates, available - reserved))
            return false;
        panel_steps_measure(&r->steps, &r->reserve);
        if (r->reserve.device_bytes > (size_t)available)
            return false;
        if ((int64_t)r->reserve.device_bytes <= reserved)
            return true;
        reserved = (int64_t)r->reserve.device_bytes;
    }
    return false;
}

static void take_device_memory(struct run *r)
{
    struct solver *s = r->s;
    const struct panels *p = &r->panels;
    r->steps.list = (struct array){.ptr = 0}; /* an attempt before may have had one */
    panel_steps_take_lists(&r->steps, r->job->scalars != NULL);
    r->steps.panel = solver_work(s, (size_t)(accel_min(p->buffers, p->count) * p->panel_bytes)).ptr;
    r->steps.block = solver_work(s, (size_t)(2 * p->block_bytes)).ptr;
    panel_steps_take_reserve(&r->steps, &r->reserve);
}

int64_t solver_panels_reserve(const struct panels_call *call)
{
    const int64_t list = call->kind == PANELS_CHOLESKY ? 0 : 16, columns = 16;
    return call->m * (columns * call->size + list);
}

/* Vectors take a little, and each block that the pool gives is a whole number of its units. */
static int64_t other_bytes(const struct run *r)
{
    return solver_panels_reserve(&(struct panels_call){
               .kind = r->job->call.kind, .m = r->job->call.m, .n = r->job->call.n}) +
           4096;
}

/* Makes a schedule for the device's memory, then for what is free of it, less what the pool may round up, and last for half of that, and so
 * on: other threads and programs take memory meanwhile. */
static void prepare(struct run *r)
{
    struct solver *s = r->s;
    const struct schedule_rates *rates =
        s->work->host->rates.up > 0 ? &s->work->host->rates : &schedule_nominal;
    int64_t available = gpu_info(s->work->device)->memory_bytes;
    for (int attempt = 0; attempt < 6 && solver_is_well(s); attempt++) {
        if (attempt == 1)
            gpu_work_trim(s->work);
        if (attempt > 0)
            available = attempt == 1 ? gpu_work_available(s->work) / 9 * 8 : available / 2;
        if (!plan(r, rates, available - other_bytes(r)))
            break;
        take_device_memory(r);
        if (s->status != GPU_NO_MEMORY)
            return;
        gpu_work_drop(s->work);
        s->status = GPU_OK;
    }
    solver_note(s, GPU_NO_MEMORY);
}

static void take_host_memory(struct run *r)
{
    struct solver *s = r->s;
    r->info = calloc((size_t)r->panels.count, sizeof *r->info);
    if (!r->info)
        solver_note(s, GPU_NO_MEMORY);
}

/* What the other matrix has besides goes up as a whole. */
static void put_lists(struct run *r)
{
    const struct panels_job *job = r->job;
    if (job->scalars) {
        solver_put(r->s, r->steps.list, job->scalars);
        note_copy(r, list_operand(r), true, 1, job->call.order, size_of(r));
    }
    if (!job->pivots)
        return;
    int32_t *swaps = malloc((size_t)job->call.order * sizeof *swaps);
    if (!swaps)
        solver_note(r->s, GPU_NO_MEMORY);
    for (int64_t i = 0; swaps && i < job->call.order; i++)
        swaps[i] = (int32_t)job->pivots[i];
    if (swaps) {
        solver_put(r->s, r->steps.swaps, swaps);
        note_copy(r, list_operand(r), true, 1, job->call.order, sizeof *swaps);
    }
    free(swaps);
}

/* The pivots of a panel count from its diagonal. A panel has the exchanges of those before it, and lacks those after it. */
static void end_lu(const struct run *r)
{
    const struct panels *p = &r->panels;
    const int64_t count = accel_min(r->job->call.m, r->job->call.n);
    int64_t *pivots = r->job->list;
    for (int j = 0; j < p->count; j++)
        for (int64_t i = p->first[j]; i < accel_min(p->first[j + 1], count); i++)
            pivots[i] += p->first[j];
    for (int j = 0; j < p->count; j++)
        exchange_rows(r->job->to + p->first[j] * r->job->call.m * size_of(r), r->job->call.m,
                      p->first[j + 1] - p->first[j], size_of(r), pivots, p->first[j + 1], count,
                      false);
}

/* ---- The whole ---- */

static void run_flow(struct run *r)
{
    struct solver *s = r->s;
    struct flow flow = {.schedule = &r->panels.schedule,
                        .result_bytes = r->job->call.m * r->job->call.n * size_of(r),
                        .reads_results = true,
                        .context = r,
                        .copy_of = copy_of,
                        .arrived = note_arrival,
                        .compute = compute};
    if (!solver_is_well(s))
        return;
    s->reserve = &r->reserve;
    solver_note(s, lane_flow(s->work->lane, &flow));
    if (!r->scan.finite)
        solver_note(s, GPU_UNSUPPORTED);
    for (int j = 0; solver_is_well(s) && j < r->panels.count; j++)
        if (r->info[j] != 0)
            solver_note(s, GPU_UNSUPPORTED);
    s->largest = r->scan.largest > s->largest ? r->scan.largest : s->largest;
    s->reserve = NULL;
}

void solver_panels(struct solver *s, struct panels_job *job)
{
    struct run r = {.s = s, .job = job, .scan = gpu_scan_begin(accel_is_double(s->dtype))};
    r.steps = (struct panel_steps){
        .s = s, .panels = &r.panels, .action = job->action, .exchanges = job->pivots != NULL};
    if (job->call.m > INT_MAX || job->call.n > INT_MAX) /* cuSOLVER's laswp and ormqr take int */
        solver_note(s, GPU_UNSUPPORTED);
    if (!solver_is_well(s))
        return;
    restart(s);
    prepare(&r);
    if (solver_is_well(s))
        take_host_memory(&r);
    put_lists(&r);
    run_flow(&r);
    if (solver_is_well(s) && job->call.kind == PANELS_LU)
        end_lu(&r);
    free(r.info);
    panels_free(&r.panels);
    if (solver_is_well(s))
        restart(s);
}

void *solver_panels_memory(struct solver *s, int64_t rows, int64_t cols, int64_t size)
{
    int64_t bytes;
    void *memory = NULL;
    if (!solver_is_well(s))
        return NULL;
    if (accel_mul(rows, cols, &bytes) && accel_mul(bytes, size, &bytes))
        memory = host_memory_take(bytes);
    if (!memory)
        solver_note(s, GPU_NO_MEMORY);
    return memory;
}
