#include "products.h"

#include <stdlib.h>

#include "gpu/plan/choices.h"
#include "gpu/device/flow.h"
#include "call/shape.h"

enum { A = SCHEDULE_A, B = SCHEDULE_B, C = SCHEDULE_C, OPERANDS = SCHEDULE_OPERANDS };

/* ---- Matrices ---- */

static int64_t products_of(const struct products *p)
{
    return p->work->call->batch;
}

static bool is_in_place(const struct products *p, int operand)
{
    return p->schedule.call.in_place[operand];
}

static bool stays(const struct products *p, int operand)
{
    return operand < C && p->factors.factor[operand].stays;
}

/* Returns where the matrix of a product is, of an operand that stays on the device, or has stayed
 * there. */
static struct gpu_tile kept_matrix_of(const struct products *p, int operand, int64_t product)
{
    const struct schedule_sharing *sharing = &p->scheduled.call.sharing[operand];
    const int64_t number = product / sharing->repeat % sharing->distinct;
    struct gpu_tile at = p->factors.factor[operand].at;
    at.ptr += (gpu_address)(number * schedule_matrix_bytes(&p->scheduled.call, operand));
    return at;
}

/* Returns where the matrix of a product, which is in a group, is on the device. */
static struct gpu_tile matrix_of(const struct products *p, int operand, int group, int64_t product)
{
    const struct accel_span *x = p->scheduled.operand[operand].x;
    if (!x) /* zeros, m x 1 and 1 x n */
        return (struct gpu_tile){p->zeros, operand == A ? p->work->call->blas.size[ACCEL_m] : 1};
    if (stays(p, operand))
        return kept_matrix_of(p, operand, product);
    if (is_in_place(p, operand))
        return (struct gpu_tile){(gpu_address)(uintptr_t)accel_matrix_of(x, product), x->ld};
    return (struct gpu_tile){
        p->memory[operand] + (gpu_address)schedule_matrix_at(&p->schedule, operand, group, product),
        gpu_device_ld(x->rows, x->dtype)};
}

static int64_t stride_of(const struct products *p, int operand)
{
    const struct accel_span *x = p->scheduled.operand[operand].x;
    if (!x)
        return 0;
    if (is_in_place(p, operand) && !stays(p, operand))
        return x->stride;
    return p->scheduled.call.sharing[operand].distinct == 1
               ? 0
               : schedule_matrix_bytes(&p->scheduled.call, operand) / gpu_size_of(x);
}

/* Describes matrices in host memory that go up or come down together: as one where no gap is
 * between them. */
static struct lane_rectangle rectangle_of(const struct products *p, int operand,
                                          const struct schedule_cell *cell)
{
    const struct accel_span *x = p->scheduled.operand[operand].x;
    const int64_t repeat = p->scheduled.call.sharing[operand].repeat;
    struct lane_rectangle r = lane_whole(accel_matrix_of(x, cell->col * repeat), x->rows,
                                         cell->cols * x->cols, x->ld, gpu_size_of(x));
    r.name = x->name;
    if (cell->cols > 1 && (x->array || x->stride != x->ld * x->cols)) {
        r.each = x->cols;
        r.stride = x->stride;
        r.array = x->array ? x->array + cell->col * repeat : NULL;
        r.step = repeat;
    }
    return r;
}

/* ---- Steps ---- */

static void note_copy(void *products, const struct schedule_step *step)
{
    const struct products *p = products;
    const struct accel_span *x = p->scheduled.operand[step->operand].x;
    const int64_t matrices = schedule_cell_of(&p->schedule, step->operand, 0, step->j).cols;
    const int64_t bytes = matrices * accel_bytes(x);
    const bool up = step->engine == SCHEDULE_UP;
    *(up ? &p->work->host->up_bytes : &p->work->host->down_bytes) += bytes;
    gpu_work_event(p->work, up ? GPU_EVENT_H2D : GPU_EVENT_D2H, x, x->rows, matrices * x->cols,
                   bytes);
}

/* Describes the copy of a cell, and notes one up in the call's record. */
static void copy_of(void *products, const struct schedule_step *step, struct flow_copy *copy)
{
    const struct products *p = products;
    const int x = step->operand;
    const struct schedule_cell cell = schedule_cell_of(&p->schedule, x, 0, step->j);
    const struct gpu_tile at =
        matrix_of(p, x, step->j, cell.col * p->scheduled.call.sharing[x].repeat);
    *copy =
        (struct flow_copy){.host = rectangle_of(p, x, &cell), .device = at.ptr, .device_ld = at.ld};
    if (step->engine == SCHEDULE_UP)
        note_copy(products, step);
}

