#include "gpu/device/flow.h"

#include "base/thread/clock.h"
#include "base/thread/crew.h"
#include "check.h"
#include "lane.h"
#include "gpu/pack/pack_job.h"

#include <stdlib.h>

enum { UP = SCHEDULE_UP, COMPUTE = SCHEDULE_COMPUTE, DOWN = SCHEDULE_DOWN };

/* After the driver has said that a copy is not done, it is not asked about that direction again for
 * so long: a link of 50 GB/s takes that for the smallest piece. */
#define ASK_MS 0.005

/* What is in a slot of the ring. */
struct parcel {
    struct flow_copy copy;
    struct pack_piece piece;
    char *memory;
    char *old;    /* for what it overwrites; NULL: that is not kept */
    CUevent done; /* behind its copy */
    const struct schedule_step *step;
    bool first, last;    /* piece of its step */
    int64_t piece_bytes; /* of which it is one */
    /* Items of it: its parts, or one with all of them; those that are not taken yet */
    int parts, left;
    int64_t early; /* up: parts of it that have been sent before it was packed */
    /* Of what has come down, if that is asked for: of the items that are taken */
    struct gpu_key digest;
};

/* One that the crew does. */
struct item {
    struct parcel *parcel;
    bool down; /* it unpacks */
    int part;
    struct gpu_scan seen;
    struct gpu_key digest;
};

/* Copies in one direction: pieces pass from one count to the next, in their order. */
struct direction {
    CUstream stream;
    struct parcel *parcel; /* its slots */
    int64_t slots;
    /* up: let be packed; sent; its slot is free again. down: sent for; arrived, and let be
     * unpacked; unpacked. */
    int64_t begun, under_way, ended;
    double ask_ms; /* from when on to ask again whether the next copy is done */
    /* The step that is being begun, and its pieces. */
    const struct schedule_step *step;
    struct flow_copy copy;
    int64_t piece_bytes, piece, pieces;
};

struct run {
    struct gpu_lane *lane;
    struct flow *flow;
    struct direction up, down;
    int downs;    /* downloads that were begun */
    int unpacked; /* downloads that are in host memory as a whole */
    /* The pieces up to the last download with an even number, and with an odd one */
    int64_t ends[2];
    struct parcel parcels[LANE_WIDE_SLOTS];
    int next[SCHEDULE_ENGINES];              /* of the schedule's steps: the engine's next one */
    int put[SCHEDULE_ENGINES];               /* steps of the engine that are on its streams */
    int on[LANE_STREAMS];                    /* steps that are on the stream */
    int awaited[LANE_STREAMS][LANE_STREAMS]; /* steps of the second that the first one waits for */
    int32_t *beside; /* of the first kernels, by their number, so many go beside; NULL: none does */
    struct crew_job job;
    bool helped;                  /* pieces are packed in parts */
    struct item item[CREW_ITEMS]; /* by their numbers */
    int64_t items, known_done, handled;
};

/* ---- Getting ready ---- */

static enum gpu_status make_stream(CUstream *stream)
{
    return *stream ? GPU_OK : GPU_CHECK(cuStreamCreate, stream, CU_STREAM_NON_BLOCKING);
}

static enum gpu_status make_streams(struct gpu_lane *lane, bool beside)
{
    const int streams = beside ? LANE_STREAMS : SCHEDULE_ENGINES;
    lane->made = lane->made || !lane->down;
    enum gpu_status status = make_stream(&lane->up);
    if (status == GPU_OK)
        status = make_stream(&lane->down);
    for (int e = 0; status == GPU_OK && e < streams * LANE_STEPS; e++)
        if (!lane->step[e / LANE_STEPS][e % LANE_STEPS])
            status = GPU_CHECK(cuEventCreate, &lane->step[e / LANE_STEPS][e % LANE_STEPS],
                               CU_EVENT_DISABLE_TIMING);
    return status;
}

