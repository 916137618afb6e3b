#include "level3.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory/host_memory.h"
#include "level3_peer_tiles.h"
#include "level3_recovery.h"
#include "level3_cache.h"
#include "gpu/cache/arrivals.h"
#include "gpu/plan/plan_cache.h"
#include "gpu/pack/chunks.h"

enum { A = SCHEDULE_A, C = SCHEDULE_C, OPERANDS = SCHEDULE_OPERANDS };

/* ---- Tiles ---- */

static struct schedule_tile stored(const struct executor *e, int operand, int i, int j)
{
    return scheduled_stored(&e->scheduled, &e->schedule, operand, i, j);
}

static int32_t *slot_of_tile(const struct executor *e, int operand, int i, int j)
{
    const struct level3 *b = (const struct level3 *)e;
    return &b->slot[operand][i + j * e->schedule.tiles[operand].rows];
}

struct dmat level3_tile(const struct executor *e, int operand, int i, int j)
{
    const struct schedule *s = &e->schedule;
    const struct accel_span *x = e->scheduled.operand[operand].x;
    const struct schedule_tile tile = stored(e, operand, i, j);
    const struct dmat whole = executor_whole(e, operand);
    if (s->call.in_place[operand])
        return dmat_part(whole, tile.row, tile.col, gpu_size_of(x));
    const int64_t at = *slot_of_tile(e, operand, i, j) * s->slot_bytes[operand];
    return (struct dmat){e->memory[operand] + (gpu_address)at, gpu_device_ld(tile.rows, x->dtype)};
}

static void note_slot(const struct executor *e, const struct schedule_step *step, int operand)
{
    if (!e->schedule.call.in_place[operand])
        *slot_of_tile(e, operand, step->i, step->j) = step->slot;
}

/* Returns the triangle of an operand that the kernels read or write alone; 0: all of it. */
static char triangle_of(const struct executor *e, int operand)
{
    const struct schedule_call *call = &e->scheduled.call;
    if (operand == C)
        return level3_triangle(e);
    return operand == A && (call->kind == SCHEDULE_SYMMETRIC || schedule_in_panels(call))
               ? e->work->call->blas.flag[ACCEL_uplo]
               : 0;
}

static bool is_in_one(const struct executor *e)
{
    return e->schedule.steps[SCHEDULE_COMPUTE] == 1;
}

char level3_triangle(const struct executor *e)
{
    return e->scheduled.call.kind != SCHEDULE_RANK_K ? 0
           : e->scheduled.operand[C].across          ? 'U'
                                                     : 'L';
}

/* Returns whether finished blocks must be in the recovery buffer while the original computes the
 * others. */
static bool needs_recovery_buffer(const struct executor *e)
{
    const struct schedule_call *call = &e->scheduled.call;
    return call->kind != SCHEDULE_PRODUCT && !schedule_in_panels(call) && !call->in_place[C];
}

/* Of a triangle's tile on the diagonal, its triangle alone is copied, as far as that pays
 * (chunks.h): what is beside it on the device is of no use to any kernel. */
static struct host_rectangle rectangle_of_tile(const struct executor *e,
                                               const struct schedule_step *step)
{
    const struct accel_span *x = e->scheduled.operand[step->operand].x;
    const struct schedule_tile tile = stored(e, step->operand, step->i, step->j);
    struct host_rectangle r =
        host_whole(gpu_element(x, tile.row, tile.col), tile.rows, tile.cols, x->ld, gpu_size_of(x));
    r.name = x->name;
    if (tile.row == tile.col && tile.rows == tile.cols)
        r.uplo = triangle_of(e, step->operand);
    r.trimmed = r.uplo && chunks_trim(r.rows, r.cols, r.size);
    return r;
}

/* Notes a copy in the call's record. From another device a tile comes as a whole. */
static void note_copy(const struct executor *e, const struct schedule_step *step,
                      enum gpu_event_kind kind)
{
    const struct accel_span *x = e->scheduled.operand[step->operand].x;
    const struct host_rectangle r = rectangle_of_tile(e, step);
    const int64_t ld = gpu_device_ld(r.rows, x->dtype);
    const int64_t bytes = kind == GPU_EVENT_PEER ? r.rows * r.cols * r.size
                          : is_in_one(e)         ? chunks_matrix_sent(&r, ld)
                                                 : chunks_tile_sent(&r, ld);
    gpu_work_event(e->work, kind, x, r.rows, r.cols, bytes);
}

