#include "batch.h"

#include <stdlib.h>

#include "gpu/plan/plan_cache.h"
#include "call/shape.h"

enum { A = SCHEDULE_A, C = SCHEDULE_C, OPERANDS = SCHEDULE_OPERANDS };

/* ---- Matrices ---- */

static int64_t products_of(const struct executor *e)
{
    return e->work->call->batch;
}

static bool is_in_place(const struct executor *e, int operand)
{
    return e->schedule.call.in_place[operand] && !executor_is_cached(e, operand);
}

/* The operands of kernels are not a stride apart: it has a device array of where they are, three
 * for each product: all of A, of B, of C. */
static bool has_pointers(const struct executor *e)
{
    return e->scheduled.own_bytes[0] > 0;
}

/* Returns where the matrix of a product, which is in a group, is on the device. */
static struct dmat matrix_of(const struct executor *e, int operand, int group, int64_t product)
{
    const struct accel_span *x = e->scheduled.operand[operand].x;
    const struct schedule_sharing *sharing = &e->scheduled.call.sharing[operand];
    if (!x) /* zeros, m x 1 and 1 x n */
        return (struct dmat){e->zeros, operand == A ? e->work->call->blas.size[ACCEL_m] : 1};
    if (is_in_place(e, operand))
        return (struct dmat){(gpu_address)(uintptr_t)accel_matrix_of(x, product), x->ld};
    if (executor_is_cached(e, operand)) {
        const int64_t number = product / sharing->repeat % sharing->distinct;
        struct dmat at = executor_whole(e, operand);
        at.ptr += (gpu_address)(number * schedule_matrix_bytes(&e->scheduled.call, operand));
        return at;
    }
    return (struct dmat){e->memory[operand] +
                             (gpu_address)schedule_matrix_at(&e->schedule, operand, group, product),
                         gpu_device_ld(x->rows, x->dtype)};
}

static int64_t stride_of(const struct executor *e, int operand)
{
    const struct accel_span *x = e->scheduled.operand[operand].x;
    if (!x)
        return 0;
    if (is_in_place(e, operand))
        return x->stride;
    return e->scheduled.call.sharing[operand].distinct == 1
               ? 0
               : schedule_matrix_bytes(&e->scheduled.call, operand) / gpu_size_of(x);
}

/* Describes matrices in host memory that go up or come down together: as one where no gap is
 * between them. */
static struct host_rectangle rectangle_of_matrices(const struct executor *e, int operand,
                                                   const struct schedule_tile *tile)
{
    const struct accel_span *x = e->scheduled.operand[operand].x;
    const int64_t repeat = e->scheduled.call.sharing[operand].repeat;
    struct host_rectangle r = host_whole(accel_matrix_of(x, tile->col * repeat), x->rows,
                                         tile->cols * x->cols, x->ld, gpu_size_of(x));
    r.name = x->name;
    if (tile->cols > 1 && (x->array || x->stride != x->ld * x->cols)) {
        r.each = x->cols;
        r.stride = x->stride;
        r.array = x->array ? x->array + tile->col * repeat : NULL;
        r.step = repeat;
    }
    return r;
}

/* ---- Steps ---- */

static void note_matrices(const struct executor *e, enum gpu_event_kind kind, int operand,
                          int64_t matrices)
{
    const struct accel_span *x = e->scheduled.operand[operand].x;
    gpu_work_event(e->work, kind, x, x->rows, matrices * x->cols, matrices * accel_bytes(x));
}

static void note_copy(void *executor, const struct schedule_step *step)
{
    const struct executor *e = executor;
    note_matrices(e, step->engine == SCHEDULE_UP ? GPU_EVENT_H2D : GPU_EVENT_D2H, step->operand,
                  schedule_tile_of(&e->schedule, step->operand, 0, step->j).cols);
}

/* Describes the copy of a tile, and notes one up in the call's record. */
static void copy_of_batch(void *executor, const struct schedule_step *step, struct tile_copy *copy)
{
    const struct executor *e = executor;
    const int x = step->operand;
    const struct schedule_tile tile = schedule_tile_of(&e->schedule, x, 0, step->j);
    const struct dmat at = matrix_of(e, x, step->j, tile.col * e->scheduled.call.sharing[x].repeat);
    *copy = (struct tile_copy){.host = rectangle_of_matrices(e, x, &tile), .device = at};
    if (step->engine == SCHEDULE_UP)
        note_copy(executor, step);
}

static enum gpu_status compute_step(void *batch, const struct schedule_step *step)
{
    struct batch *p = batch;
    struct executor *e = &p->executor;
    const int64_t first = schedule_group_start(&e->schedule, step->j);
    struct batch_group group = {.count = schedule_group_start(&e->schedule, step->j + 1) - first,
                                .pointers = has_pointers(e)};
    for (int x = A; x < OPERANDS; x++) {
        group.at[x] = matrix_of(e, x, step->j, first);
        group.stride[x] = stride_of(e, x);
        if (group.pointers)
            group.at[x].ptr =
                e->own[0] + (gpu_address)(x * products_of(e) + first) * sizeof(gpu_address);
    }
    GPU_TRY(p->compute(e, &group));
    return is_in_place(e, C) ? executor_settle(e, 1) : GPU_OK;
}

/* ---- After a failure ---- */

