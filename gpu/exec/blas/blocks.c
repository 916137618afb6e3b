#include "blocks.h"

#include <stdlib.h>

#include "base/memory/host_memory.h"
#include "blocks_lent.h"
#include "blocks_rest.h"
#include "blocks_stay.h"
#include "gpu/plan/choices.h"
#include "gpu/device/flow.h"
#include "call/shape.h"
#include "gpu/pack/pieces.h"

enum { A = SCHEDULE_A, C = SCHEDULE_C, OPERANDS = SCHEDULE_OPERANDS };

/* ---- Cells ---- */

static struct schedule_cell stored(const struct blocks *b, int operand, int i, int j)
{
    return scheduled_stored(&b->scheduled, &b->schedule, operand, i, j);
}

struct gpu_tile blocks_tile(const struct blocks *b, int operand, int i, int j)
{
    const struct schedule *s = &b->schedule;
    const struct accel_span *x = b->scheduled.operand[operand].x;
    const struct schedule_cell cell = stored(b, operand, i, j);
    const struct gpu_tile whole = b->whole[operand];
    if (s->call.in_place[operand])
        return (struct gpu_tile){
            whole.ptr + (gpu_address)((cell.row + cell.col * whole.ld) * gpu_size_of(x)), whole.ld};
    const int32_t place = b->place[operand][i + j * s->cells[operand].rows];
    return (struct gpu_tile){b->memory[operand] + (gpu_address)(place * s->place_bytes[operand]),
                             gpu_device_ld(cell.rows, x->dtype)};
}

static void note_place(struct blocks *b, int operand, int i, int j, int32_t place)
{
    if (!b->schedule.call.in_place[operand])
        b->place[operand][i + j * b->schedule.cells[operand].rows] = place;
}

static bool is_triangle(const struct blocks *b)
{
    return b->scheduled.call.kind == SCHEDULE_RANK_K;
}

/* Returns the triangle of an operand that the kernels read or write alone; 0: all of it. */
static char triangle_of(const struct blocks *b, int operand)
{
    const struct schedule_call *call = &b->scheduled.call;
    if (operand == C)
        return blocks_triangle(b);
    return operand == A && (call->kind == SCHEDULE_SYMMETRIC || schedule_in_panels(call))
               ? b->work->call->blas.flag[ACCEL_uplo]
               : 0;
}

static bool is_in_one(const struct blocks *b)
{
    return b->schedule.steps[SCHEDULE_COMPUTE] == 1;
}

char blocks_triangle(const struct blocks *b)
{
    return !is_triangle(b) ? 0 : b->scheduled.operand[C].across ? 'U' : 'L';
}

/* Returns whether finished blocks must be kept aside while the original computes the others. */
static bool needs_aside(const struct blocks *b)
{
    return b->scheduled.call.kind != SCHEDULE_PRODUCT && !schedule_in_panels(&b->scheduled.call) &&
           !b->scheduled.call.in_place[C];
}

/* The host memory for what the original needs after a failure. */
static int64_t aside_bytes(const struct blocks *b)
{
    return needs_aside(b) ? accel_bytes(b->scheduled.operand[C].x) : rest_bytes(b);
}

/* Of a triangle's cell on the diagonal, its triangle alone is copied, as far as that pays
 * (pieces.h): what is beside it on the device is of no use to any kernel. */
static struct lane_rectangle rectangle_of(const struct blocks *b, int operand,
                                          const struct schedule_cell *cell)
{
    const struct accel_span *x = b->scheduled.operand[operand].x;
    struct lane_rectangle r = lane_whole(gpu_element(x, cell->row, cell->col), cell->rows,
                                         cell->cols, x->ld, gpu_size_of(x));
    r.name = x->name;
    if (cell->row == cell->col && cell->rows == cell->cols)
        r.uplo = triangle_of(b, operand);
    r.trimmed = r.uplo && pieces_trim(r.rows, r.cols, r.size);
    return r;
}