static void note_down(void *executor, const struct schedule_step *step)
{
    note_copy(executor, step, GPU_EVENT_D2H);
}

/* Describes the copy of a tile, and notes one up in the call's record. */
static void copy_of_tile(void *level3, const struct schedule_step *step, struct tile_copy *copy)
{
    struct level3 *b = level3;
    const struct executor *e = &b->executor;
    const struct host_rectangle host = rectangle_of_tile(e, step);
    *copy = (struct tile_copy){
        .host = host,
        .device = {executor_slot(e, step),
                   gpu_device_ld(host.rows, e->scheduled.operand[step->operand].x->dtype)}};
    if (step->engine == SCHEDULE_DOWN) {
        const struct schedule_tile tile = stored(e, C, step->i, step->j);
        copy->host.digest = result_capture_digest(&b->result, tile.row, tile.col);
        return;
    }
    if (!host.trimmed)
        copy->host.uplo = 0; /* a square is packed faster as such */
    copy->lent = level3_peer_tile(b, step);
    note_slot(e, step, step->operand);
    note_copy(e, step, copy->lent ? GPU_EVENT_PEER : GPU_EVENT_H2D);
}

/* ---- Steps ---- */

/* Returns the blocks of C, one after the other, that make a unit: the original can compute it
 * without the others. Those of a symmetric product, and those that are overwritten in place, are
 * panels; a triangle is one block where it is in place. */
static int unit_of(const struct executor *e)
{
    const struct schedule_call *call = &e->scheduled.call;
    const bool panels = call->kind == SCHEDULE_SYMMETRIC ||
                        (schedule_in_panels(call) && call->in_place[C] && call->k > 0);
    return panels ? e->schedule.tiles[C].rows : 1;
}

/* A finished tile stays on the device, if C is to be cached. */
static enum gpu_status compute_step(void *level3, const struct schedule_step *step)
{
    struct level3 *b = level3;
    struct executor *e = &b->executor;
    if (step->first)
        note_slot(e, step, C);
    GPU_TRY(b->compute(e, step));
    if (!step->last)
        return GPU_OK;
    const struct schedule_tile tile = stored(e, C, step->i, step->j);
    GPU_TRY(result_capture_add(&b->result, e->work, tile.row, tile.col,
                               level3_tile(e, C, step->i, step->j)));
    return e->schedule.call.in_place[C] && ++b->finished % unit_of(e) == 0
               ? executor_settle(e, unit_of(e))
               : GPU_OK;
}

/* A cached input may be used before validation, if that comes before anything leaves the device. */
static bool may_speculate(const struct level3 *b)
{
    const struct schedule_call *call = &b->executor.scheduled.call;
    return call->kind == SCHEDULE_PRODUCT && !call->in_place[C] && !b->peer_tiles;
}

static enum gpu_status may_leave(void *executor)
{
    const struct executor *e = executor;
    return device_cache_speculation_holds(e->work) ? GPU_OK : GPU_CHANGED;
}

/* ---- After a failure ---- */

static bool rest_of_units(const struct executor *e)
{
    const struct schedule *s = &e->schedule;
    const struct accel_span *c = e->scheduled.operand[C].x;
    const int unit = unit_of(e);
    int64_t done_cols = e->pipeline.done_cols, done_rows = e->pipeline.done_rows;
    for (int n = 0, number = 0; n < s->count; n++) {
        const struct schedule_step *step = &s->step[n];
        if (step->engine != SCHEDULE_COMPUTE || !step->last || number++ < e->pipeline.written ||
            number % unit != 0)
            continue;
        struct schedule_tile tile = stored(e, C, step->i, step->j);
        if (unit > 1 && e->scheduled.operand[C].across)
            tile.col = 0, tile.cols = c->cols;
        else if (unit > 1)
            tile.row = 0, tile.rows = c->rows;
        if (!executor_rest_of_part(e->work, e->work->call, tile, done_cols, done_rows))
            return false;
        done_cols = done_rows = 0;
    }
    return true;
}

/* Copies what has been written of a tile to the recovery buffer, or back. Returns the end of its
 * copy. */