/* Counts the kernels that go beside, if there is memory for their workspace. */
static enum gpu_status count_beside(struct run *run)
{
    const struct schedule *s = run->flow->schedule;
    const enum gpu_status status =
        run->flow->has_sides ? lane_prepare_beside(run->lane) : GPU_UNSUPPORTED;
    if (status == GPU_NO_MEMORY || status == GPU_UNSUPPORTED)
        return GPU_OK;
    run->beside = calloc((size_t)s->steps[COMPUTE] + 1, sizeof *run->beside);
    for (int n = 0, kernels = 0; run->beside && n < s->count; n++)
        if (s->step[n].engine == COMPUTE) {
            const bool goes = schedule_goes_beside(s, s->step[n].i, s->step[n].j);
            run->beside[kernels + 1] = run->beside[kernels] + goes;
            kernels++;
        }
    return run->beside ? status : GPU_NO_MEMORY;
}

/* Divides a ring between the directions: the wide one if there is memory for it. A ring that few
 * threads fill should stay in their caches. */
static enum gpu_status divide_ring(struct run *run)
{
    struct gpu_lane *lane = run->lane;
    struct lane_ring *ring = &lane->wide;
    int slots = (int)accel_min(LANE_WIDE_SLOTS, LANE_NARROW_SLOTS + 2 * crew_size());
    enum gpu_status status = lane_prepare_ring(ring, LANE_WIDE_SLOTS);
    if (status == GPU_NO_MEMORY && !ring->memory) {
        ring = &lane->narrow;
        slots = LANE_NARROW_SLOTS;
        status = lane_prepare_ring(ring, slots);
    }
    for (int i = 0; status == GPU_OK && i < slots; i++) {
        run->parcels[i].memory = ring->memory + (int64_t)i * LANE_SLOT_BYTES;
        run->parcels[i].done = ring->slot[i].done;
    }
    run->down =
        (struct direction){.stream = lane->down, .parcel = run->parcels, .slots = slots / 2};
    run->up = (struct direction){
        .stream = lane->up, .parcel = run->parcels + slots / 2, .slots = slots - slots / 2};
    return status;
}

/* ---- Steps ---- */

/* Finds the engine's next step, from `next` on. */
static void find_next(struct run *run, int engine, int next)
{
    const struct schedule *s = run->flow->schedule;
    while (next < s->count && s->step[next].engine != engine)
        next++;
    run->next[engine] = next;
}

/* Returns the engine's next step if all that it waits for is on the streams; else NULL. */
static const struct schedule_step *next_step(const struct run *run, int engine)
{
    const struct schedule *s = run->flow->schedule;
    if (run->next[engine] == s->count)
        return NULL;
    const struct schedule_step *step = &s->step[run->next[engine]];
    for (int e = 0; e < SCHEDULE_ENGINES; e++)
        if (e != engine && step->after[e] > run->put[e])
            return NULL;
    if (engine == UP && run->flow->reads_results && step->after[DOWN] > run->unpacked)
        return NULL;
    if (engine == UP && run->flow->is_there && !run->flow->is_there(run->flow->context, step))
        return NULL;
    return step;
}

/* Returns the stream of the engine's steps, by its number: of kernels, that on which the lane
 * is. */
static int number_of(const struct run *run, int engine)
{
    return engine == COMPUTE && run->lane->is_beside ? LANE_BESIDE : engine;
}

static CUstream stream_of(struct run *run, int engine)
{
    return engine == UP     ? run->up.stream
           : engine == DOWN ? run->down.stream
                            : lane_stream(run->lane);
}

/* Makes the engine's stream wait for the first `after` steps of another stream. An event that
 * stands for a later step by now will do. */
static enum gpu_status await_stream(struct run *run, int engine, int other, int after)
{
    int *awaited = &run->awaited[number_of(run, engine)][other];
    if (after <= *awaited)
        return GPU_OK;
    *awaited = after;
    return GPU_CHECK(cuStreamWaitEvent, stream_of(run, engine),
                     run->lane->step[other][after % LANE_STEPS], 0);
}

/* Makes the engine's stream wait for what the step waits for: of kernels, on both of their streams,
 * but not for those on its own. */
static enum gpu_status await_others(struct run *run, const struct schedule_step *step)
{
    const int engine = step->engine, own = number_of(run, engine);
    enum gpu_status status = GPU_OK;
    for (int e = 0; status == GPU_OK && e < SCHEDULE_ENGINES; e++) {
        const int beside = e == COMPUTE && run->beside ? run->beside[step->after[e]] : 0;
        if (own != e)
            status = await_stream(run, engine, e, step->after[e] - beside);
        if (status == GPU_OK && own != LANE_BESIDE)
            status = await_stream(run, engine, LANE_BESIDE, beside);
    }
    return status;
}