/* Notes a copy in the call's record. From another device a cell comes as a whole. */
static void note_event(const struct blocks *b, const struct schedule_step *step,
                       enum gpu_event_kind kind, int64_t *all_bytes)
{
    const struct accel_span *x = b->scheduled.operand[step->operand].x;
    const struct schedule_cell cell = stored(b, step->operand, step->i, step->j);
    const struct lane_rectangle r = rectangle_of(b, step->operand, &cell);
    const int64_t ld = gpu_device_ld(cell.rows, x->dtype);
    const int64_t bytes = kind == GPU_EVENT_PEER ? cell.rows * cell.cols * r.size
                          : is_in_one(b)         ? pieces_matrix_sent(&r, ld)
                                                 : pieces_cell_sent(&r, ld);
    *all_bytes += bytes;
    gpu_work_event(b->work, kind, x, cell.rows, cell.cols, bytes);
}

static void note_down(void *blocks, const struct schedule_step *step)
{
    const struct blocks *b = blocks;
    note_event(b, step, GPU_EVENT_D2H, &b->work->host->down_bytes);
}

/* Describes the copy of a cell, and notes one up in the call's record. */
static void copy_of(void *blocks, const struct schedule_step *step, struct flow_copy *copy)
{
    struct blocks *b = blocks;
    const struct schedule_cell cell = stored(b, step->operand, step->i, step->j);
    *copy = (struct flow_copy){
        .host = rectangle_of(b, step->operand, &cell),
        .device = b->memory[step->operand] +
                  (gpu_address)(step->place * b->schedule.place_bytes[step->operand]),
        .device_ld = gpu_device_ld(cell.rows, b->scheduled.operand[step->operand].x->dtype)};
    if (step->engine == SCHEDULE_DOWN)
        copy->host.digest = staying_digest(&b->result, cell.row, cell.col);
    if (step->engine != SCHEDULE_UP)
        return;
    if (!copy->host.trimmed)
        copy->host.uplo = 0; /* a square is packed faster as such */
    copy->lent = lent_cell(b, step);
    note_place(b, step->operand, step->i, step->j, step->place);
    if (copy->lent)
        note_event(b, step, GPU_EVENT_PEER, &b->work->host->peer_bytes);
    else
        note_event(b, step, GPU_EVENT_H2D, &b->work->host->up_bytes);
}

/* ---- Steps ---- */

/* Returns the blocks of C, one after the other, that make a unit: the original can compute it
 * without the others. Those of a symmetric product, and those that are overwritten in place, are
 * panels; a triangle is one block where it is in place. */
static int unit_of(const struct blocks *b)
{
    const struct schedule_call *call = &b->scheduled.call;
    const bool panels = call->kind == SCHEDULE_SYMMETRIC ||
                        (schedule_in_panels(call) && call->in_place[C] && call->k > 0);
    return panels ? b->schedule.cells[C].rows : 1;
}

/* Has a finished cell of C stay on the device, if C is to stay there. */
static enum gpu_status stay(struct blocks *b, int i, int j)
{
    const struct schedule_cell cell = stored(b, C, i, j);
    return staying_add(&b->result, b->work, cell.row, cell.col, blocks_tile(b, C, i, j));
}

/* The caller may read a result in place as soon as we return: waits when a unit is finished. */
static enum gpu_status compute_step(void *blocks, const struct schedule_step *step)
{
    struct blocks *b = blocks;
    if (step->first)
        note_place(b, C, step->i, step->j, step->place);
    enum gpu_status status = b->compute(b, step);
    if (status == GPU_OK && step->last)
        status = stay(b, step->i, step->j);
    if (status != GPU_OK || !step->last || !b->schedule.call.in_place[C] ||
        ++b->finished % unit_of(b) != 0)
        return status;
    status = gpu_work_settle(b->work);
    b->settled += status == GPU_OK ? unit_of(b) : 0;
    return status;
}

/* A factor may be used before it is proved that the program has not changed it, if that is asked
 * before anything leaves the device. */
static bool may_trust(const struct blocks *b)
{
    const struct schedule_call *call = &b->scheduled.call;
    return call->kind == SCHEDULE_PRODUCT && !call->in_place[C] && !b->peers;
}

static enum gpu_status may_leave(void *blocks)
{
    const struct blocks *b = blocks;
    return resident_keeps_trust(b->work) ? GPU_OK : GPU_CHANGED;
}

/* ---- After a failure ---- */