static char *move_tile(const struct host_rectangle *r, int64_t cols, int64_t rows, char *recovery,
                       bool back)
{
    const struct pack_chunk whole = {0, cols, 0, r->rows}, part = {cols, 1, 0, rows};
    const struct pack_chunk *chunks[] = {&whole, &part};
    for (int i = 0; i < 2; i++) {
        if (chunks[i]->cols == 0 || chunks[i]->rows == 0)
            continue;
        if (back)
            pack_to_host(r, chunks[i], recovery, r->rows);
        else
            pack_from_host(recovery, r, chunks[i], r->rows);
        recovery += r->rows * chunks[i]->cols * r->size;
    }
    return recovery;
}

/* Moves all tiles that have been written, and what has been of one. */
static void move_written(const struct level3 *b, bool back)
{
    const struct executor *e = &b->executor;
    const struct pipeline_job *pipeline = &e->pipeline;
    char *recovery = b->recovery;
    for (int n = 0, number = 0; n < e->schedule.count && number <= pipeline->written; n++) {
        const struct schedule_step *step = &e->schedule.step[n];
        if (step->engine != SCHEDULE_DOWN)
            continue;
        const struct host_rectangle r = rectangle_of_tile(e, step);
        recovery = number++ < pipeline->written
                       ? move_tile(&r, r.cols, 0, recovery, back)
                       : move_tile(&r, pipeline->done_cols, pipeline->done_rows, recovery, back);
    }
}

/* Puts the old values back of a tile that was overwritten in part. */
static void undo_tile(struct executor *e)
{
    struct pipeline_job *pipeline = &e->pipeline;
    for (int n = 0, number = 0; n < e->schedule.count && number <= pipeline->written; n++) {
        const struct schedule_step *step = &e->schedule.step[n];
        if (step->engine != SCHEDULE_DOWN || number++ < pipeline->written)
            continue;
        const struct host_rectangle r = rectangle_of_tile(e, step);
        move_tile(&r, pipeline->done_cols, pipeline->done_rows,
                  pipeline->old[pipeline->written % 2], true);
    }
    pipeline->done_cols = pipeline->done_rows = 0;
}

/* The original cannot compute one block of a triangle or of a symmetric product: it computes the
 * whole result. Blocks that are not finished have their old values still; finished blocks are
 * in the recovery buffer meanwhile, and put back over what it computes. */
static bool all_by_original(const struct level3 *b)
{
    move_written(b, false);
    const bool done = gpu_work_by_original(b->executor.work, b->executor.work->call);
    move_written(b, true);
    return done;
}

static bool rest_by_original(const void *level3)
{
    const struct level3 *b = level3;
    const struct schedule_call *call = &b->executor.schedule.call;
    return schedule_in_panels(call) && call->k > 0 ? level3_recover_panels(b)
           : needs_recovery_buffer(&b->executor)   ? all_by_original(b)
                                                   : rest_of_units(&b->executor);
}

/* ---- Memory ---- */

static bool make_schedule(struct executor *e, int64_t bytes)
{
    const struct schedule_rates *rates = executor_rates(e->work);
    const int64_t memory_bytes = scheduled_memory(&e->scheduled, bytes);
    return level3_peer_tiles_schedule((struct level3 *)e, rates, memory_bytes) ||
           plan_cache_make(&e->schedule, &e->scheduled.call, rates, memory_bytes);
}

/* Takes host memory for the tiles' slots, and for what the original needs after a failure. */
static bool take_host_memory(struct level3 *b)
{
    const struct executor *e = &b->executor;
    const struct accel_span *c = e->scheduled.operand[C].x;
    const struct schedule_tile block = schedule_tile_of(&e->schedule, C, 0, 0);
    const bool recovers = e->work->host->original;
    const int64_t recovery = !recovers                  ? 0
                             : needs_recovery_buffer(e) ? accel_bytes(c)
                                                        : level3_recovery_bytes(e);
    const bool keeps_old = recovers && e->scheduled.keeps_old && !is_in_one(e);
    const int64_t old = keeps_old ? block.rows * block.cols * gpu_size_of(c) : 0;
    int64_t tiles[OPERANDS + 1] = {0};
    for (int x = A; x < OPERANDS; x++)
        tiles[x + 1] = tiles[x] + e->schedule.tiles[x].rows * (int64_t)e->schedule.tiles[x].cols;
    int32_t *slots = malloc((size_t)tiles[OPERANDS] * sizeof *slots);
    for (int x = A; slots && x < OPERANDS; x++)
        b->slot[x] = slots + tiles[x];
    bool taken = slots != NULL;
    char **const memory[] = {&b->recovery, &b->old[0], &b->old[1]};
    const int64_t bytes[] = {recovery, old, old};
    for (int i = 0; i < 3; i++) {
        if (bytes[i] > 0)
            *memory[i] = malloc((size_t)bytes[i]);
        host_memory_prefer_huge(*memory[i], bytes[i]);
        taken = taken && (*memory[i] || bytes[i] == 0);
    }
    return taken;
}