/* Notes that one more step of the engine is on its stream. */
static enum gpu_status end_step(struct run *run, int engine)
{
    const int number = number_of(run, engine);
    run->put[engine]++;
    return GPU_CHECK(cuEventRecord, run->lane->step[number][++run->on[number] % LANE_STEPS],
                     stream_of(run, engine));
}

/* Begins a step that copies a cell: describes its pieces. */
static void begin_copy(struct run *run, struct direction *d, const struct schedule_step *step)
{
    struct flow *flow = run->flow;
    d->step = step;
    find_next(run, step->engine, run->next[step->engine] + 1);
    flow->copy_of(flow->context, step, &d->copy);
    d->piece_bytes = d->copy.host.digest || d->copy.host.trimmed
                         ? pieces_of_cell(&d->copy.host, d->copy.device_ld)
                         : pieces_bytes(&d->copy.host, d->copy.device_ld, PIECES_OF_CELL,
                                        lane_least_piece(run->lane));
    d->piece = 0;
    d->pieces = d->copy.lent ? 1 : pack_count(&d->copy.host, d->copy.device_ld, d->piece_bytes);
    d->copy.host.streamed = flow->result_bytes >= PACK_STREAMED_BYTES;
}

static struct parcel *next_parcel(struct direction *d)
{
    struct parcel *parcel = &d->parcel[d->begun++ % d->slots];
    parcel->copy = d->copy;
    parcel->piece = d->copy.lent
                        ? (struct pack_piece){0, d->copy.host.cols, 0, d->copy.host.rows}
                        : pack_piece(&d->copy.host, d->copy.device_ld, d->piece_bytes, d->piece);
    parcel->piece_bytes = d->piece_bytes;
    parcel->step = d->step;
    parcel->old = NULL;
    parcel->early = 0;
    parcel->first = d->piece == 0;
    parcel->last = ++d->piece == d->pieces;
    return parcel;
}

static enum gpu_step_kind kind_of(const struct run *run, const struct direction *d)
{
    return d == &run->up ? GPU_STEP_UP : GPU_STEP_DOWN;
}

/* With the first piece of a step, puts what that waits for on the stream. */
static enum gpu_status begin_put(struct run *run, const struct direction *d,
                                 const struct parcel *parcel)
{
    const struct flow_copy *copy = &parcel->copy;
    run->lane->aside = true;
    if (!parcel->first || parcel->early > 0)
        return GPU_OK;
    const enum gpu_status status = await_others(run, parcel->step);
    lane_copies(run->lane, d->stream, kind_of(run, d), &copy->host,
                pieces_cell_sent(&copy->host, copy->device_ld));
    return status;
}

/* Puts the copies of parts of a piece that goes up on the stream, up to part number `done`. */
static enum gpu_status put_early(struct run *run, struct parcel *parcel, int64_t done)
{
    const struct flow_copy *copy = &parcel->copy;
    const enum gpu_status status = begin_put(run, &run->up, parcel);
    return status == GPU_OK ? lane_send_parts(run->up.stream, &copy->host, &parcel->piece,
                                              parcel->piece_bytes, parcel->memory, copy->device,
                                              copy->device_ld, &parcel->early, done)
                            : status;
}

/* Puts the copy of a piece on its stream, up from its slot or down to it, and with the first and
 * the last one what the step waits for and is waited for. */
static enum gpu_status put_copy(struct run *run, const struct direction *d, struct parcel *parcel)
{
    const struct flow_copy *copy = &parcel->copy;
    const struct pack_piece *piece = &parcel->piece;
    const enum gpu_step_kind kind = kind_of(run, d);
    enum gpu_status status = begin_put(run, d, parcel);
    if (status == GPU_OK && parcel->early > 0)
        status = put_early(run, parcel, parcel->parts);
    else if (status == GPU_OK && copy->lent)
        status = GPU_CHECK(cuMemcpyDtoDAsync, copy->device, copy->lent,
                           (size_t)pack_bytes(piece, &copy->host, copy->device_ld), d->stream);
    else if (status == GPU_OK)
        status = lane_copy_piece(d->stream, d == &run->up, &copy->host, piece, parcel->memory,
                                 copy->device, copy->device_ld);
    if (parcel->last)
        timing_end(run->lane, d->stream, kind);
    if (status == GPU_OK)
        status = GPU_CHECK(cuEventRecord, parcel->done, d->stream);
    return status == GPU_OK && parcel->last ? end_step(run, parcel->step->engine) : status;
}