/* The caller may read a result in place as soon as we return. */
static enum gpu_status compute_step(void *products, const struct schedule_step *step)
{
    struct products *p = products;
    const int64_t first = schedule_group_start(&p->schedule, step->j);
    struct products_group group = {.count = schedule_group_start(&p->schedule, step->j + 1) - first,
                                   .pointers = p->pointers != 0};
    for (int x = A; x < OPERANDS; x++) {
        group.at[x] = matrix_of(p, x, step->j, first);
        group.stride[x] = stride_of(p, x);
        if (group.pointers)
            group.at[x].ptr =
                p->pointers + (gpu_address)(x * products_of(p) + first) * sizeof(gpu_address);
    }
    enum gpu_status status = p->compute(p, &group);
    if (status == GPU_OK && is_in_place(p, C))
        status = gpu_work_settle(p->work);
    p->settled += status == GPU_OK && is_in_place(p, C);
    return status;
}

/* ---- After a failure ---- */

static bool by_original(const struct products *p, const struct accel_call *call)
{
    return gpu_work_by_original(p->work, call);
}

static bool products_by_original(const struct products *p, int64_t first)
{
    const int64_t count = products_of(p) - first;
    if (count == 0)
        return true;
    const struct accel_call call = accel_products_of(p->work->call, first, count);
    return by_original(p, &call);
}

/* Has the original compute the rest of a product of which so many columns are there, and rows of
 * the next. */
static bool rest_of_product(const struct products *p, int64_t product, int64_t cols, int64_t rows)
{
    const struct accel_call call = accel_products_of(p->work->call, product, 1);
    const struct accel_span *c = &call.span[ACCEL_c];
    const int64_t begun = rows > 0;
    struct accel_call part = shape_part(&call, rows, cols, c->rows - rows, begun);
    if (begun && !by_original(p, &part))
        return false;
    part = shape_part(&call, 0, cols + begun, c->rows, c->cols - cols - begun);
    return cols + begun == c->cols || by_original(p, &part);
}

static bool rest_by_original(const struct products *p, const struct flow *flow)
{
    const int64_t n = p->scheduled.operand[C].x->cols;
    int64_t first = schedule_group_start(&p->schedule, flow->written) + flow->done_cols / n;
    if (flow->done_cols % n > 0 || flow->done_rows > 0) {
        if (!rest_of_product(p, first, flow->done_cols % n, flow->done_rows))
            return false;
        first++;
    }
    return products_by_original(p, first);
}

/* Returns the status for gpu_run() after a failure: nothing was written, or the original has done
 * the rest, or neither, because a kernel may have changed a result that is in place. A result that
 * does not depend on its old values can be computed anew, once no kernel writes to it. */
static enum gpu_status after_failure(const struct products *p, const struct flow *flow,
                                     enum gpu_status status)
{
    const bool damaged = is_in_place(p, C) && p->work->launched;
    if (status == GPU_LOST ||
        (!damaged && flow->written == 0 && flow->done_cols == 0 && flow->done_rows == 0))
        return status;
    if (damaged && (p->scheduled.call.reads || gpu_copies(p->work)->wait(p->work->lane) != GPU_OK))
        return GPU_LOST;
    if (!rest_by_original(p, flow))
        return GPU_LOST;
    return status == GPU_ERROR ? GPU_FINISHED_ELSE : GPU_SHORT_ELSE;
}

/* ---- One product after the other ---- */

static enum gpu_status run_product(struct products *p, int64_t product, bool *done)
{
    const struct accel_call call = accel_products_of(p->work->call, product, 1);
    struct gpu_work work = *p->work;
    work.call = &call;
    work.launched = false;
    enum gpu_status status = p->alone(&work);
    p->work->blocks = work.blocks;
    memcpy(p->work->block, work.block, sizeof work.block);
    *done = status == GPU_OK || status == GPU_FINISHED_ELSE || status == GPU_SHORT_ELSE;
    return status == GPU_OK              ? gpu_work_give_back(p->work)
           : status == GPU_SHORT_ELSE    ? GPU_NO_MEMORY
           : status == GPU_FINISHED_ELSE ? GPU_ERROR
                                         : status;
}

static enum gpu_status run_each_alone(struct products *p)
{
    enum gpu_status status = GPU_OK;
    int64_t finished = 0;
    while (status == GPU_OK && finished < products_of(p)) {
        bool done = false;
        status = run_product(p, finished, &done);
        finished += done;
    }
    if (status == GPU_OK || status == GPU_LOST || finished == 0)
        return status;
    if (!products_by_original(p, finished))
        return GPU_LOST;
    return status == GPU_ERROR ? GPU_FINISHED_ELSE : GPU_SHORT_ELSE;
}

/* ---- Memory ---- */

/* Takes memory for all, or for none. */
static enum gpu_status take_memory(struct products *p)
{
    const struct schedule *s = &p->schedule;
    enum gpu_status status = GPU_OK;
    for (int x = A; status == GPU_OK && x < OPERANDS; x++)
        if (s->places[x] > 0)
            status =
                gpu_memory(p->work)->take(p->work, s->places[x] * s->place_bytes[x], &p->memory[x]);
    if (status == GPU_OK && p->scheduled.own_bytes[0] > 0)
        status = gpu_memory(p->work)->take(p->work, p->scheduled.own_bytes[0], &p->pointers);
    return status == GPU_NO_MEMORY ? factors_leave(&p->factors) : status;
}