static bool products_by_original(const struct executor *e, int64_t first)
{
    const int64_t count = products_of(e) - first;
    if (count == 0)
        return true;
    const struct accel_call call = accel_products_of(e->work->call, first, count);
    return gpu_work_by_original(e->work, &call);
}

static bool rest_by_original(const void *executor)
{
    const struct executor *e = executor;
    const struct pipeline_job *pipeline = &e->pipeline;
    const struct accel_span *c = e->scheduled.operand[C].x;
    int64_t first =
        schedule_group_start(&e->schedule, pipeline->written) + pipeline->done_cols / c->cols;
    if (pipeline->done_cols % c->cols > 0 || pipeline->done_rows > 0) {
        const struct accel_call call = accel_products_of(e->work->call, first++, 1);
        const struct schedule_tile product = {0, 0, c->rows, c->cols};
        if (!executor_rest_of_part(e->work, &call, product, pipeline->done_cols % c->cols,
                                   pipeline->done_rows))
            return false;
    }
    return products_by_original(e, first);
}

/* ---- One product after the other ---- */

static enum gpu_status run_product(struct batch *p)
{
    struct gpu_work *all = p->executor.work;
    const struct accel_call call = accel_products_of(all->call, p->finished, 1);
    struct gpu_work work = *all;
    work.call = &call;
    work.launched = false;
    enum gpu_status status = p->alone(&work);
    all->blocks = work.blocks;
    memcpy(all->block, work.block, sizeof work.block);
    p->finished += gpu_is_finished(status);
    return status == GPU_OK              ? gpu_work_give_back(all)
           : status == GPU_SHORT_ELSE    ? GPU_NO_MEMORY
           : status == GPU_FINISHED_ELSE ? GPU_ERROR
                                         : status;
}

static bool others_by_original(const void *batch)
{
    const struct batch *p = batch;
    return products_by_original(&p->executor, p->finished);
}

static enum gpu_status run_each_alone(struct batch *p)
{
    enum gpu_status status = GPU_OK;
    while (status == GPU_OK && p->finished < products_of(&p->executor))
        status = run_product(p);
    const struct executor_rest rest = {.written = p->finished > 0,
                                       .by_original = others_by_original};
    return status == GPU_OK ? status : executor_recover(p->executor.work, status, &rest, p);
}

/* ---- Together ---- */

static bool make_schedule(struct executor *e, int64_t bytes)
{
    const struct schedule_rates *rates = executor_rates(e->work);
    return !scheduled_runs_alone(&e->scheduled, rates, bytes) &&
           plan_cache_make(&e->schedule, &e->scheduled.call, rates,
                           scheduled_memory(&e->scheduled, bytes));
}

/* Sends up where the matrices of all products are. */
static enum gpu_status send_pointers(struct executor *e)
{
    const int64_t count = products_of(e);
    const struct schedule *s = &e->schedule;
    gpu_address *pointers = malloc((size_t)(OPERANDS * count) * sizeof *pointers);
    const struct host_rectangle from =
        host_whole(pointers, OPERANDS * count, 1, OPERANDS * count, sizeof *pointers);
    if (!pointers)
        return GPU_NO_MEMORY;
    for (int group = 0; group < s->tiles[C].cols; group++)
        for (int64_t i = schedule_group_start(s, group); i < schedule_group_start(s, group + 1);
             i++)
            for (int x = A; x < OPERANDS; x++)
                pointers[x * count + i] = matrix_of(e, x, group, i).ptr;
    enum gpu_status status = gpu_copies(e->work)->upload(
        e->work->ctx, (struct dmat){e->own[0], OPERANDS * count}, &from);
    free(pointers);
    return status;
}

static enum gpu_status run_groups(struct executor *e)
{
    const int64_t *size = e->work->call->blas.size;
    for (int x = A; x < OPERANDS; x++)
        if (is_in_place(e, x))
            note_matrices(e, GPU_EVENT_IN_PLACE, x, products_of(e));
    if (e->scheduled.call.k == 0)
        GPU_TRY(kernels_zeros(e->work, accel_max(size[ACCEL_m], size[ACCEL_n]), &e->zeros));
    GPU_TRY(cached_inputs_send(&e->cached));
    if (has_pointers(e))
        GPU_TRY(send_pointers(e));
    e->pipeline.result_bytes = accel_bytes(e->scheduled.operand[C].x) * products_of(e);
    return executor_run(e, e->schedule.steps[SCHEDULE_COMPUTE] == 1 || is_in_place(e, C));
}

enum gpu_status batch_run(struct batch *p)
{
    static const struct executor_kind kind = {make_schedule, NULL, rest_by_original};
    struct executor *e = &p->executor;
    e->kind = &kind;
    e->pipeline = (struct pipeline_job){
        .copy_of = copy_of_batch, .arrived = note_copy, .compute = compute_step};
    if (!executor_describe(e))
        return GPU_UNSUPPORTED;
    device_cache_invalidate(e->work, e->scheduled.operand[C].x);
    enum gpu_status status = executor_take(e);
    if (status == GPU_NO_MEMORY) {
        status = run_each_alone(p);
    } else if (status == GPU_OK) {
        status = run_groups(e);
        if (status == GPU_OK)
            cached_inputs_insert(&e->cached);
        else
            status = executor_end_failed(e, status);
    }
    schedule_free(&e->schedule);
    return status;
}