/* ---- The crew's items ---- */

/* Joins the digest of a part to its item's. A piece has the digest of its parts, one after the
 * other (take_item()). */
static void digest_part(struct item *item, const struct lane_rectangle *r,
                        const struct pack_piece *part, const char *packed, int64_t ld)
{
    const struct gpu_key own = pack_digest(r, part, packed, ld);
    item->digest = item->parcel->parts > 1 ? own : gpu_digest_join(item->digest, own);
}

static void do_part(struct item *item, const struct pack_piece *part, struct lane_rectangle *from)
{
    const struct parcel *parcel = item->parcel;
    const int64_t ld = pack_slot_ld(from, &parcel->piece, parcel->copy.device_ld);
    char *packed = parcel->memory + pack_part_offset(from, &parcel->piece, part, ld);
    if (!item->down) {
        pack_from_host(packed, from, part, ld);
        return;
    }
    if (parcel->old)
        pack_from_host(parcel->old + pack_part_offset(from, &parcel->piece, part, from->rows),
                       &parcel->copy.host, part, from->rows);
    pack_to_host(&parcel->copy.host, part, packed, ld);
    if (from->digest) /* of our own copy, to which the program does not write */
        digest_part(item, from, part, packed, ld);
}

/* One that is lent is an item only to keep its place among the others. */
static void do_item(void *context, int64_t number)
{
    struct run *run = context;
    struct item *item = &run->item[number % CREW_ITEMS];
    const struct parcel *parcel = item->parcel;
    struct lane_rectangle from = parcel->copy.host;
    const int64_t ld = parcel->copy.device_ld, most = pack_parts(&from, ld, parcel->piece_bytes);
    if (parcel->copy.lent)
        return;
    if (from.scan) {
        item->seen = gpu_scan_begin(from.scan->is_double);
        from.scan = &item->seen;
    }
    for (int64_t i = parcel->parts > 1 ? item->part : 0;
         i < (parcel->parts > 1 ? item->part + 1 : most); i++) {
        const struct pack_piece part = pack_part(&from, ld, parcel->piece_bytes, &parcel->piece, i);
        if (part.cols > 0)
            do_part(item, &part, &from);
    }
}

/* Returns whether the items of one more piece have room among those that are not done yet. */
static bool has_room(const struct run *run, const struct flow_copy *copy, int64_t piece_bytes)
{
    return run->items - run->handled + pack_parts(&copy->host, copy->device_ld, piece_bytes) <=
           CREW_ITEMS;
}

static void open_items(struct run *run, bool down, struct parcel *parcel)
{
    const struct lane_rectangle *host = &parcel->copy.host;
    const bool divided = run->helped && !parcel->copy.lent &&
                         !(down && host->streamed && pack_is_fresh(host, &parcel->piece));
    parcel->parts = parcel->left =
        divided ? (int)pack_parts(host, parcel->copy.device_ld, parcel->piece_bytes) : 1;
    parcel->digest = (struct gpu_key){{0, 0}};
    for (int i = 0; i < parcel->parts; i++)
        run->item[run->items++ % CREW_ITEMS] =
            (struct item){.parcel = parcel, .down = down, .part = i};
    crew_open(&run->job, run->items);
}

/* Takes over what an item has seen, in the items' order. Returns whether it is its parcel's last
 * one. */
static bool take_item(const struct item *item)
{
    struct parcel *parcel = item->parcel;
    const struct lane_rectangle *r = &parcel->copy.host;
    const bool none =
        parcel->copy.lent ||
        (parcel->parts > 1 &&
         pack_part(r, parcel->copy.device_ld, parcel->piece_bytes, &parcel->piece, item->part)
                 .cols == 0);
    if (r->scan && !none && !item->down)
        gpu_scan_add(r->scan, &item->seen);
    if (r->digest && !none && item->down)
        parcel->digest =
            parcel->parts > 1 ? gpu_digest_join(parcel->digest, item->digest) : item->digest;
    return --parcel->left == 0;
}