static bool by_original(const struct blocks *b, int64_t row, int64_t col, int64_t rows,
                        int64_t cols)
{
    if (rows <= 0 || cols <= 0)
        return true;
    const struct accel_call part = shape_part(b->work->call, row, col, rows, cols);
    return gpu_work_by_original(b->work, &part);
}

/* Has the original compute what is missing of a block. */
static bool rest_of_block(const struct blocks *b, const struct schedule_cell *c, int64_t done_cols,
                          int64_t done_rows)
{
    const int64_t begun = done_rows > 0;
    return by_original(b, c->row + done_rows, c->col + done_cols, c->rows - done_rows, begun) &&
           by_original(b, c->row, c->col + done_cols + begun, c->rows, c->cols - done_cols - begun);
}

static bool rest_by_original(const struct blocks *b, const struct flow *flow)
{
    const struct schedule *s = &b->schedule;
    int64_t done_cols = flow->done_cols, done_rows = flow->done_rows;
    for (int n = 0, number = 0; n < s->count; n++) {
        const struct schedule_step *step = &s->step[n];
        if (step->engine != SCHEDULE_COMPUTE || !step->last || number++ < flow->written ||
            number % unit_of(b) != 0)
            continue;
        struct schedule_cell cell = stored(b, C, step->i, step->j);
        if (unit_of(b) > 1 && b->scheduled.operand[C].across)
            cell.col = 0, cell.cols = b->scheduled.operand[C].x->cols;
        else if (unit_of(b) > 1)
            cell.row = 0, cell.rows = b->scheduled.operand[C].x->rows;
        if (!rest_of_block(b, &cell, done_cols, done_rows))
            return false;
        done_cols = done_rows = 0;
    }
    return true;
}

/* Copies what has been written of a cell to memory at `aside`, or back. Returns the end of that
 * memory. */
static char *move_cell(const struct lane_rectangle *r, int64_t cols, int64_t rows, char *aside,
                       bool back)
{
    const struct pack_piece whole = {0, cols, 0, r->rows}, part = {cols, 1, 0, rows};
    const struct pack_piece *pieces[] = {&whole, &part};
    for (int i = 0; i < 2; i++) {
        if (pieces[i]->cols == 0 || pieces[i]->rows == 0)
            continue;
        if (back)
            pack_to_host(r, pieces[i], aside, r->rows);
        else
            pack_from_host(aside, r, pieces[i], r->rows);
        aside += r->rows * pieces[i]->cols * r->size;
    }
    return aside;
}

static void move_written(const struct blocks *b, const struct flow *flow, bool back)
{
    const struct schedule *s = &b->schedule;
    char *aside = b->aside;
    for (int n = 0, number = 0; n < s->count && number <= flow->written; n++) {
        const struct schedule_step *step = &s->step[n];
        if (step->engine != SCHEDULE_DOWN)
            continue;
        const struct schedule_cell cell = stored(b, C, step->i, step->j);
        const struct lane_rectangle r = rectangle_of(b, C, &cell);
        aside = number++ < flow->written
                    ? move_cell(&r, r.cols, 0, aside, back)
                    : move_cell(&r, flow->done_cols, flow->done_rows, aside, back);
    }
}

/* Puts the old values back of a cell that was overwritten in part. */
static void undo_cell(const struct blocks *b, struct flow *flow)
{
    const struct schedule *s = &b->schedule;
    for (int n = 0, number = 0; n < s->count; n++) {
        const struct schedule_step *step = &s->step[n];
        if (step->engine != SCHEDULE_DOWN || number++ < flow->written)
            continue;
        const struct schedule_cell cell = stored(b, C, step->i, step->j);
        const struct lane_rectangle r = rectangle_of(b, C, &cell);
        move_cell(&r, flow->done_cols, flow->done_rows, flow->old[flow->written % 2], true);
        break;
    }
    flow->done_cols = flow->done_rows = 0;
}

/* The original cannot compute one block of a triangle or of a symmetric product: it computes the
 * whole result. Blocks that are not finished have their old values still; finished blocks are kept
 * aside meanwhile, and put back over what it computes. */
static bool all_by_original(const struct blocks *b, const struct flow *flow)
{
    move_written(b, flow, false);
    const bool done = gpu_work_by_original(b->work, b->work->call);
    move_written(b, flow, true);
    return done;
}

