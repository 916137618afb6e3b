#include "cached_inputs.h"

#include "prefetch.h"
#include "told_inputs.h"
#include "gpu/plan/plan_cache.h"
#include "gpu/device/kernels.h"
#include "gpu/pack/chunks.h"

enum { A = SCHEDULE_A, C = SCHEDULE_C, OPERANDS = SCHEDULE_OPERANDS };

static const struct accel_span *operand_of(const struct cached_inputs *f, int i)
{
    return f->scheduled->operand[i].x;
}

static int64_t memory_bytes(const struct cached_inputs *f)
{
    return gpu_info(f->work->device)->memory_bytes;
}

/* ---- What is worth while ---- */

/* Returns the bytes that cross the link if it goes up as a whole, to be cached. */
static int64_t sent(const struct accel_span *part)
{
    const struct host_rectangle r = device_cache_rectangle(part);
    return chunks_matrix_sent(&r, gpu_device_ld(part->rows, part->dtype));
}

/* The schedule may hide an operand's upload behind kernels. But nothing hides the look at it, nor
 * its way up as a whole. */
struct cached_worth cached_inputs_worth(const struct gpu_work *work,
                                        const struct scheduled *scheduled,
                                        const struct schedule_rates *rates, int i,
                                        const struct accel_span *part)
{
    struct schedule s = {.count = 0};
    double without = 0;
    const struct gpu_host *host = work->host;
    const struct accel_span *x = scheduled->operand[i].x;
    const double bytes = (double)sent(part);
    const bool is_there = device_cache_is_validated(work, part);
    if (!host->weighs || host->prefetches & 1u << (x - work->call->span))
        return (struct cached_worth){true, true};
    bool made = plan_cache_make(&s, &scheduled->call, rates,
                                scheduled_memory(scheduled, gpu_info(work->device)->memory_bytes));
    const double with = s.ms;
    made = made && schedule_leave_out(&s, i);
    if (made)
        without = schedule_simulate(&s, rates).ms;
    schedule_free(&s);
    const double loss = is_there ? 0 : without + bytes / rates->up * 1e-6 - with;
    const double look_gbps = is_there ? gpu_scan_gbps() : gpu_digest_gbps();
    const double gain = with - without - bytes / look_gbps * 1e-6;
    const bool brings = made && gain > 0 && loss <= gain;
    return (struct cached_worth){brings || (made && gain > 0 && device_cache_is_result(work, part)),
                                 brings};
}

/* As the process has weighed it whose input it is. */
static struct cached_worth worth_of(const struct cached_inputs *f,
                                    const struct schedule_rates *rates, int i,
                                    const struct accel_span *part)
{
    const struct told_input *told = told_inputs_of(f->work, part);
    if (told)
        return (struct cached_worth){told->looks, told->brings};
    return cached_inputs_worth(f->work, f->scheduled, rates, i, part);
}

/* ---- Memory ---- */

/* Returns whether A is cached, or is to be, and B is the same matrix: it is there once. */
static bool is_again(const struct cached_inputs *f, const struct accel_span *part, int i)
{
    const struct cached_input *a = &f->input[A];
    const struct accel_span *x = &a->cached.part;
    return i > A && a->is_cached && !x->triangle && !part->triangle && x->ptr == part->ptr &&
           x->rows == part->rows && x->cols == part->cols && x->ld == part->ld;
}

static enum gpu_status bring(struct cached_inputs *f, const struct accel_span *part,
                             struct cached_worth worth, int i)
{
    struct cached_input *input = &f->input[i];
    const int64_t ld = gpu_device_ld(part->rows, part->dtype);
    enum gpu_status status = GPU_OK;
    if (is_again(f, part, i)) {
        *input = f->input[A];
        input->cached.digests = false;
        return GPU_OK;
    }
    input->at.ld = ld;
    input->cached = device_cache_look(f->work, operand_of(f, i), part, &input->at.ptr);
    input->cached.digests = input->cached.digests && worth.bring;
    if (input->cached.digests)
        status =
            gpu_memory(f->work)->take(f->work, ld * part->cols * gpu_size_of(part), &input->at.ptr);
    input->is_cached = status == GPU_OK && (input->cached.here || input->cached.digests);
    return status;
}

/* Returns whether all operands are on the device at once, if the inputs are there as a whole. */
static bool all_fit(const struct cached_inputs *f)
{
    double bytes = 0;
    for (int i = A; i < OPERANDS; i++) {
        const struct accel_span *x = operand_of(f, i);
        const int64_t matrices =
            f->scheduled->call.products > 0 ? f->scheduled->call.sharing[i].distinct : 1;
        bytes += x ? (double)accel_bytes(x) * (double)matrices : 0;
    }
    return bytes <= (double)memory_bytes(f);
}

/* One that is to be cached goes up as a whole, before the schedule begins: an input is digested in
 * one chunk. */
enum gpu_status cached_inputs_bring(struct cached_inputs *f, const struct schedule_rates *rates)
{
    if (!f->work->host->caches || !all_fit(f))
        return GPU_OK;
    for (int i = A; i < C; i++) {
        const struct accel_span *x = operand_of(f, i);
        if (!x || gpu_in_place(x) || !device_cache_may(f->work->call, x) ||
            !gpu_kernels(f->work)->takes(gpu_device_ld(x->rows, x->dtype)))
            continue;
        const struct accel_span part = device_cache_part(f->work->call, x);
        const struct cached_worth worth = worth_of(f, rates, i, &part);
        if (worth.look)
            GPU_TRY(bring(f, &part, worth, i));
    }
    return GPU_OK;
}

void cached_inputs_leave(struct cached_inputs *f)
{
    for (int i = A; i < C; i++)
        f->input[i] = (struct cached_input){.is_cached = false};
}

bool cached_inputs_leave_out(const struct cached_inputs *f, struct schedule *s)
{
    bool left = true;
    for (int i = A; left && i < C; i++)
        left = !f->input[i].is_cached || schedule_leave_out(s, i);
    return left;
}

/* ---- The call ---- */

static enum gpu_status send(struct cached_inputs *f, struct cached_input *input)
{
    struct cached_operand *r = &input->cached;
    struct host_rectangle from = device_cache_rectangle(&r->part);
    const int64_t bytes = sent(&r->part);
    from.digest = &r->key;
    struct prefetch prefetch = prefetch_begin(r);
    const enum gpu_status status = gpu_work_upload(f->work, input->at, &from);
    prefetch_end(&prefetch, r);
    r->digested = status == GPU_OK;
    if (!r->digested)
        return status;
    gpu_work_event(f->work, GPU_EVENT_H2D, &r->part, r->part.rows, r->part.cols, bytes);
    return status;
}

enum gpu_status cached_inputs_send(struct cached_inputs *f)
{
    for (int i = A; i < C; i++) {
        struct cached_input *input = &f->input[i];
        const struct accel_span *part = &input->cached.part;
        if (input->is_cached && input->cached.here)
            gpu_work_event(f->work, GPU_EVENT_CACHED, part, part->rows, part->cols,
                           accel_bytes(part));
        if (input->is_cached && input->cached.digests)
            GPU_TRY(send(f, input));
    }
    return GPU_OK;
}

void cached_inputs_insert(struct cached_inputs *f)
{
    for (int i = A; i < C; i++)
        if (f->input[i].cached.digested)
            device_cache_insert(f->work, f->input[i].at.ptr, &f->input[i].cached);
}
