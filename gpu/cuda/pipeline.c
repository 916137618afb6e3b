#include "pipeline.h"

/* The most single copies of one chunk each that have no event: to wait for them, wait for the
 * stream. So a call on three small operands needs no event. */
#define UNMARKED_MAX 3

static int buffer_number(const struct pipeline_direction *d, int64_t chunk)
{
    return d->base + (int)((d->first + chunk) % d->buffers);
}

static struct pipeline_chunk *chunk_of(struct pipeline *p, const struct pipeline_direction *d,
                                       int64_t number)
{
    return &p->chunk[buffer_number(d, number)];
}

/* ---- A copy ---- */

/* Threads that write to one huge page would each have the kernel clear one. */
static bool is_fresh(const struct host_rectangle *host)
{
    return pack_is_fresh(host, &(struct pack_chunk){.col = host->cols / 2});
}

void pipeline_begin_copy(struct pipeline *p, struct pipeline_direction *d,
                         struct pipeline_copy *copy, bool streamed)
{
    struct tile_copy *of = &copy->of;
    of->host.streamed = streamed;
    of->host.packer = packer_of(p->ctx->packer, of->host.host);
    d->copy = copy;
    d->next = 0;
    d->all = of->lent ? 1 : pack_count(&of->host, of->device.ld, copy->chunk_bytes);
    const bool divides = p->helped && !of->lent &&
                         (of->host.packer || !(d->down && streamed && is_fresh(&of->host)));
    d->parts = divides ? (int)pack_parts(&of->host, of->device.ld, copy->chunk_bytes) : 1;
}

/* Puts the next chunk of the direction's copy into its buffer. */
static struct pipeline_chunk *next_chunk(struct pipeline *p, struct pipeline_direction *d)
{
    const struct pipeline_copy *copy = d->copy;
    const struct host_rectangle *host = &copy->of.host;
    const int64_t ld = copy->of.device.ld;
    const int at = buffer_number(d, d->begun++);
    struct pipeline_chunk *c = &p->chunk[at];
    *c = (struct pipeline_chunk){.pack = staged_chunk_at(host, ld, copy->chunk_bytes, d->next),
                                 .copy = copy,
                                 .buffer = &d->ring->buffer[at],
                                 .down = d->down,
                                 .first = d->next == 0,
                                 .last = d->next + 1 == d->all,
                                 .left = d->parts};
    if (copy->of.lent)
        c->pack.chunk = (struct pack_chunk){0, host->cols, 0, host->rows};
    const bool is_own = d->ring == &p->ctx->shared && !host->packer;
    const struct pinned_ring *ring = is_own ? &p->ctx->wide : d->ring;
    c->pack.packed = ring->memory + (int64_t)at * PINNED_BUFFER_BYTES;
    c->pack.parts = d->parts;
    c->pack.ld = pack_buffer_ld(host, &c->pack.chunk, ld);
    if (copy->old)
        c->pack.old = copy->old + pack_offset(&c->pack.chunk, host, host->rows);
    d->next++;
    return c;
}

/* ---- On the stream ---- */

static enum gpu_step_kind kind_of(const struct pipeline_direction *d)
{
    return d->down ? GPU_STEP_DOWN : GPU_STEP_UP;
}

/* Begins what a chunk puts on the stream; with its copy's first one, waits there for others. */
static enum gpu_status begin_put(struct pipeline *p, const struct pipeline_direction *d,
                                 struct pipeline_chunk *c)
{
    const struct tile_copy *of = &c->copy->of;
    if (c->early > 0)
        return GPU_OK;
    c->buffer->copy = ++p->ctx->copies;
    c->buffer->marked = false;
    if (p->steps)
        p->ctx->aside = true;
    else
        p->ctx->quiet = false;
    if (c->first && p->steps)
        GPU_TRY(steps_await(p->steps, c->copy->step));
    if (c->first && p->ctx->timing.on)
        stream_ctx_copies(p->ctx, d->stream, kind_of(d), &of->host,
                          p->steps ? chunks_tile_sent(&of->host, of->device.ld)
                                   : chunks_matrix_sent(&of->host, of->device.ld));
    return GPU_OK;
}

/* Returns whether an event is to stand behind a chunk's copy. A single copy waits for the stream
 * behind its last chunk that comes down. */
static bool is_marked(struct pipeline *p, const struct pipeline_direction *d,
                      const struct pipeline_chunk *c)
{
    if (p->steps || d->down)
        return p->steps || !c->last;
    if (d->all > 1 || p->ctx->unmarked == UNMARKED_MAX)
        return true;
    p->ctx->unmarked++;
    return false;
}

/* Puts the copies of parts of a chunk that goes up on the stream, up to part number `done`. */
static enum gpu_status put_early(struct pipeline *p, struct pipeline_chunk *c, int64_t done)
{
    GPU_TRY(begin_put(p, &p->up, c));
    return send_parts(p->up.stream, c, done);
}

