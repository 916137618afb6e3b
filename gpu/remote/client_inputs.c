#include "client_inputs.h"

#include "base/memory/write_watch.h"
#include "call/shape.h"
#include "gpu/cache/cached_inputs.h"
#include "gpu/cache/device_cache.h"
#include "gpu/exec/executor.h"

static bool is_lapack(const struct accel_call *call)
{
    return call->op->traits.group == ACCEL_LAPACK;
}

/* Whether the device cache takes an operand: LAPACK's also if the call overwrites it. */
static bool may_be_kept(const struct accel_call *call, const struct accel_span *x)
{
    if (!is_lapack(call))
        return device_cache_may(call, x);
    return x->access != ACCEL_WRITE && accel_bytes(x) >= GPU_LEAST_CACHED_BYTES;
}

/* ---- What of an operand is kept ---- */

/* Returns how good a part is to be asked for: 2: its watch is validated; 1: it is kept. */
static int knowledge_of(const struct accel_span *part)
{
    struct gpu_key key;
    bool may;
    if (admission_watch(part, &may).validated)
        return 2;
    return admission_digest(part, &key);
}

/* Returns what the call reads, or what another call has had kept: of LAPACK, each step says which
 * triangle it reads. */
static struct accel_span part_of(const struct accel_call *call, const struct accel_span *x)
{
    static const char triangles[] = {0, 'L', 'U', 'l', 'u'};
    struct accel_span best = is_lapack(call) ? *x : device_cache_part(call, x), part = best;
    int known = knowledge_of(&best);
    for (size_t i = 0; i < (is_lapack(call) ? sizeof triangles : 1); i++) {
        part.triangle = triangles[i];
        if (knowledge_of(&part) <= known)
            continue;
        best = part;
        known = knowledge_of(&part);
    }
    return best;
}

/* ---- Before the call ---- */

/* Asks a validated watch. A scan for NaN takes more than that an operand is unchanged. Returns
 * whether it has shown that somebody has written to it. */
static bool ask_watch(struct client_inputs *inputs, struct client_input *input)
{
    struct admission_watch *w = &input->watch;
    if (!w->validated ||
        (is_lapack(inputs->work.call) && !(w->scanned && inputs->work.host->digests)))
        return false;
    input->known = device_cache_is_unchanged(&input->part, w->watch, &w->edges);
    if (input->known)
        return false;
    admission_written(&input->part, w->watch);
    *w = admission_watch(&input->part, &input->may);
    return true;
}

/* Whether it is a part of a larger matrix that is kept, and of which nobody has written to the
 * part: then the key is the larger one's. */
static bool is_in_larger(const struct client_inputs *inputs, const struct accel_span *part,
                         struct wire_input *to)
{
    struct accel_span all = *part, larger;
    all.triangle = 0;
    if (is_lapack(inputs->work.call))
        return false;
    const struct admission_watch w = admission_around(&all, &larger, &to->row, &to->col);
    if (!w.watch)
        return false;
    if (!dirty_tracking_part_is_unchanged(&larger, &all, w.watch, &w.edges)) {
        admission_written(&larger, w.watch);
        return false;
    }
    admission_unchanged(&larger, w.watch);
    to->state = WIRE_KNOWN | WIRE_PART;
    to->key = w.key;
    to->larger_rows = larger.rows;
    to->larger_cols = larger.cols;
    return true;
}

/* Notes that the call reads it. Returns whether it is to be brought whatever the device has of it,
 * so that later calls find it: as dispatch says, or of a product with a vector, of which nobody
 * takes a digest, if it has been seen before. *rests: it changes too often to be looked for. */
static bool see(const struct client_inputs *inputs, struct client_input *input, int i, bool *first,
                bool *rests)
{
    const struct gpu_host *host = inputs->work.host;
    const bool moves = inputs->work.call->op->traits.moves && host->tracks && !host->relies;
    *first = *rests = false;
    if (host->prefetches & 1u << i) {
        admission_prefetch(&input->part);
        return true;
    }
    if (!host->digests && !moves && !input->watch.validated)
        return false;
    const enum admission how = admission_see_served(&input->part, first);
    *rests = how == ADMIT_NONE && !*first;
    if (host->digests || !moves || input->watch.validated)
        return false;
    return (how == ADMIT_LOOKUP ? admission_looked(&input->part, false) : how) == ADMIT_INSERT;
}