/* ---- What each engine can do next; each returns whether it did something, or failed ---- */

/* Takes over the items that are done, until a piece has all of its items done. Returns that piece's
 * last item, or NULL if no piece is done, or a copy fails. Of the first piece that goes up, sends
 * the parts that are done: the link has nothing else to do yet. */
static const struct item *next_piece_done(struct run *run, enum gpu_status *status)
{
    const struct item *last = NULL;
    if (run->handled == run->known_done)
        run->known_done = crew_done(&run->job);
    while (run->handled < run->known_done) {
        last = &run->item[run->handled++ % CREW_ITEMS];
        if (take_item(last))
            return last;
    }
    if (last && !last->down && run->up.under_way == 0)
        *status = put_early(run, last->parcel, last->part + 1);
    return NULL;
}

/* Sends a piece that is packed, or frees the slot of one that is unpacked. */
static bool handle_piece(struct run *run, enum gpu_status *status)
{
    struct direction *up = &run->up;
    const struct item *item = next_piece_done(run, status);
    if (!item)
        return *status != GPU_OK;
    struct parcel *parcel = item->parcel;
    if (!item->down) {
        up->under_way++;
        *status = put_copy(run, up, parcel);
        return true;
    }
    run->down.ended++;
    if (parcel->copy.host.digest)
        *parcel->copy.host.digest = gpu_digest_join(*parcel->copy.host.digest, parcel->digest);
    run->unpacked += parcel->last;
    if (parcel->last && run->flow->unpacked)
        run->flow->unpacked(run->flow->context, parcel->step);
    return true;
}

/* Returns whether the direction's copy of a piece is known to be done. Each question to the driver
 * takes the calling thread from its other work, so after a no it waits for ASK_MS before the next
 * one. */
static bool is_done(struct direction *d, enum gpu_status *status, const struct parcel *parcel)
{
    const double now = accel_now_ms();
    if (now < d->ask_ms)
        return false;
    const CUresult result = CUDA(cuEventQuery)(parcel->done);
    if (result == CUDA_ERROR_NOT_READY) {
        d->ask_ms = now + ASK_MS;
        return false;
    }
    *status = gpu_check(result, "cuEventQuery");
    return *status == GPU_OK;
}

/* Frees the slot of a piece that is on the device. */
static void end_up(struct run *run)
{
    const struct parcel *parcel = &run->up.parcel[run->up.ended++ % run->up.slots];
    if (parcel->last && run->flow->came_up)
        run->flow->came_up(run->flow->context, parcel->step);
}

/* Lets a piece be packed if a slot is free. */
static bool feed_up(struct run *run, enum gpu_status *status)
{
    struct direction *up = &run->up;
    while (up->ended < up->under_way &&
           (run->flow->came_up || up->begun - up->ended == up->slots) &&
           is_done(up, status, &up->parcel[up->ended % up->slots]))
        end_up(run);
    if (*status != GPU_OK || up->begun - up->ended == up->slots)
        return *status != GPU_OK;
    if (!up->step || up->piece == up->pieces) {
        const struct schedule_step *step = next_step(run, UP);
        if (!step)
            return false;
        begin_copy(run, up, step);
    }
    if (!has_room(run, &up->copy, up->piece_bytes))
        return false;
    open_items(run, false, next_parcel(up));
    return true;
}

/* Returns whether one more kernel on its stream would take the event that the next download has to
 * wait for. Kernels are there long before they run: a download that waited for the last of them
 * would come behind all of them. */
static bool is_far_ahead(const struct run *run)
{
    const struct schedule *s = run->flow->schedule;
    const int next = run->next[DOWN];
    const int32_t awaited = next < s->count ? s->step[next].after[COMPUTE] : 0;
    return awaited > 0 && run->put[COMPUTE] >= awaited + LANE_STEPS - 1;
}

/* Puts the lane on the stream to which a kernel goes. */
static enum gpu_status choose_side(const struct run *run, const struct schedule_step *step)
{
    if (run->beside && schedule_goes_beside(run->flow->schedule, step->i, step->j))
        return lane_go_beside(run->lane);
    return lane_go_back(run->lane);
}

