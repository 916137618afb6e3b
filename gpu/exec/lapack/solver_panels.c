#include "solver_panels.h"

#include <stdlib.h>

#include "base/thread/copy_pool.h"
#include "base/memory/host_memory.h"
#include "base/memory/block_cache.h"
#include "base/memory/prefault.h"
#include "gpu/exec/executor.h"

struct panels_alone {
    struct panel_run run;
    bool refused; /* a panel cannot be factored */
};

/* ---- Steps ---- */

/* The panel that a block is of is in host memory, and so is its outcome. */
static void copy_of_block(void *alone, const struct schedule_step *step, struct tile_copy *copy)
{
    struct panels_alone *a = alone;
    const struct panel_run *r = &a->run;
    if (step->operand == PANELS_BLOCK && r->job->call.kind != PANELS_APPLY)
        a->refused = a->refused || !panel_steps_succeeded(&r->steps, &r->outcome[step->i]);
    panel_copies_of(alone, step, copy);
}

static enum gpu_status compute_alone(void *alone, const struct schedule_step *step)
{
    struct panels_alone *a = alone;
    return panel_run_compute(&a->run, step, !a->refused);
}

/* ---- Memory ---- */

/* Gives back what the steps before had. */
static void restart(struct solver *s)
{
    if (!solver_note(s, gpu_work_settle(s->work)))
        return;
    gpu_memory(s->work)->drop(s->work);
    s->cached_copies = 0; /* the copies that were to be cached are gone with it */
    free(s->host);
    s->host = NULL;
    s->reserve = NULL;
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
int64_t solver_panels_others(const struct panels_call *call)
{
    return list_bytes(call) + PANELS_MOST * (int64_t)sizeof(struct solver_outcome) + 4096;
}

/* Makes a schedule for so much memory, and the workspaces that it needs. With less memory, it may
 * be one that needs larger workspaces: then they get some more than that. */
static bool plan(void *panel_run, int64_t bytes)
{
    struct panel_run *r = panel_run;
    const int64_t available = bytes - solver_panels_others(&r->job->call);
    int64_t reserved = 0;
    for (int attempt = 0; attempt < 8 && solver_is_well(r->s); attempt++) {
        panels_free(&r->panels);
        if (!panels_make(&r->panels, &r->job->call, executor_rates(r->s->work),
                         available - reserved))
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

static void take_host_memory(struct panel_run *r)
{
    if (solver_is_well(r->s) && !(r->outcome = calloc((size_t)r->panels.count, sizeof *r->outcome)))
        solver_note(r->s, GPU_NO_MEMORY);
}

/* The rest of the other matrix goes up as a whole. */
static void put_lists(struct panel_run *r)
{
    const struct panels_job *job = r->job;
    if (job->scalars && job->scans && solver_is_well(r->s))
        gpu_scan_numbers(&r->scan, job->scalars, job->call.order * job->call.size);
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
#define PREFAULT_BYTES ((int64_t)64 << 20)

/* While the first panel comes up and is factored, the pages of the result, which is in memory of
 * our own, begin to be taken from the kernel. The first panel comes down too soon for that: its own
 * are last. */
static void begin_pages(const struct panel_run *r, struct prefault *pages,
                        struct prefault_runs *runs)
{
    const struct panels_call *call = &r->job->call;
    const bool large = call->m * call->n * call->size >= PREFAULT_BYTES;
    const int threads = large ? (int)accel_min(3, copy_pool_size() / 3) : 0,
              count = r->panels.count;
    for (int i = 0; i < count; i++) {
        const struct host_rectangle to = panel_copies_result(r, (i + 1) % count);
        runs[i] = (struct prefault_runs){to.host, to.rows * to.size, to.ld * to.size, to.cols};
    }
    prefault_begin(pages, runs, count, threads);
}

/* ---- The whole ---- */

static void run_pipeline(struct panels_alone *a)
{
    struct panel_run *r = &a->run;
    struct solver *s = r->s;
    struct pipeline_job pipeline = {.copy_of = copy_of_block, .compute = compute_alone};
    struct prefault_runs runs[PANELS_MOST];
    struct prefault pages;
    if (!solver_is_well(s))
        return;
    begin_pages(r, &pages, runs);
    panel_run_pipeline(r, &pipeline);
    prefault_end(&pages);
    if (!r->scan.finite)
        solver_note(s, GPU_UNSUPPORTED);
    for (int j = 0; solver_is_well(s) && j < r->panels.count; j++)
        if (!panel_steps_succeeded(&r->steps, &r->outcome[j]))
            solver_note(s, GPU_UNSUPPORTED);
}

void solver_panels(struct solver *s, struct panels_job *job)
{
    struct panels_alone a = {.run = panel_run_begin(s, job)};
    struct panel_run *r = &a.run;
    if (!solver_is_well(s))
        return;
    restart(s);
    panel_run_prepare(r, plan);
    take_host_memory(r);
    put_lists(r);
    run_pipeline(&a);
    if (solver_is_well(s) && job->call.kind == PANELS_LU)
        panel_copies_end_lu(job, r->panels.first, r->panels.count);
    free(r->outcome);
    panels_free(&r->panels);
    if (solver_is_well(s))
        restart(s);
}

static void *alloc_matrix(struct solver *s, void *(*take)(int64_t bytes), int64_t rows,
                          int64_t cols, int64_t size)
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
    void *block = host_memory_has((double)bytes) ? block_cache_take(bytes) : NULL;
    return block ? block : host_memory_take(bytes);
}

void *solver_panels_memory(struct solver *s, int64_t rows, int64_t cols, int64_t size)
{
    return alloc_matrix(s, take_block, rows, cols, size);
}

void *solver_panels_zeros(struct solver *s, int64_t rows, int64_t cols, int64_t size)
{
    return alloc_matrix(s, host_memory_take_zeros, rows, cols, size);
}