/* Puts the copy of a chunk on its stream, and with the last one, what waits for the step. */
static enum gpu_status put_chunk(struct pipeline *p, const struct pipeline_direction *d,
                                 struct pipeline_chunk *c)
{
    enum gpu_status status = begin_put(p, d, c);
    if (status == GPU_OK)
        status = c->early > 0 ? send_parts(d->stream, c, c->pack.parts) : send_chunk(d->stream, c);
    if (c->last)
        timing_end(p->ctx, d->stream, kind_of(d));
    if (status != GPU_OK)
        return status;
    if (is_marked(p, d, c)) {
        GPU_TRY(GPU_CHECK(cuEventRecord, c->buffer->done, d->stream));
        c->buffer->marked = true;
    }
    return c->last && p->steps ? steps_put(p->steps, c->copy->step) : GPU_OK;
}

/* ---- The copy pool's tasks ---- */

static struct packer *packer_of_task(const struct pipeline_task *task)
{
    const struct tile_copy *of = &task->chunk->copy->of;
    return of->lent ? NULL : of->host.packer;
}

/* One that is lent, or a packer's, is a task only to keep its place among the others. */
static void do_task(void *context, int64_t number)
{
    struct pipeline *p = context;
    struct pipeline_task *task = &p->task[number % COPY_POOL_TASKS];
    if (!task->chunk->copy->of.lent && !packer_of_task(task))
        staged_chunk_do(&task->chunk->pack, task->chunk->down ? PACK_FROM_BUFFER : PACK_TO_BUFFER,
                        task->part, &task->seen);
}

void pipeline_begin(struct pipeline *p, struct stream_ctx *ctx, struct steps *steps, bool helped)
{
    p->ctx = ctx;
    p->steps = steps;
    p->tasks = p->known_done = p->taken = 0;
    p->done_cols = p->done_rows = 0;
    p->job = (struct copy_pool_job){.task = do_task, .context = p};
    const bool pool_helps = copy_pool_begin(&p->job, helped && !ctx->packer) > 0;
    p->helped = ctx->packer ? helped : pool_helps;
}

/* Returns whether so many more tasks have room among those that are not taken yet. */
static bool has_room(const struct pipeline *p, int parts)
{
    return p->tasks - p->taken + parts <= COPY_POOL_TASKS;
}

static void post_task(struct pipeline_task *task)
{
    struct packer *packer = packer_of_task(task);
    if (!packer)
        return;
    task->posted = packer->posted;
    packer->post(packer, &task->chunk->pack, task->chunk->down ? PACK_FROM_BUFFER : PACK_TO_BUFFER,
                 task->part);
}

/* Whether one that the copy pool is done with has been done by the packer, too. One that is gone
 * may still be at its tasks: their buffers are not used again. */
static bool is_done(struct pipeline_task *task)
{
    struct packer *packer = packer_of_task(task);
    if (packer && (!packer_has_done(packer, task->posted) || packer->gone))
        return false;
    if (packer)
        packer->take(packer, task->posted, &task->seen);
    return true;
}

static void add_tasks(struct pipeline *p, struct pipeline_chunk *c)
{
    for (int i = 0; i < c->pack.parts; i++) {
        struct pipeline_task *task = &p->task[p->tasks++ % COPY_POOL_TASKS];
        task->chunk = c;
        task->part = i;
        post_task(task);
    }
}

/* Takes over the tasks that are done, until a chunk has all of its tasks done. Returns that chunk,
 * or NULL if there is none, or a copy fails. Of the first chunk that goes up, sends the parts that
 * are done: the link has nothing else to do yet. */
static struct pipeline_chunk *next_done(struct pipeline *p, enum gpu_status *status)
{
    const struct pipeline_task *last = NULL;
    if (p->taken == p->known_done)
        p->known_done = copy_pool_done(&p->job);
    if (p->ctx->packer && p->ctx->packer->gone)
        *status = GPU_UNSUPPORTED;
    while (*status == GPU_OK && p->taken < p->known_done &&
           is_done(&p->task[p->taken % COPY_POOL_TASKS])) {
        last = &p->task[p->taken++ % COPY_POOL_TASKS];
        if (!last->chunk->copy->of.lent)
            staged_chunk_take(&last->chunk->pack, last->part, &last->seen);
        if (--last->chunk->left == 0)
            return last->chunk;
    }
    if (last && !last->chunk->down && p->is_idle && p->up.under_way == 0)
        *status = put_early(p, last->chunk, last->part + 1);
    return NULL;
}

bool pipeline_attend(struct pipeline *p)
{
    if (p->taken == p->tasks)
        return false;
    struct pipeline_task *next = &p->task[p->taken % COPY_POOL_TASKS];
    struct packer *packer = packer_of_task(next);
    copy_pool_attend(&p->job, p->taken + 1);
    if (packer)
        packer_await(packer, next->posted);
    return true;
}

