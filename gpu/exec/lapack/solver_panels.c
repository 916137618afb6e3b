#include "solver_panels.h"

#include <limits.h>
#include <stdlib.h>

#include "base/thread/crew.h"
#include "base/memory/host_memory.h"
#include "base/memory/kept_block.h"
#include "base/memory/populate.h"

/* A job under way. */
struct run {
    struct solver *s;
    struct panels_job *job;
    struct panels panels;
    struct panel_steps steps;
    struct panel_copies copies;
    struct solver_reserve reserve;
    bool refused; /* a panel cannot be factored */
};

/* ---- Steps ---- */

/* The panel that a block is of is in host memory, and so is its outcome. */
static void copy_of(void *context, const struct schedule_step *step, struct flow_copy *copy)
{
    struct run *r = context;
    if (step->operand == PANELS_BLOCK && r->job->call.kind != PANELS_APPLY)
        r->refused = r->refused || !panel_steps_succeeded(&r->steps, &r->copies.outcome[step->i]);
    panel_copies_of(&r->copies, step, copy);
}

static void note_arrival(void *context, const struct schedule_step *step)
{
    struct run *r = context;
    panel_copies_arrived(&r->copies, step);
}

static enum gpu_status compute(void *context, const struct schedule_step *step)
{
    struct run *r = context;
    if (r->refused || !r->copies.scan.finite)
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
    gpu_memory(s->work)->drop(s->work);
    s->inputs_kept = 0; /* the copies that were to stay are gone with it */
    free(s->host);
    s->host = NULL;
    s->reserve = NULL;
}

/* Makes a schedule for so much memory, and the workspaces that it needs. With less memory, it may
 * be one that needs larger workspaces: then they get some more than that. */