/* ---- The whole ---- */

/* The workspace of another precision may be enough for smaller blocks only. */
static bool describe_operands(struct level3 *b)
{
    struct executor *e = &b->executor;
    if (!executor_describe(e))
        return false;
    if (e->work->largest < INT64_MAX) {
        e->scheduled.call.most = e->work->largest;
        level3_peer_tiles_leave(b, true); /* its tiles are others than those of the plan */
    }
    for (int x = A; x < OPERANDS; x++) {
        const struct accel_span *operand = e->scheduled.operand[x].x;
        if (e->scheduled.call.in_place[x])
            gpu_work_event(e->work, GPU_EVENT_IN_PLACE, operand, operand->rows, operand->cols,
                           accel_bytes(operand));
    }
    return true;
}

static enum gpu_status begin_level3(struct level3 *b)
{
    struct executor *e = &b->executor;
    const struct schedule_tile block = schedule_tile_of(&e->schedule, C, 0, 0);
    if (!take_host_memory(b))
        return GPU_NO_MEMORY;
    if (e->scheduled.call.k == 0)
        GPU_TRY(kernels_zeros(e->work, accel_max(block.rows, block.cols), &e->zeros));
    GPU_TRY(level3_cache_begin(b));
    GPU_TRY(cached_inputs_send(&e->cached));
    e->pipeline.result_bytes = accel_bytes(e->scheduled.operand[C].x);
    e->pipeline.has_sides =
        schedule_has_sides(&e->schedule) && e->work->host->precision != GPU_EMULATED;
    e->pipeline.all_or_nothing = e->scheduled.keeps_old;
    memcpy(e->pipeline.old, b->old, sizeof b->old);
    level3_peer_tiles_begin(b);
    return GPU_OK;
}

static enum gpu_status run_prepared(struct level3 *b)
{
    struct executor *e = &b->executor;
    enum gpu_status status = begin_level3(b);
    if (status == GPU_OK)
        status = executor_run(e, is_in_one(e));
    level3_peer_tiles_leave(b,
                            status == GPU_OK); /* nobody waits for what others do after a failure */
    if (status != GPU_OK) {
        if (status != GPU_LOST && e->pipeline.old[0])
            undo_tile(e);
        return executor_end_failed(e, status);
    }
    cached_inputs_insert(&e->cached);
    result_capture_insert(&b->result, e->work);
    return status;
}

enum gpu_status level3_run(struct level3 *b)
{
    static const struct executor_kind kind = {make_schedule, level3_peer_tiles_take,
                                              rest_by_original};
    struct executor *e = &b->executor;
    e->kind = &kind;
    e->pipeline = (struct pipeline_job){.copy_of = copy_of_tile,
                                        .arrived = note_down,
                                        .may_leave = may_leave,
                                        .compute = compute_step};
    b->peer_tiles = e->work->host->peer_tiles;
    if (!describe_operands(b))
        return GPU_UNSUPPORTED;
    e->work->speculation.may = may_speculate(b);
    struct accel_span written = *e->scheduled.operand[C].x;
    written.triangle = level3_triangle(e);
    device_cache_invalidate(e->work, &written);
    enum gpu_status status = executor_take(e);
    if (status == GPU_OK)
        status = run_prepared(b);
    arrivals_end(e->work);
    result_capture_end(&b->result);
    free(b->old[0]);
    free(b->old[1]);
    free(b->recovery);
    free(b->slot[A]);
    schedule_free(&e->schedule);
    return status;
}