/* Makes a schedule as if all operands came from the host, and takes memory for it. *made: there is
 * one. */
static enum gpu_status make_schedule(struct products *p, const struct schedule_rates *rates,
                                     int64_t available, bool brings, bool *made)
{
    enum gpu_status status = brings ? factors_bring(&p->factors, rates) : GPU_OK;
    *made = true;
    if (status != GPU_OK)
        return status == GPU_NO_MEMORY ? factors_leave(&p->factors) : status;
    *made = choices_make(&p->schedule, &p->scheduled.call, rates,
                         scheduled_memory(&p->scheduled, available)) &&
            factors_leave_out(&p->factors, &p->schedule);
    return *made ? take_memory(p) : factors_leave(&p->factors);
}

/* Makes a schedule, and takes memory for it. *alone: the products are to run one by one, and
 * nothing has been taken. */
static enum gpu_status prepare(struct products *p, bool *alone)
{
    const struct schedule_rates *rates =
        p->work->host->rates.up > 0 ? &p->work->host->rates : &schedule_nominal;
    enum gpu_status status = GPU_NO_MEMORY;
    int64_t available = gpu_info(p->work->device)->memory_bytes;
    for (int attempt = 0; attempt < WORK_ATTEMPTS && status == GPU_NO_MEMORY; attempt++) {
        bool made;
        available = gpu_work_room(p->work, attempt, available);
        schedule_free(&p->schedule);
        if (scheduled_runs_alone(&p->scheduled, rates, available))
            break;
        status = make_schedule(p, rates, available, attempt == 0, &made);
        if (!made)
            break;
    }
    *alone = status == GPU_NO_MEMORY;
    return *alone ? GPU_OK : status;
}

/* Sends up where the matrices of all products are. */
static enum gpu_status send_pointers(struct products *p)
{
    const int64_t count = products_of(p);
    const struct schedule *s = &p->schedule;
    gpu_address *pointers = malloc((size_t)(OPERANDS * count) * sizeof *pointers);
    const struct lane_rectangle from =
        lane_whole(pointers, OPERANDS * count, 1, OPERANDS * count, sizeof *pointers);
    if (!pointers)
        return GPU_NO_MEMORY;
    for (int group = 0; group < s->cells[C].cols; group++)
        for (int64_t i = schedule_group_start(s, group); i < schedule_group_start(s, group + 1);
             i++)
            for (int x = A; x < OPERANDS; x++)
                pointers[x * count + i] = matrix_of(p, x, group, i).ptr;
    enum gpu_status status =
        gpu_copies(p->work)->upload(p->work->lane, p->pointers, OPERANDS * count, &from);
    free(pointers);
    return status;
}

/* ---- The whole ---- */

static enum gpu_status run_prepared(struct products *p)
{
    const struct schedule *s = &p->schedule;
    const int64_t *size = p->work->call->blas.size;
    struct flow flow = {.schedule = s,
                        .result_bytes =
                            (int64_t)accel_bytes(p->scheduled.operand[C].x) * products_of(p),
                        .context = p,
                        .copy_of = copy_of,
                        .arrived = note_copy,
                        .compute = compute_step};
    enum gpu_status status = GPU_OK;
    if (p->scheduled.call.k == 0)
        status = kernels_zeros(p->work, accel_max(size[ACCEL_m], size[ACCEL_n]), &p->zeros);
    if (status == GPU_OK)
        status = factors_send(&p->factors);
    if (status == GPU_OK && p->pointers)
        status = send_pointers(p);
    if (status == GPU_OK)
        status = s->steps[SCHEDULE_COMPUTE] == 1 || is_in_place(p, C)
                     ? flow_in_order(gpu_copies(p->work), p->work->lane, &flow)
                     : gpu_copies(p->work)->flow(p->work->lane, &flow);
    flow.written += p->settled;
    if (status != GPU_OK)
        return after_failure(p, &flow, status);
    factors_keep(&p->factors);
    return status;
}

enum gpu_status products_run(struct products *p)
{
    bool alone = false;
    p->factors = (struct factors){.work = p->work, .scheduled = &p->scheduled};
    if (!gpu_work_describe(p->work, &p->scheduled))
        return GPU_UNSUPPORTED;
    resident_forget(p->work, p->scheduled.operand[C].x);
    enum gpu_status status = prepare(p, &alone);
    if (status == GPU_OK && alone) {
        status = run_each_alone(p);
    } else if (status == GPU_OK) {
        for (int x = A; x < OPERANDS; x++) {
            const struct accel_span *operand = p->scheduled.operand[x].x;
            if (is_in_place(p, x) && !stays(p, x))
                gpu_work_event(p->work, GPU_EVENT_IN_PLACE, operand, operand->rows,
                               products_of(p) * operand->cols,
                               products_of(p) * accel_bytes(operand));
        }
        status = run_prepared(p);
    }
    schedule_free(&p->schedule);
    return status;
}