/* A watch begins before the digest that validates it, as in a process that has the device: if the
 * operand has not changed of late. */
static void begin_watch(struct client_inputs *inputs, struct client_input *input, bool written)
{
    const bool moves = inputs->work.call->op->traits.moves;
    struct gpu_key key;
    input->begins = !input->watch.watch && input->may && !written &&
                    (moves || admission_expect(&input->part, &key));
    if (input->begins)
        input->watch.watch = dirty_tracking_begin(&input->part);
    input->validates = input->watch.watch != 0;
    if (input->validates)
        dirty_tracking_validate(&input->part, &input->validation);
}

/* Of Level 3, by this process's rates: where the schedule hides an upload, nothing is to be read or
 * scanned before it. */
static struct cached_worth worth_of(struct client_inputs *inputs, const struct accel_span *part,
                                    int i)
{
    const struct gpu_work *work = &inputs->work;
    struct scheduled scheduled;
    if (work->call->op->traits.group == ACCEL_LEVEL_3 && gpu_work_describe(work, &scheduled))
        for (int k = SCHEDULE_A; k < SCHEDULE_C; k++)
            if (scheduled.operand[k].x == &work->call->span[i])
                return cached_inputs_worth(work, &scheduled, executor_rates(work), k, part);
    return (struct cached_worth){true, true};
}

static void begin_input(struct client_inputs *inputs, int i, struct wire_request *request)
{
    struct client_input *input = &inputs->input[i];
    const struct accel_span *x = &inputs->work.call->span[i], part = part_of(inputs->work.call, x);
    const struct gpu_host *host = inputs->work.host;
    const struct cached_worth worth = worth_of(inputs, &part, i);
    bool written = false, first, rests;
    if (!worth.look)
        return;
    struct wire_input *to = &request->input[i];
    if (host->tracks && x->access == ACCEL_READ && is_in_larger(inputs, &part, to)) {
        to->state |= (uint8_t)(WIRE_LOOK | WIRE_SEEN | (worth.bring ? WIRE_BRING : 0));
        input->part = part;
        input->known = true;
        return;
    }
    input->part = part;
    if (host->tracks && x->access == ACCEL_READ)
        input->watch = admission_watch(&input->part, &input->may);
    input->brings = see(inputs, input, i, &first, &rests);
    written = ask_watch(inputs, input);
    request->prefetches |= (unsigned)input->brings << i;
    if (rests)
        return;
    to->state = (uint8_t)(WIRE_LOOK | (worth.bring ? WIRE_BRING : 0) | (first ? 0 : WIRE_SEEN));
    if (input->known) {
        to->state |= WIRE_KNOWN;
        to->triangle = input->part.triangle;
        to->key = input->watch.key;
        to->scanned = input->watch.scanned;
        to->finite = input->watch.seen.finite;
        to->largest = input->watch.seen.largest;
    } else if (host->tracks && x->access == ACCEL_READ && !host->relies &&
               (host->digests || input->brings)) {
        begin_watch(inputs, input, written);
    }
}

/* What a call overwrites is not what was kept of it, and its pages need no watch. */
static void forget_result(const struct accel_call *call, const struct accel_span *x)
{
    static const char triangles[] = {0, 'L', 'U'};
    struct accel_span part = *x;
    struct gpu_key old;
    for (size_t i = 0; !is_lapack(call) && i < sizeof triangles; i++) {
        part.triangle = triangles[i];
        admission_write(&part, &old);
    }
}

enum gpu_status client_inputs_begin(struct client_inputs *inputs, struct gpu_device *device,
                                    const struct accel_call *call, struct gpu_host *host,
                                    struct wire_request *request)
{
    *inputs = (struct client_inputs){.work = {.call = call, .host = host, .device = device}};
    request->prefetches = 0;
    for (int i = 0; i < ACCEL_SPANS; i++) {
        const struct accel_span *x = &call->span[i];
        request->input[i] = (struct wire_input){.state = 0};
        if (!host->caches || request->operand[i].asked != (uint32_t)i + 1)
            continue;
        if (may_be_kept(call, x))
            begin_input(inputs, i, request);
        else if (x->access & ACCEL_WRITE)
            forget_result(call, x);
        if (host->relies && inputs->input[i].part.ptr && !inputs->input[i].known)
            return GPU_CHANGED;
    }
    return GPU_OK;
}

