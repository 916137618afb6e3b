#include "executor.h"

#include "call/shape.h"

enum { A = SCHEDULE_A, C = SCHEDULE_C, OPERANDS = SCHEDULE_OPERANDS };

/* ---- Device memory ---- */

enum { ATTEMPTS = 12 };

/* Returns how many bytes a call should try to take: at its first attempt all that the device has,
 * without asking the driver how much is free; then what is available, less a ninth: the pool may
 * round a block up by an eighth. That may fail because an idle block is larger than needed, so the
 * third attempt is the same without idle blocks. Other threads and programs take memory meanwhile,
 * and of small blocks the pool rounds up more: then three quarters of the attempt before. */
static int64_t room(const struct gpu_work *work, int attempt, int64_t before)
{
    if (attempt == 2)
        gpu_memory(work)->trim(work);
    return attempt == 0  ? gpu_info(work->device)->memory_bytes
           : attempt < 3 ? gpu_memory(work)->available(work) / 9 * 8
                         : before / 4 * 3;
}

/* Gives back what an attempt has taken. Waits: a part of it may be on its way to its own place. */
static enum gpu_status leave_attempt(struct gpu_work *work, const struct executor_memory *memory,
                                     void *context)
{
    if (memory->leave)
        memory->leave(context);
    GPU_TRY(gpu_work_give_back(work));
    return GPU_NO_MEMORY;
}

enum gpu_status executor_prepare(struct gpu_work *work, const struct executor_memory *memory,
                                 void *context)
{
    enum gpu_status status = GPU_NO_MEMORY;
    bool planned = true;
    int64_t bytes = 0;
    for (int n = 0; status == GPU_NO_MEMORY && planned && n < ATTEMPTS; n++) {
        bytes = room(work, n, bytes);
        planned = memory->plan(context, bytes);
        if (planned)
            status = memory->take(context, n == 0);
        if (status == GPU_NO_MEMORY)
            status = leave_attempt(work, memory, context);
    }
    return status;
}

const struct schedule_rates *executor_rates(const struct gpu_work *work)
{
    return work->host->rates.up > 0 ? &work->host->rates : &schedule_nominal;
}

/* ---- After a failure ---- */

enum gpu_status executor_recover(struct gpu_work *work, enum gpu_status failure,
                                 const struct executor_rest *rest, const void *context)
{
    const bool damaged = rest->in_place && work->launched;
    if (failure == GPU_LOST || (!damaged && !rest->written) || !work->host->original)
        return failure;
    if (damaged && (rest->reads || gpu_copies(work)->wait(work->ctx) != GPU_OK))
        return GPU_LOST;
    if (!rest->by_original(context))
        return GPU_LOST;
    return failure == GPU_ERROR ? GPU_FINISHED_ELSE : GPU_SHORT_ELSE;
}

bool executor_part_by_original(const struct gpu_work *work, const struct accel_call *call,
                               struct schedule_tile tile)
{
    if (tile.rows <= 0 || tile.cols <= 0)
        return true;
    const struct accel_call part = shape_part(call, tile.row, tile.col, tile.rows, tile.cols);
    return gpu_work_by_original(work, &part);
}

bool executor_rest_of_part(const struct gpu_work *work, const struct accel_call *call,
                           struct schedule_tile c, int64_t done_cols, int64_t done_rows)
{
    const int64_t begun = done_rows > 0, col = c.col + done_cols;
    const struct schedule_tile column = {c.row + done_rows, col, c.rows - done_rows, begun};
    const struct schedule_tile others = {c.row, col + begun, c.rows, c.cols - done_cols - begun};
    return executor_part_by_original(work, call, column) &&
           executor_part_by_original(work, call, others);
}

/* ---- Calls that run by a schedule ---- */

bool executor_describe(struct executor *e)
{
    e->cached = (struct cached_inputs){.work = e->work, .scheduled = &e->scheduled};
    e->pipeline.schedule = &e->schedule;
    e->pipeline.context = e;
    return gpu_work_describe(e->work, &e->scheduled);
}

static bool plan(void *executor, int64_t bytes)
{
    struct executor *e = executor;
    schedule_free(&e->schedule);
    return e->kind->make(e, bytes);
}

static enum gpu_status alloc_operands(void *executor, bool first)
{
    struct executor *e = executor;
    const struct schedule *s = &e->schedule;
    if (first)
        GPU_TRY(cached_inputs_bring(&e->cached, executor_rates(e->work)));
    if (!cached_inputs_leave_out(&e->cached, &e->schedule))
        return GPU_NO_MEMORY;
    for (int x = A; x < OPERANDS; x++) {
        const int64_t bytes = s->slots[x] * s->slot_bytes[x];
        if (bytes > 0)
            GPU_TRY(e->kind->take ? e->kind->take(e, x, bytes, &e->memory[x])
                                  : gpu_memory(e->work)->take(e->work, bytes, &e->memory[x]));
    }
    for (int i = 0; i < SCHEDULED_OWN; i++)
        if (e->scheduled.own_bytes[i] > 0)
            GPU_TRY(gpu_memory(e->work)->take(e->work, e->scheduled.own_bytes[i], &e->own[i]));
    return GPU_OK;
}

static void leave_cached_inputs(void *executor)
{
    struct executor *e = executor;
    cached_inputs_leave(&e->cached);
}

enum gpu_status executor_take(struct executor *e)
{
    static const struct executor_memory memory = {plan, alloc_operands, leave_cached_inputs};
    return executor_prepare(e->work, &memory, e);
}

enum gpu_status executor_run(struct executor *e, bool in_order)
{
    struct stream_ctx *ctx = e->work->ctx;
    const struct gpu_copies *copies = gpu_copies(e->work);
    const enum gpu_status status = in_order ? pipeline_in_order(copies, ctx, &e->pipeline)
                                            : copies->pipeline(ctx, &e->pipeline);
    e->pipeline.written += e->settled;
    return status;
}

enum gpu_status executor_settle(struct executor *e, int units)
{
    GPU_TRY(gpu_work_settle(e->work));
    e->settled += units;
    return GPU_OK;
}

enum gpu_status executor_end_failed(struct executor *e, enum gpu_status failure)
{
    const struct pipeline_job *pipeline = &e->pipeline;
    const struct executor_rest rest = {
        .in_place = e->schedule.call.in_place[C],
        .reads = e->scheduled.call.reads,
        .written = pipeline->written > 0 || pipeline->done_cols > 0 || pipeline->done_rows > 0,
        .by_original = e->kind->rest_by_original};
    return executor_recover(e->work, failure, &rest, e);
}

bool executor_is_cached(const struct executor *e, int operand)
{
    return operand < C && e->cached.input[operand].is_cached;
}

struct dmat executor_whole(const struct executor *e, int operand)
{
    const struct accel_span *x = e->scheduled.operand[operand].x;
    return executor_is_cached(e, operand) ? e->cached.input[operand].at : dmat_in_place(x);
}
