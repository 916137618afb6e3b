#include "blocks_stay.h"

#include "choices.h"

enum { A = SCHEDULE_A, C = SCHEDULE_C, OPERANDS = SCHEDULE_OPERANDS };

static bool is_same(const struct accel_span *x, const struct accel_span *y)
{
    return x && y && x->ptr == y->ptr && x->rows == y->rows && x->cols == y->cols && x->ld == y->ld;
}

/* What is worth while with an operand. */
struct worth {
    bool look; /* a look for it: a call gains that finds it there */
    bool
        bring; /* its way up as a whole: so much that this is at least what the call loses that brings it */
};

/* The schedule may hide an operand's upload behind kernels. But nothing hides the look at it, nor its way up as a whole. */
static struct worth worth_of(const struct blocks *b, const struct schedule_rates *rates,
                             int operand)
{
    struct schedule s = {.count = 0};
    double without = 0;
    const struct accel_span *x = b->scheduled.operand[operand].x;
    const double bytes = (double)accel_bytes(x);
    const bool is_there = resident_is_proved(b->work, x);
    if (!b->work->host->weighs || b->work->host->brings & 1u << (x - b->work->call->span))
        return (struct worth){true, true};
    bool made =
        choices_make(&s, &b->scheduled.call, rates, gpu_info(b->work->device)->memory_bytes);
    const double with = s.ms;
    made = made && schedule_leave_out(&s, operand);
    if (made)
        without = schedule_simulate(&s, rates).ms;
    schedule_free(&s);
    const double loss = is_there ? 0 : without + bytes / rates->up * 1e-6 - with;
    const double look_gbps = is_there ? gpu_scan_gbps() : gpu_digest_gbps();
    const double gain = with - without - bytes / look_gbps * 1e-6;
    const bool brings = made && gain > 0 && loss <= gain;
    return (struct worth){brings || (made && gain > 0 && resident_is_result(b->work, x)), brings};
}

/* One that is to be kept goes up as a whole, before the schedule begins: what a call keeps is digested in one piece. If both factors are the
 * same matrix, it is there once. */
enum gpu_status stay_bring(struct blocks *b, const struct schedule_rates *rates)
{
    enum gpu_status status = GPU_OK;
    int64_t all = 0;
    for (int i = A; i < OPERANDS; i++)
        all += b->scheduled.operand[i].x ? accel_bytes(b->scheduled.operand[i].x) : 0;
    if (all > gpu_info(b->work->device)->memory_bytes)
        return GPU_OK;
    for (int i = A; status == GPU_OK && i < C; i++) {
        const struct accel_span *x = b->scheduled.operand[i].x;
        struct resident *r = &b->resident[i];
        const int64_t ld = x ? gpu_device_ld(x->rows, x->dtype) : 0;
        if (!x || gpu_in_place(x) || !kernels_fit(ld) || !resident_may(b->work->call, x) ||
            !b->work->host->keeps)
            continue;
        const struct worth worth = worth_of(b, rates, i);
        if (!worth.look)
            continue;
        const bool again = i > A && b->stays[A] && is_same(x, b->scheduled.operand[A].x);
        gpu_address memory = b->whole[A].ptr;
        *r = again ? (struct resident){.here = b->resident[A].here}
                   : resident_look(b->work, x, &memory);
        r->digests = r->digests && worth.bring;
        if (r->digests)
            status = gpu_work_take(b->work, ld * x->cols * gpu_size_of(x), &memory);
        b->stays[i] = again || r->here || (r->digests && status == GPU_OK);
        b->whole[i] = (struct gpu_tile){memory, ld};
    }
    return status;
}

void stay_leave(struct blocks *b)
{
    for (int i = A; i < C; i++) {
        b->resident[i] = (struct resident){.here = false};
        b->stays[i] = false;
    }
}

enum gpu_status stay_send(struct blocks *b)
{
    enum gpu_status status = GPU_OK;
    for (int i = A; status == GPU_OK && i < C; i++) {
        const struct accel_span *x = b->scheduled.operand[i].x;
        struct resident *r = &b->resident[i];
        if (!b->stays[i])
            continue;
        const int64_t bytes = accel_bytes(x);
        if (r->here) {
            b->work->host->kept_bytes += bytes;
            gpu_work_event(b->work, GPU_EVENT_KEPT, x, x->rows, x->cols, bytes);
        }
        if (!r->digests)
            continue;
        struct lane_rectangle from = lane_whole(x->ptr, x->rows, x->cols, x->ld, gpu_size_of(x));
        from.digest = &r->key;
        from.name = x->name;
        struct bringing bringing = bringing_begin(x, r);
        status = lane_upload(b->work->lane, b->whole[i].ptr, b->whole[i].ld, &from);
        bringing_end(&bringing, r);
        r->digested = status == GPU_OK;
        if (!r->digested)
            break;
        b->work->host->up_bytes += bytes;
        gpu_work_event(b->work, GPU_EVENT_H2D, x, x->rows, x->cols, bytes);
    }
    return status;
}

void stay_keep(struct blocks *b)
{
    for (int i = A; i < C; i++)
        if (b->resident[i].digested)
            resident_keep(b->work, b->scheduled.operand[i].x, b->whole[i].ptr, &b->resident[i]);
    staying_keep(&b->result, b->work);
}

/* Returns whether C's cells are where they would be in one matrix, when all are finished. */
static bool is_one_matrix(const struct blocks *b)
{
    const struct schedule *s = &b->schedule;
    const struct accel_span *c = b->scheduled.operand[C].x;
    const int64_t ld = gpu_device_ld(c->rows, c->dtype), size = gpu_size_of(c);
    bool is = true;
    for (int n = 0; is && n < s->count; n++) {
        const struct schedule_step *step = &s->step[n];
        if (step->engine != SCHEDULE_DOWN)
            continue;
        const struct schedule_cell cell = scheduled_stored(&b->scheduled, s, C, step->i, step->j);
        is = gpu_device_ld(cell.rows, c->dtype) == ld &&
             step->place * s->place_bytes[C] == (cell.row + cell.col * ld) * size;
    }
    return is;
}

enum gpu_status stay_begin_result(struct blocks *b)
{
    const struct schedule *s = &b->schedule;
    const bool in_one = s->steps[SCHEDULE_COMPUTE] == 1;
    const struct schedule_cell first = scheduled_stored(&b->scheduled, s, C, 0, 0);
    const struct gpu_cells cells = {in_one ? 0 : first.rows, in_one ? 0 : first.cols};
    if (s->steps[SCHEDULE_DOWN] == 0 || b->work->call->batch > 1 || s->call.head > 0 ||
        (in_one && b->scheduled.keeps_old))
        return GPU_OK;
    return staying_begin(&b->result, b->work, b->scheduled.operand[C].x, blocks_triangle(b), cells,
                         is_one_matrix(b) ? b->memory[C] : 0);
}