void pipeline_finish(struct pipeline *p)
{
    copy_pool_finish(&p->job, p->tasks);
    packer_finish(p->ctx->packer);
}

bool pipeline_handle(struct pipeline *p, enum gpu_status *status)
{
    struct pipeline_chunk *c = next_done(p, status);
    if (!c)
        return *status != GPU_OK;
    pack_digest_add(c->pack.host, c->pack.digest);
    if (c->down) {
        p->down.ended++;
        if (c->last && p->steps)
            steps_unpacked(p->steps, c->copy->step);
    } else {
        p->up.under_way++;
        *status = put_chunk(p, &p->up, c);
    }
    return true;
}

/* ---- Up ---- */

/* Notes that the oldest chunk on its way up is there. */
static void end_up(struct pipeline *p)
{
    const struct pipeline_chunk *c = chunk_of(p, &p->up, p->up.ended++);
    if (c->last && p->steps)
        steps_came_up(p->steps, c->copy->step);
}

bool pipeline_look_up(struct pipeline *p, enum gpu_status *status)
{
    struct pipeline_direction *up = &p->up;
    const int64_t before = up->ended;
    while (up->ended < up->under_way &&
           pinned_buffer_look(up, chunk_of(p, up, up->ended)->buffer, status))
        end_up(p);
    return up->ended > before || *status != GPU_OK;
}

/* Returns whether there is a chunk to pack, and a buffer for it. */
static bool may_begin_up(struct pipeline *p, enum gpu_status *status)
{
    struct pipeline_direction *up = &p->up;
    if ((!p->steps && up->next == up->all) || up->begun == up->under_way + up->buffers ||
        !pinned_buffer_look(up, &up->ring->buffer[buffer_number(up, up->begun)], status))
        return false;
    if (up->begun - up->ended == up->buffers)
        end_up(p);
    return (up->next < up->all || steps_begin_up(p->steps)) && has_room(p, up->parts);
}

bool pipeline_feed_up(struct pipeline *p, enum gpu_status *status)
{
    const int64_t before = p->tasks;
    while (may_begin_up(p, status))
        add_tasks(p, next_chunk(p, &p->up));
    if (p->tasks > before)
        copy_pool_open(&p->job, p->tasks);
    return p->tasks > before || *status != GPU_OK;
}

enum gpu_status pipeline_wait_up(struct pipeline *p)
{
    struct pipeline_direction *up = &p->up;
    return pinned_buffer_wait(p->ctx, up, &up->ring->buffer[buffer_number(up, up->begun)]);
}

/* ---- Down ---- */

/* A buffer may still hold what a single copy before has sent up: in the stream's order it leaves
 * before another chunk comes down. */
bool pipeline_feed_down(struct pipeline *p, enum gpu_status *status)
{
    struct pipeline_direction *down = &p->down;
    if (down->begun - down->ended == down->buffers)
        return false;
    if (down->next == down->all && !(p->steps && steps_begin_down(p->steps, status)))
        return *status != GPU_OK;
    *status = put_chunk(p, down, next_chunk(p, down));
    down->begun -= *status != GPU_OK; /* it does not arrive */
    return true;
}

static void take_arrived(struct pipeline *p)
{
    struct pipeline_chunk *c = chunk_of(p, &p->down, p->down.under_way++);
    const struct host_rectangle *to = c->pack.host;
    const struct pack_chunk *chunk = &c->pack.chunk;
    const int64_t before = to->backwards ? to->cols - chunk->col - chunk->cols : chunk->col;
    const bool whole = pack_ends_columns(to, chunk);
    add_tasks(p, c);
    copy_pool_open(&p->job, p->tasks);
    p->done_cols = whole ? before + chunk->cols : before;
    p->done_rows = whole ? 0 : chunk->row + chunk->rows;
    if (c->last && p->steps)
        steps_arrived(p->steps, c->copy->step);
}

enum gpu_status pipeline_wait_down(struct pipeline *p)
{
    struct pipeline_direction *down = &p->down;
    GPU_TRY(pinned_buffer_wait(p->ctx, down, chunk_of(p, down, down->under_way)->buffer));
    take_arrived(p);
    return GPU_OK;
}

bool pipeline_look_down(struct pipeline *p, enum gpu_status *status)
{
    struct pipeline_direction *down = &p->down;
    const struct pipeline_chunk *c = chunk_of(p, down, down->under_way);
    if (down->under_way == down->begun || !has_room(p, c->pack.parts))
        return false;
    if (!p->steps && (p->taken == p->tasks || !c->buffer->marked)) {
        *status = pipeline_wait_down(p);
        return true;
    }
    if (!pinned_buffer_look(down, c->buffer, status))
        return *status != GPU_OK;
    take_arrived(p);
    return true;
}