static bool plan(struct run *r, const struct schedule_rates *rates, int64_t available)
{
    int64_t reserved = 0;
    for (int attempt = 0; attempt < 8 && solver_is_well(r->s); attempt++) {
        panels_free(&r->panels);
        if (!panels_make(&r->panels, &r->job->call, rates, available - reserved))
            return false;
        panel_steps_measure(&r->steps, &r->reserve);
        if (r->reserve.device_bytes > (size_t)available)
            return false;
        if ((int64_t)r->reserve.device_bytes <= reserved)
            return true;
        reserved = (int64_t)r->reserve.device_bytes;
        if (attempt > 0)
            reserved += reserved / 8;
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

/* Pivots and scalars: at most so many bytes for each column that has them. */
static int64_t list_bytes(const struct panels_call *call)
{
    const int64_t columns = call->kind == PANELS_APPLY ? call->order : call->n;
    return call->kind == PANELS_CHOLESKY ? 0 : 16 * accel_min(call->m, columns);
}

int64_t solver_panels_reserve(const struct panels_call *call)
{
    const int64_t columns = 16;
    return columns * call->m * call->size + list_bytes(call);
}

/* Vectors take a little, and each block that the pool gives is a whole number of its units. */
static int64_t other_bytes(const struct run *r)
{
    return list_bytes(&r->job->call) + PANELS_MOST * (int64_t)sizeof(struct solver_outcome) + 4096;
}

/* Makes a schedule for the device's memory, then for what there is of it. */
static void prepare(struct run *r)
{
    struct solver *s = r->s;
    const struct schedule_rates *rates =
        s->work->host->rates.up > 0 ? &s->work->host->rates : &schedule_nominal;
    int64_t available = gpu_info(s->work->device)->memory_bytes;
    for (int attempt = 0; attempt < WORK_ATTEMPTS && solver_is_well(s); attempt++) {
        available = gpu_work_room(s->work, attempt, available);
        if (!plan(r, rates, available - other_bytes(r)))
            break;
        take_device_memory(r);
        if (s->status != GPU_NO_MEMORY)
            return;
        gpu_memory(s->work)->drop(s->work);
        s->status = GPU_OK;
    }
    solver_note(s, GPU_NO_MEMORY);
}

static void take_host_memory(struct run *r)
{
    struct solver *s = r->s;
    r->copies.outcome = calloc((size_t)r->panels.count, sizeof *r->copies.outcome);
    if (!r->copies.outcome)
        solver_note(s, GPU_NO_MEMORY);
}

/* The rest of the other matrix goes up as a whole. */
static void put_lists(struct run *r)
{
    const struct panels_job *job = r->job;
    if (job->scalars && job->scans && solver_is_well(r->s))
        gpu_scan_numbers(&r->copies.scan, job->scalars, job->call.order * job->call.size);
    if (job->scalars) {
        solver_put(r->s, r->steps.list, job->scalars);
        panel_copies_note(r->s, panel_copies_list_operand(r->s), true, 1, job->call.order,
                          job->call.size);
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
        panel_copies_note(r->s, panel_copies_list_operand(r->s), true, 1, job->call.order,
                          sizeof *swaps);
    }
    free(swaps);
}

/* ---- Pages of the result ---- */

/* A result in smaller memory is written as fast as its pages are given. */
#define POPULATED_BYTES ((int64_t)64 << 20)

/* While the first panel comes up and is factored, the pages of the result, which is in memory of
 * our own, begin to be taken from the kernel. The first panel comes down too soon for that: its own
 * are last. */
static void begin_pages(const struct run *r, struct populate *pages, struct populate_runs *runs)
{
    const struct panels_call *call = &r->job->call;
    const bool large = call->m * call->n * call->size >= POPULATED_BYTES;
    const int threads = large ? (int)accel_min(3, crew_size() / 3) : 0, count = r->panels.count;
    for (int i = 0; i < count; i++) {
        const struct lane_rectangle to = panel_copies_result(&r->copies, (i + 1) % count);
        runs[i] = (struct populate_runs){to.host, to.rows * to.size, to.ld * to.size, to.cols};
    }
    populate_begin(pages, runs, count, threads);
}

/* ---- The whole ---- */

static void run_flow(struct run *r)
{
    struct solver *s = r->s;
    struct flow flow = {.schedule = &r->panels.schedule,
                        .result_bytes = r->job->call.m * r->job->call.n * r->job->call.size,
                        .reads_results = true,
                        .context = r,
                        .copy_of = copy_of,
                        .arrived = note_arrival,
                        .compute = compute};
    struct populate_runs runs[PANELS_MOST];
    struct populate pages;
    if (!solver_is_well(s))
        return;
    s->reserve = &r->reserve;
    begin_pages(r, &pages, runs);
    solver_note(s, gpu_copies(s->work)->flow(s->work->lane, &flow));
    populate_end(&pages);
    if (!r->copies.scan.finite)
        solver_note(s, GPU_UNSUPPORTED);
    for (int j = 0; solver_is_well(s) && j < r->panels.count; j++)
        if (!panel_steps_succeeded(&r->steps, &r->copies.outcome[j]))
            solver_note(s, GPU_UNSUPPORTED);
    s->largest = r->copies.scan.largest > s->largest ? r->copies.scan.largest : s->largest;
    s->reserve = NULL;
}

void solver_panels(struct solver *s, struct panels_job *job)
{
    struct run r = {.s = s, .job = job};
    r.copies = (struct panel_copies){
        .s = s, .job = job, .steps = &r.steps, .scan = gpu_scan_begin(accel_is_double(s->dtype))};
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
        panel_copies_end_lu(job, r.panels.first, r.panels.count);
    free(r.copies.outcome);
    panels_free(&r.panels);
    if (solver_is_well(s))
        restart(s);
}

static void *take_memory(struct solver *s, void *(*take)(int64_t bytes), int64_t rows, int64_t cols,
                         int64_t size)
{
    int64_t bytes;
    void *memory = NULL;
    if (!solver_is_well(s))
        return NULL;
    if (accel_mul(rows, cols, &bytes) && accel_mul(bytes, size, &bytes))
        memory = take(bytes);
    if (!memory)
        solver_note(s, GPU_NO_MEMORY);
    return memory;
}

static void *take_block(int64_t bytes)
{
    void *block = host_memory_has((double)bytes) ? kept_block_take(bytes) : NULL;
    return block ? block : host_memory_take(bytes);
}

void *solver_panels_memory(struct solver *s, int64_t rows, int64_t cols, int64_t size)
{
    return take_memory(s, take_block, rows, cols, size);
}

void *solver_panels_zeros(struct solver *s, int64_t rows, int64_t cols, int64_t size)
{
    return take_memory(s, host_memory_take_zeros, rows, cols, size);
}