static bool finish_by_original(const struct blocks *b, const struct flow *flow)
{
    return schedule_in_panels(&b->schedule.call) && b->schedule.call.k > 0 ? rest_of_panels(b, flow)
           : needs_aside(b) ? all_by_original(b, flow)
                            : rest_by_original(b, flow);
}

/* Returns the status for gpu_run() after a failure: nothing was written, or the original has done
 * the rest, or neither, because a kernel may have changed a result that is in place. A result that
 * does not depend on its old values can be computed anew, once no kernel writes to it. Has a stack
 * frame of its own: the parts of calls in it are large, and a call that succeeds needs none. */
__attribute__((noinline)) static enum gpu_status
after_failure(const struct blocks *b, struct flow *flow, enum gpu_status status)
{
    const bool damaged = b->schedule.call.in_place[C] && b->work->launched;
    if (status == GPU_LOST)
        return status;
    if (flow->old[0])
        undo_cell(b, flow);
    if (!damaged && flow->written == 0 && flow->done_cols == 0 && flow->done_rows == 0)
        return status;
    if (damaged && (b->scheduled.call.reads || gpu_copies(b->work)->wait(b->work->lane) != GPU_OK))
        return GPU_LOST;
    if (!finish_by_original(b, flow))
        return GPU_LOST;
    return status == GPU_ERROR ? GPU_FINISHED_ELSE : GPU_SHORT_ELSE;
}

/* ---- Memory ---- */

/* Makes the schedule as if all operands came from the host, so that the result does not depend on
 * what is on the device. */
static bool make_schedule(struct blocks *b, const struct schedule_rates *rates, int64_t available)
{
    const int64_t memory_bytes = scheduled_memory(&b->scheduled, available);
    bool made = lent_schedule(b, rates, memory_bytes) ||
                choices_make(&b->schedule, &b->scheduled.call, rates, memory_bytes);
    for (int i = A; i < C; i++)
        if (b->factors.factor[i].stays)
            b->whole[i] = b->factors.factor[i].at;
    return made && factors_leave_out(&b->factors, &b->schedule);
}

/* Takes memory for all operands, or for none. */
static enum gpu_status take_memory(struct blocks *b, enum gpu_status status)
{
    for (int x = A; status == GPU_OK && x < OPERANDS; x++) {
        const int64_t bytes = b->schedule.places[x] * b->schedule.place_bytes[x];
        if (bytes > 0)
            status = lent_take(b, x, bytes, &b->memory[x]);
    }
    for (int i = 0; status == GPU_OK && i < SCHEDULED_OWN; i++)
        if (b->scheduled.own_bytes[i] > 0)
            status = gpu_memory(b->work)->take(b->work, b->scheduled.own_bytes[i], &b->own[i]);
    return status == GPU_NO_MEMORY ? factors_leave(&b->factors) : status;
}

/* Makes a schedule for the device's memory; then for what can be had of it. */
static enum gpu_status prepare(struct blocks *b)
{
    const struct schedule_rates *rates =
        b->work->host->rates.up > 0 ? &b->work->host->rates : &schedule_nominal;
    enum gpu_status status = GPU_NO_MEMORY;
    int64_t available = gpu_info(b->work->device)->memory_bytes;
    for (int attempt = 0; attempt < WORK_ATTEMPTS && status == GPU_NO_MEMORY; attempt++) {
        available = gpu_work_room(b->work, attempt, available);
        status = attempt == 0 ? factors_bring(&b->factors, rates) : GPU_OK;
        schedule_free(&b->schedule);
        if (status == GPU_OK && !make_schedule(b, rates, available))
            return GPU_NO_MEMORY;
        status = take_memory(b, status);
    }
    return status;
}

/* ---- The whole ---- */

/* The workspace of another precision may be enough for smaller blocks only. */
static bool describe_operands(struct blocks *b)
{
    if (!gpu_work_describe(b->work, &b->scheduled))
        return false;
    if (b->work->largest < INT64_MAX) {
        b->scheduled.call.most = b->work->largest;
        lent_leave(b, true); /* its cells are others than those of the plan */
    }
    for (int x = A; x < OPERANDS; x++) {
        const struct accel_span *operand = b->scheduled.operand[x].x;
        if (!b->scheduled.call.in_place[x])
            continue;
        b->whole[x] = (struct gpu_tile){(gpu_address)(uintptr_t)operand->ptr, operand->ld};
        gpu_work_event(b->work, GPU_EVENT_IN_PLACE, operand, operand->rows, operand->cols,
                       accel_bytes(operand));
    }
    return true;
}