/* ---- Behind it ---- */

static void settle(struct client_inputs *inputs)
{
    for (int i = 0; !inputs->settled && i < ACCEL_SPANS; i++) {
        struct client_input *input = &inputs->input[i];
        input->holds = input->validates && dirty_tracking_is_validated(&input->validation);
    }
    inputs->settled = true;
}

/* What is digested from then on says nothing of what its watch has seen. */
void client_inputs_see(struct client_inputs *inputs, const struct wire_task *task)
{
    if (inputs && task->action == PACK_FROM_BUFFER)
        settle(inputs);
    else if (inputs && inputs->settled && task->digests)
        inputs->input[task->operand].holds = false;
}

/* Takes over what is kept: under another key than before, the operand has changed. Returns whether
 * it has the same key as before. */
static bool note_kept(const struct accel_span *part, const struct gpu_key *key)
{
    struct gpu_key before;
    const bool had = admission_digest(part, &before), same = had && gpu_key_is(&before, key);
    if (had)
        admission_looked(part, same);
    if (!same)
        admission_cached(part, key);
    return same;
}

/* The watch of one that has been digested. */
static void note_watch(const struct client_inputs *inputs, struct client_input *input,
                       const struct wire_input *told, bool same)
{
    struct admission_watch *w = &input->watch;
    const bool found = told->state == WIRE_FOUND, was_validated = w->validated;
    const bool is_it = found || same || input->brings, holds = input->holds;
    if (holds && is_it)
        *w = (struct admission_watch){.watch = w->watch,
                                      .validated = true,
                                      .key = told->key,
                                      .edges = input->validation.edges,
                                      .scanned = told->scanned,
                                      .seen = {accel_is_double(inputs->work.call->routine->dtype),
                                               told->finite != 0, told->largest}};
    if (w->watch && is_it && (holds || input->begins)) {
        admission_watched(&input->part, w);
    } else if (input->begins) {
        write_watch_leave(w->watch);
    } else if (w->watch && !(was_validated && same)) {
        admission_written(&input->part, w->watch);
    } else if (found && !w->watch && input->may &&
               (w->watch = dirty_tracking_begin(&input->part))) {
        admission_watched(&input->part, w);
    }
}

static void end_input(const struct client_inputs *inputs, int i, const struct wire_input *told)
{
    struct client_input input = inputs->input[i];
    const bool kept = told && (told->state == WIRE_FOUND || told->state == WIRE_BROUGHT);
    struct accel_span part = input.part;
    if (!kept) {
        if (input.begins)
            write_watch_leave(input.watch.watch);
        return;
    }
    part.triangle = told->triangle;
    if (part.triangle != input.part.triangle)
        admission_see(&part);
    const bool same = note_kept(&part, &told->key);
    if (part.triangle != input.part.triangle) { /* the call has read something else */
        if (input.begins)
            write_watch_leave(input.watch.watch);
    } else if (!input.known) {
        note_watch(inputs, &input, told, same);
    } else if (!same) {
        admission_written(&part, input.watch.watch);
    }
}

void client_inputs_end(struct client_inputs *inputs, const struct wire_reply *reply)
{
    settle(inputs);
    for (int i = 0; i < ACCEL_SPANS; i++)
        if (inputs->input[i].part.ptr)
            end_input(inputs, i, reply ? &reply->input[i] : NULL);
}

/* ---- What is kept ---- */

bool client_inputs_are_kept(const struct wire_kept *kept, const struct gpu_key *key)
{
    const uint32_t told = atomic_load_explicit(&kept->count, memory_order_relaxed);
    const uint32_t count = told < WIRE_KEPT_MOST ? told : WIRE_KEPT_MOST;
    for (uint32_t i = 0; i < count; i++)
        if (atomic_load_explicit(&kept->word[i], memory_order_relaxed) == key->word[0])
            return true;
    return false;
}