static bool feed_compute(struct run *run, enum gpu_status *status)
{
    const struct schedule_step *step = is_far_ahead(run) ? NULL : next_step(run, COMPUTE);
    if (!step)
        return false;
    find_next(run, COMPUTE, run->next[COMPUTE] + 1);
    *status = choose_side(run, step);
    if (*status == GPU_OK)
        *status = await_others(run, step);
    if (*status == GPU_OK)
        *status = run->flow->compute(run->flow->context, step);
    if (*status == GPU_OK)
        *status = end_step(run, COMPUTE);
    return true;
}

/* Begins the next download, if its cell is finished, and the memory for what it overwrites is no
 * longer used. */
static bool begin_down(struct run *run, enum gpu_status *status)
{
    struct direction *down = &run->down;
    const struct schedule_step *step = next_step(run, DOWN);
    if (!step || (run->flow->old[0] && down->ended < run->ends[run->downs % 2]))
        return false;
    if (run->downs == 0 && run->flow->may_leave)
        *status = run->flow->may_leave(run->flow->context);
    if (*status != GPU_OK)
        return false;
    begin_copy(run, down, step);
    run->ends[run->downs++ % 2] = down->begun + down->pieces;
    return true;
}

/* Sends for a piece of a finished cell if a slot is free. */
static bool feed_down(struct run *run, enum gpu_status *status)
{
    struct direction *down = &run->down;
    if (down->begun - down->ended == down->slots)
        return false;
    if ((!down->step || down->piece == down->pieces) && !begin_down(run, status))
        return *status != GPU_OK;
    struct parcel *parcel = next_parcel(down);
    char *old = run->flow->old[(run->downs - 1) % 2];
    if (old)
        parcel->old = old + pack_offset(&parcel->piece, &down->copy.host, down->copy.host.rows);
    *status = put_copy(run, down, parcel);
    down->begun -= *status != GPU_OK; /* it does not arrive */
    return true;
}

/* Lets a piece that has arrived be unpacked: from now on it is certain to be written. */
static void take_arrived(struct run *run)
{
    struct flow *flow = run->flow;
    struct direction *down = &run->down;
    struct parcel *parcel = &down->parcel[down->under_way++ % down->slots];
    const struct lane_rectangle *to = &parcel->copy.host;
    const struct pack_piece *piece = &parcel->piece;
    const bool whole = pack_ends_columns(to, piece);
    open_items(run, true, parcel);
    flow->written += parcel->last;
    if (parcel->last)
        flow->arrived(flow->context, parcel->step);
    flow->done_cols = parcel->last ? 0 : piece->col + (whole ? piece->cols : 0);
    flow->done_rows = parcel->last || whole ? 0 : piece->row + piece->rows;
}

static bool look_down(struct run *run, enum gpu_status *status)
{
    struct direction *down = &run->down;
    const struct parcel *parcel = &down->parcel[down->under_way % down->slots];
    if (down->under_way == down->begun || !has_room(run, &parcel->copy, parcel->piece_bytes))
        return false;
    if (!is_done(down, status, parcel))
        return *status != GPU_OK;
    take_arrived(run);
    return true;
}

/* ---- The whole ---- */

/* Waits for a thread of the crew, or for a copy: an upload if a slot is wanted for the next one. */
static enum gpu_status wait_for_any(struct run *run)
{
    struct direction *up = &run->up, *down = &run->down;
    const bool flies_down = down->under_way < down->begun;
    enum gpu_status status;
    if (run->handled < run->items) {
        crew_attend(&run->job, run->handled + 1);
        return GPU_OK;
    }
    if (run->flow->came_up && up->ended < up->under_way) {
        status = GPU_OK;
        up->ask_ms = 0; /* others wait for what has come up */
        if (is_done(up, &status, &up->parcel[up->ended % up->slots]))
            end_up(run);
        if (status != GPU_OK || up->ask_ms == 0)
            return status;
    }
    if (run->flow->came_up &&
        (up->ended < up->under_way || run->put[UP] < run->flow->schedule->steps[UP]))
        return run->flow->wait(run->flow->context) ? GPU_OK : GPU_UNSUPPORTED;
    if (up->ended < up->under_way && (up->begun - up->ended == up->slots || !flies_down)) {
        status = GPU_CHECK_FINAL(cuEventSynchronize, up->parcel[up->ended % up->slots].done);
        if (status == GPU_OK)
            end_up(run);
        return status;
    }
    if (!flies_down && run->flow->wait)
        return run->flow->wait(run->flow->context) ? GPU_OK : GPU_UNSUPPORTED;
    if (!flies_down)
        return GPU_ERROR; /* the schedule cannot go on */
    status = GPU_CHECK_FINAL(cuEventSynchronize, down->parcel[down->under_way % down->slots].done);
    if (status == GPU_OK)
        take_arrived(run);
    return status;
}