static enum gpu_status run_prepared(struct blocks *b)
{
    const struct schedule *s = &b->schedule;
    const struct schedule_cell block = schedule_cell_of(s, C, 0, 0);
    struct flow flow = {.schedule = s,
                        .result_bytes = accel_bytes(b->scheduled.operand[C].x),
                        .has_sides =
                            schedule_has_sides(s) && b->work->host->precision != GPU_EMULATED,
                        .context = b,
                        .old = {b->old[0], b->old[1]},
                        .copy_of = copy_of,
                        .arrived = note_down,
                        .may_leave = may_leave,
                        .compute = compute_step,
                        .all_or_nothing = b->scheduled.keeps_old};
    enum gpu_status status = GPU_OK;
    if (b->scheduled.call.k == 0)
        status = kernels_zeros(b->work, accel_max(block.rows, block.cols), &b->zeros);
    if (status == GPU_OK)
        status = stay_begin_result(b);
    if (status == GPU_OK)
        status = factors_send(&b->factors);
    if (status == GPU_OK)
        lent_begin(b, &flow);
    if (status == GPU_OK)
        status = is_in_one(b) ? flow_in_order(gpu_copies(b->work), b->work->lane, &flow)
                              : gpu_copies(b->work)->flow(b->work->lane, &flow);
    lent_leave(b, status == GPU_OK); /* nobody waits for what others do after a failure */
    flow.written += b->settled;
    if (status != GPU_OK)
        return after_failure(b, &flow, status);
    factors_keep(&b->factors);
    staying_keep(&b->result, b->work);
    return status;
}

/* Takes host memory for what after_failure() needs. */
static bool prepare_for_failure(struct blocks *b)
{
    const struct accel_span *c = b->scheduled.operand[C].x;
    const struct schedule_cell block = schedule_cell_of(&b->schedule, C, 0, 0);
    const size_t bytes = (size_t)(block.rows * block.cols * gpu_size_of(c));
    const int64_t aside = aside_bytes(b);
    const bool keeps_old = b->scheduled.keeps_old && b->schedule.steps[SCHEDULE_COMPUTE] > 1;
    if (aside > 0)
        b->aside = malloc((size_t)aside);
    host_memory_prefer_huge(b->aside, aside);
    for (int i = 0; keeps_old && i < 2; i++) {
        b->old[i] = malloc(bytes);
        host_memory_prefer_huge(b->old[i], (int64_t)bytes);
    }
    return (b->aside || aside == 0) && ((b->old[0] && b->old[1]) || !keeps_old);
}

enum gpu_status blocks_run(struct blocks *b)
{
    int64_t cells = 0;
    b->peers = b->work->host->peers;
    b->factors = (struct factors){.work = b->work, .scheduled = &b->scheduled};
    if (!describe_operands(b))
        return GPU_UNSUPPORTED;
    b->work->trust.may = may_trust(b);
    struct accel_span written = *b->scheduled.operand[C].x;
    written.triangle = blocks_triangle(b);
    resident_forget(b->work, &written);
    enum gpu_status status = prepare(b);
    if (status != GPU_OK) {
        schedule_free(&b->schedule);
        return status;
    }
    for (int x = A; x < OPERANDS; x++)
        cells += b->schedule.cells[x].rows * (int64_t)b->schedule.cells[x].cols;
    int32_t *places = malloc((size_t)cells * sizeof *places);
    for (int x = A; x < OPERANDS; x++) {
        b->place[x] = places;
        places += places ? b->schedule.cells[x].rows * (int64_t)b->schedule.cells[x].cols : 0;
    }
    const bool ready = prepare_for_failure(b) && b->place[A];
    status = ready ? run_prepared(b) : GPU_NO_MEMORY;
    staying_end(&b->result);
    free(b->old[0]);
    free(b->old[1]);
    free(b->aside);
    free(b->place[A]);
    schedule_free(&b->schedule);
    return status;
}