static enum gpu_status run_steps(struct run *run)
{
    const struct schedule *s = run->flow->schedule;
    enum gpu_status status = GPU_OK;
    while (status == GPU_OK &&
           (run->put[COMPUTE] < s->steps[COMPUTE] || run->put[DOWN] < s->steps[DOWN] ||
            run->down.ended < run->down.begun)) {
        /* Finished items come first. Then the crew gets work, as to start a kernel may take long;
         * then kernels: their cells are on their way. */
        if (feed_down(run, &status) || feed_up(run, &status) || feed_compute(run, &status) ||
            handle_piece(run, &status) || look_down(run, &status))
            continue;
        status = wait_for_any(run);
    }
    /* The downloads have waited for all that has come up. */
    while (status == GPU_OK && run->flow->came_up && run->up.ended < run->up.under_way)
        end_up(run);
    return status;
}

/* After a failure: what was finished before, and is on its way down, still arrives. */
static void take_rest(struct run *run)
{
    struct direction *down = &run->down;
    while (down->under_way < down->begun &&
           GPU_CHECK_FINAL(cuEventSynchronize, down->parcel[down->under_way % down->slots].done) ==
               GPU_OK) {
        crew_finish(&run->job, run->items); /* so there is room */
        take_arrived(run);
    }
}

static enum gpu_status run_flow(struct run *run)
{
    enum gpu_status status = lane_wait(run->lane);
    if (status == GPU_OK)
        status = count_beside(run);
    if (status == GPU_OK)
        status = make_streams(run->lane, run->beside);
    if (status == GPU_OK)
        status = divide_ring(run);
    if (status != GPU_OK)
        return status;
    for (int e = 0; e < SCHEDULE_ENGINES; e++)
        find_next(run, e, 0);
    run->helped = crew_begin(&run->job, true) > 0;
    status = run_steps(run);
    /* The call may run again, or go on with cuBLAS: not on a stream that the lane has not. */
    if (lane_go_back(run->lane) != GPU_OK && status != GPU_LOST)
        status = GPU_ERROR;
    if (status != GPU_OK && status != GPU_LOST)
        take_rest(run);
    crew_finish(&run->job, run->items);
    crew_end(&run->job);
    /* The last download waited for everything; without one, kernels may still run. */
    const bool comes_down = run->flow->schedule->steps[DOWN] > 0;
    if (status == GPU_OK && !comes_down)
        status = GPU_CHECK_FINAL(cuStreamSynchronize, run->up.stream); /* the ring is free then */
    else if (status != GPU_OK &&
             run->flow->came_up) /* or has failed: no copy is left that reads lent memory */
        CUDA(cuStreamSynchronize)(run->up.stream);
    run->lane->quiet = run->lane->quiet || (status == GPU_OK && comes_down);
    run->lane->aside = status != GPU_OK;
    if (status != GPU_OK) { /* the call may run again */
        timing_end(run->lane, run->up.stream, GPU_STEP_UP);
        timing_end(run->lane, run->down.stream, GPU_STEP_DOWN);
    }
    return status;
}

/* The thread's stack may be small. */
enum gpu_status lane_flow(struct gpu_lane *lane, struct flow *flow)
{
    struct run *run = calloc(1, sizeof *run);
    flow->written = 0;
    flow->done_cols = flow->done_rows = 0;
    if (!run)
        return GPU_NO_MEMORY;
    run->lane = lane;
    run->flow = flow;
    run->job.item = do_item;
    run->job.context = run;
    const enum gpu_status status = run_flow(run);
    free(run->beside);
    free(run);
    return status;
}
