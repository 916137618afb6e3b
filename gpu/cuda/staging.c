#define _GNU_SOURCE
#include "base/thread/crew.h"
#include "base/memory/host_memory.h"
#include "check.h"
#include "lane.h"

#include <limits.h>
#include <stdlib.h>

/* ---- Slots ---- */

/* The most copies of one piece each that have no event: to wait for them, wait for the stream. So a
 * call on three small operands needs no event. */
#define UNMARKED_MAX 3

/* Sets *block to pinned memory, unless it is there already. */
static enum gpu_status prepare_block(char **block, int64_t bytes)
{
    void *memory = NULL;
    enum gpu_status status = *block ? GPU_OK : GPU_CHECK(cuMemHostAlloc, &memory, (size_t)bytes, 0);
    if (memory)
        *block = memory;
    return status;
}

enum gpu_status lane_prepare_ring(struct lane_ring *ring, int slots)
{
    enum gpu_status status = prepare_block(&ring->memory, (int64_t)slots * LANE_SLOT_BYTES);
    for (int i = 0; status == GPU_OK && i < slots; i++)
        if (!ring->slot[i].done)
            status = GPU_CHECK(cuEventCreate, &ring->slot[i].done, CU_EVENT_DISABLE_TIMING);
    return status;
}

static bool is_free(const struct gpu_lane *lane, const struct lane_slot *slot)
{
    return slot->copy <= lane->copied;
}

/* Waits until a slot is free. The event of a later copy tells that this one is done, too. */
static enum gpu_status wait_slot(struct gpu_lane *lane, const struct lane_ring *ring,
                                 const struct lane_slot *slot)
{
    const struct lane_slot *marked = NULL;
    if (is_free(lane, slot))
        return GPU_OK;
    for (int i = 0; i < LANE_WIDE_SLOTS; i++) {
        const struct lane_slot *other = &ring->slot[i];
        if (other->marked && other->copy >= slot->copy && (!marked || other->copy < marked->copy))
            marked = other;
    }
    if (!marked)
        return lane_wait(lane);
    enum gpu_status status = GPU_CHECK_FINAL(cuEventSynchronize, marked->done);
    if (status == GPU_OK && marked->copy > lane->copied)
        lane->copied = marked->copy;
    return status;
}

/* ---- A transfer ---- */

/* Threads help with copies of at least this: one thread takes several times as long for it as to
 * wake another up. */
#define HELPED_BYTES (1 << 20)

/* One thread packs a piece of this while the one before is on its way. */
#define ALONE_BYTES (LANE_SLOT_BYTES / 2)

/* A copy of a rectangle to the device or back, in pieces. Threads pack and unpack their parts; the
 * calling one alone uses CUDA. */
struct transfer {
    struct gpu_lane *lane;
    struct lane_rectangle host;
    CUdeviceptr device;
    int64_t device_ld;
    int64_t piece_bytes, count;
    int64_t parts; /* items of a piece: its parts, or 1 */
    int64_t early; /* up: those of the first piece that have been sent before it was packed */
    bool fresh;    /* its pages, to which it writes: see pack_is_fresh() */
    /* Down: the elements, if they are here already; NULL: they go through slots of the ring */
    const char *landed;
    struct lane_ring *ring;
    int first, slots, helpers;
    const struct gpu_cells *cells; /* of a matrix that is digested by them */
    struct gpu_scan seen[CREW_ITEMS];
    struct gpu_key digest[CREW_ITEMS]; /* of the items, in turn */
    struct crew_job job;
};

static int64_t bytes_of(const struct lane_rectangle *r, int64_t device_ld)
{
    const struct pack_piece all = {0, r->cols, 0, r->rows};
    return r->rows > 0 && r->cols > 0 ? pack_bytes(&all, r, device_ld) : 0;
}

static struct pack_piece piece_of(const struct transfer *t, int64_t number)
{
    return pack_piece(&t->host, t->device_ld, t->piece_bytes, number);
}

static int place_of(const struct transfer *t, int64_t number)
{
    return (int)((t->first + number) % t->slots);
}

static struct lane_slot *slot_of(const struct transfer *t, int64_t number)
{
    return &t->ring->slot[place_of(t, number)];
}

static char *memory_of(const struct transfer *t, int64_t number)
{
    return t->ring->memory + (int64_t)place_of(t, number) * LANE_SLOT_BYTES;
}

static int64_t choose_piece(const struct transfer *t)
{
    if (t->host.digest || t->host.trimmed || (!t->lane && t->helpers > 0))
        return pieces_of_matrix(&t->host, t->device_ld);
    return t->helpers > 0
               ? pieces_bytes(&t->host, t->device_ld, PIECES_OF_MATRIX, lane_least_piece(t->lane))
               : ALONE_BYTES;
}

/* Begins the job of a transfer. Its members above piece_bytes are set. */
static void begin_job(struct transfer *t, void (*item)(void *, int64_t))
{
    const int64_t bytes = bytes_of(&t->host, t->device_ld);
    t->job = (struct crew_job){.item = item, .context = t};
    t->helpers = crew_begin(&t->job, bytes >= HELPED_BYTES);
    t->host.streamed = bytes >= LANE_STREAMED_BYTES;
    t->piece_bytes = choose_piece(t);
    t->count = pack_count(&t->host, t->device_ld, t->piece_bytes);
    t->parts = t->lane && t->helpers > 0 && !t->fresh
                   ? pack_parts(&t->host, t->device_ld, t->piece_bytes)
                   : 1;
}

/* Chooses the ring and makes it ready: the wide one if threads help, unless there is no memory for
 * it. */
static enum gpu_status choose_ring(struct transfer *t)
{
    struct gpu_lane *lane = t->lane;
    enum gpu_status status = GPU_NO_MEMORY;
    if (t->helpers > 0) {
        t->ring = &lane->wide;
        t->slots = (int)accel_min(LANE_WIDE_SLOTS, LANE_NARROW_SLOTS + t->helpers);
        status = lane_prepare_ring(t->ring, LANE_WIDE_SLOTS);
    }
    if (status == GPU_NO_MEMORY) {
        t->ring = &lane->narrow;
        t->slots = LANE_NARROW_SLOTS;
        status = lane_prepare_ring(t->ring, LANE_NARROW_SLOTS);
    }
    t->first = t->ring->next;
    return status;
}

/* ---- Items ---- */

/* Returns whether the parts of one more piece have room among the items that are not done yet. */
static bool has_room(const struct transfer *t, int64_t opened, int64_t done)
{
    return (opened - done + 1) * t->parts <= CREW_ITEMS;
}

static struct pack_piece part_of(const struct transfer *t, const struct pack_piece *piece,
                                 int64_t number)
{
    return pack_part(&t->host, t->device_ld, t->piece_bytes, piece, number);
}

/* The parts of an item's piece that are the item's: from *first on, behind the last one *last. */
static void parts_of_item(const struct transfer *t, int64_t item, int64_t *first, int64_t *last)
{
    *first = t->parts > 1 ? item % t->parts : 0;
    *last = t->parts > 1 ? *first + 1 : pack_parts(&t->host, t->device_ld, t->piece_bytes);
}

/* Returns what the item's scan begins with. */
static struct gpu_scan *begin_scan(struct transfer *t, int64_t item)
{
    struct gpu_scan *seen = &t->seen[item % CREW_ITEMS];
    if (t->host.scan)
        *seen = gpu_scan_begin(t->host.scan->is_double);
    return seen;
}

/* Joins the digest of a part that begins at `first` to its item's. A piece has the digest of its
 * parts, one after the other. */
static void digest_part(struct transfer *t, int64_t item, const struct pack_piece *part,
                        const char *first, int64_t ld)
{
    struct gpu_key *digest = &t->digest[item % CREW_ITEMS];
    const struct gpu_key own = pack_digest(&t->host, part, first, ld);
    *digest = t->parts > 1 ? own : gpu_digest_join(*digest, own);
}

/* Returns the digest of a piece whose items are done. */
static struct gpu_key digest_of_piece(const struct transfer *t, int64_t number)
{
    const struct pack_piece piece = piece_of(t, number);
    struct gpu_key digest = {{0, 0}};
    if (t->parts == 1)
        return t->digest[number % CREW_ITEMS];
    for (int64_t i = 0; i < t->parts; i++)
        if (part_of(t, &piece, i).cols > 0)
            digest = gpu_digest_join(digest, t->digest[(number * t->parts + i) % CREW_ITEMS]);
    return digest;
}

/* Returns the digest of a rectangle before its first piece: its shape's. */
static struct gpu_key digest_of_shape(const struct lane_rectangle *r, int64_t device_ld)
{
    const int64_t shape[] = {r->rows, r->cols, r->size, device_ld, r->uplo};
    return gpu_digest_columns((const char *)shape, sizeof shape, 1, sizeof shape);
}

/* Takes over what the items of a piece have seen. They are done. */
static void take_seen(struct transfer *t, int64_t number)
{
    for (int64_t i = 0; t->host.scan && i < t->parts; i++)
        gpu_scan_add(t->host.scan, &t->seen[(number * t->parts + i) % CREW_ITEMS]);
    if (t->host.digest)
        *t->host.digest = gpu_digest_join(*t->host.digest, digest_of_piece(t, number));
}

/* Does so with the pieces below `done`. */
static void take_all_seen(struct transfer *t, int64_t *taken, int64_t done)
{
    for (; *taken < done; ++*taken)
        take_seen(t, *taken);
}

static int64_t pieces_done(struct transfer *t)
{
    return crew_done(&t->job) / t->parts;
}

/* Returns how many parts of the first piece are done, if it has several. */
static int64_t parts_done(struct transfer *t)
{
    return t->parts > 1 ? accel_min(crew_done(&t->job), t->parts) : 0;
}

static void open_pieces(struct transfer *t, int64_t opened)
{
    crew_open(&t->job, opened * t->parts);
}

/* Ends a transfer. So many of its pieces have gone through slots. */
static void end_transfer(struct transfer *t, int64_t pieces)
{
    crew_end(&t->job);
    t->ring->next = place_of(t, pieces);
}

static void begin_copies(struct transfer *t, bool up)
{
    lane_copies(t->lane, t->lane->stream, up ? GPU_STEP_UP : GPU_STEP_DOWN, &t->host,
                pieces_matrix_sent(&t->host, t->device_ld));
}

/* Puts the copies of the first piece's parts on the stream, up to part number `done`: the link has
 * nothing else to do yet. */
static enum gpu_status put_early(struct transfer *t, int64_t done)
{
    const struct pack_piece piece = piece_of(t, 0);
    if (t->early == 0) {
        begin_copies(t, true);
        slot_of(t, 0)->copy = ++t->lane->copies;
        slot_of(t, 0)->marked = false;
    }
    return lane_send_parts(lane_stream(t->lane), &t->host, &piece, t->piece_bytes, memory_of(t, 0),
                           t->device, t->device_ld, &t->early, done);
}

/* Puts the copy of a piece on the stream. marked: with an event of its own. */
static enum gpu_status put_copy(struct transfer *t, int64_t number, bool up, bool marked)
{
    struct gpu_lane *lane = t->lane;
    struct lane_slot *slot = slot_of(t, number);
    const struct pack_piece piece = piece_of(t, number);
    const bool begun = number == 0 && t->early > 0;
    if (number == 0 && !begun)
        begin_copies(t, up);
    enum gpu_status status = begun ? put_early(t, t->parts)
                                   : lane_copy_piece(lane_stream(lane), up, &t->host, &piece,
                                                     memory_of(t, number), t->device, t->device_ld);
    if (number == t->count - 1)
        timing_end(lane, lane->stream, up ? GPU_STEP_UP : GPU_STEP_DOWN);
    slot->copy = ++lane->copies;
    slot->marked = false;
    if (status != GPU_OK || !marked)
        return status;
    status = GPU_CHECK(cuEventRecord, slot->done, lane_stream(lane));
    slot->marked = status == GPU_OK;
    return status;
}

/* ---- Up ---- */

static void pack_item(void *transfer, int64_t item)
{
    struct transfer *t = transfer;
    const int64_t number = item / t->parts;
    const struct pack_piece piece = piece_of(t, number);
    const int64_t ld = pack_slot_ld(&t->host, &piece, t->device_ld);
    struct lane_rectangle from = t->host;
    int64_t first, last;
    parts_of_item(t, item, &first, &last);
    from.scan = from.scan ? begin_scan(t, item) : NULL;
    t->digest[item % CREW_ITEMS] = (struct gpu_key){{0, 0}};
    for (int64_t i = first; i < last; i++) {
        const struct pack_piece part = part_of(t, &piece, i);
        char *to = memory_of(t, number) + pack_part_offset(&from, &piece, &part, ld);
        if (part.cols == 0)
            continue;
        pack_from_host(to, &from, &part, ld);
        if (from.digest) /* of our own copy, to which the program does not write */
            digest_part(t, item, &part, to, ld);
    }
}

/* Returns whether the slot of a piece is free, and on the bus no more. */
static bool look_at_slot(struct transfer *t, int64_t number, enum gpu_status *status)
{
    const struct lane_slot *slot = slot_of(t, number);
    if (is_free(t->lane, slot))
        return true;
    if (!slot->marked)
        return false;
    const CUresult result = CUDA(cuEventQuery)(slot->done);
    if (result == CUDA_ERROR_NOT_READY)
        return false;
    *status = gpu_check(result, "cuEventQuery");
    if (*status == GPU_OK && slot->copy > t->lane->copied)
        t->lane->copied = slot->copy;
    return *status == GPU_OK;
}

/* Lets pieces be packed whose slots are free. */
static bool open_slots(struct transfer *t, int64_t *opened, int64_t sent, enum gpu_status *status)
{
    const int64_t before = *opened;
    while (*opened < t->count && *opened < sent + t->slots && has_room(t, *opened, sent) &&
           look_at_slot(t, *opened, status))
        ++*opened;
    if (*opened > before)
        open_pieces(t, *opened);
    return *opened > before;
}

static enum gpu_status send(struct transfer *t, int64_t number)
{
    const bool marked = t->count > 1 || t->lane->unmarked == UNMARKED_MAX;
    t->lane->unmarked += !marked;
    take_seen(t, number);
    return put_copy(t, number, true, marked);
}

enum gpu_status lane_upload(struct gpu_lane *lane, CUdeviceptr device, int64_t device_ld,
                            const struct lane_rectangle *from)
{
    struct transfer t = {.lane = lane, .host = *from, .device = device, .device_ld = device_ld};
    const bool is_idle = lane->copied == lane->copies; /* as far as is known */
    int64_t opened = 0, sent = 0;
    begin_job(&t, pack_item);
    enum gpu_status status = choose_ring(&t);
    if (t.host.digest)
        *t.host.digest = digest_of_shape(&t.host, t.device_ld);
    while (status == GPU_OK && sent < t.count) {
        if (pieces_done(&t) > sent)
            status = send(&t, sent++);
        else if (open_slots(&t, &opened, sent, &status) || status != GPU_OK)
            continue;
        else if (sent == 0 && is_idle && parts_done(&t) > t.early)
            status = put_early(&t, parts_done(&t));
        else if (opened > sent)
            crew_attend(&t.job, (sent + 1) * t.parts);
        else
            status = wait_slot(t.lane, t.ring, slot_of(&t, sent));
    }
    if (status != GPU_OK && t.early > 0)
        timing_end(lane, lane->stream, GPU_STEP_UP);
    end_transfer(&t, sent);
    return status;
}

/* ---- Without a copy ---- */

/* Looks at the numbers of a piece, if that is asked for. */
static void scan_piece(struct gpu_scan *seen, const struct lane_rectangle *r,
                       const struct pack_piece *piece)
{
    for (int64_t col = 0; r->scan && col < piece->cols; col++) {
        const struct pack_rows rows = pack_rows_of(r, piece, col);
        gpu_scan_numbers(seen, pack_host(r, piece) + (col * r->ld + rows.first) * r->size,
                         (rows.last - rows.first) * r->size);
    }
}

/* Returns the digest of a piece in host memory, and looks at its numbers. */
static struct gpu_key read_piece(const struct lane_rectangle *r, int64_t packed_ld,
                                 int64_t piece_bytes, int64_t number, struct gpu_scan *seen)
{
    const struct pack_piece piece = pack_piece(r, packed_ld, piece_bytes, number);
    const int64_t parts = pack_parts(r, packed_ld, piece_bytes);
    struct gpu_key digest = {{0, 0}};
    for (int64_t i = 0; i < parts; i++) {
        const struct pack_piece part = pack_part(r, packed_ld, piece_bytes, &piece, i);
        if (part.cols > 0)
            digest = gpu_digest_join(digest, pack_digest(r, &part, pack_host(r, &part), r->ld));
    }
    scan_piece(seen, r, &piece);
    return digest;
}

static void digest_item(void *transfer, int64_t number)
{
    struct transfer *t = transfer;
    t->digest[number % CREW_ITEMS] =
        read_piece(&t->host, t->device_ld, t->piece_bytes, number, begin_scan(t, number));
}

/* Digests a cell as lane_flow() does that brings it down, in the pieces of that copy. */
static void digest_cell(void *transfer, int64_t number)
{
    struct transfer *t = transfer;
    const struct lane_rectangle cell = cells_at(&t->host, t->cells, number);
    const int64_t ld = pack_ld(cell.rows, cell.size), bytes = pieces_of_cell(&cell, ld),
                  pieces = pack_count(&cell, ld, bytes);
    struct gpu_scan *seen = begin_scan(t, number);
    struct gpu_key digest = {{0, 0}};
    for (int64_t i = 0; i < pieces; i++)
        digest = gpu_digest_join(digest, read_piece(&cell, ld, bytes, i, seen));
    t->digest[number % CREW_ITEMS] = digest;
}

/* Has the crew do the items of a job that has begun, and joins their digests to t->host.digest. */
static void digest_items(struct transfer *t)
{
    int64_t taken = 0;
    while (taken < t->count) {
        open_pieces(t, accel_min(t->count, taken + CREW_ITEMS));
        crew_finish(&t->job, taken + 1);
        take_all_seen(t, &taken, pieces_done(t));
    }
    crew_end(&t->job);
}

struct gpu_key staging_digest(const struct lane_rectangle *from, int64_t device_ld)
{
    struct gpu_key digest;
    struct transfer t = {.host = *from, .device_ld = device_ld};
    t.host.digest = &digest;
    digest = digest_of_shape(&t.host, t.device_ld);
    begin_job(&t, digest_item);
    digest_items(&t);
    return digest;
}

struct gpu_key staging_digest_cells(const struct lane_rectangle *from,
                                    const struct gpu_cells *cells)
{
    struct gpu_key digest = cells_shape(from, cells);
    struct transfer t = {
        .host = *from, .device_ld = pack_ld(from->rows, from->size), .cells = cells};
    t.host.digest = &digest;
    begin_job(&t, digest_cell);
    t.count = cells_count(from, cells);
    digest_items(&t);
    return digest;
}

/* ---- Down ---- */

static void unpack_item(void *transfer, int64_t item)
{
    struct transfer *t = transfer;
    const int64_t number = item / t->parts;
    const struct pack_piece piece = piece_of(t, number);
    const char *packed =
        t->landed ? t->landed + pack_offset(&piece, &t->host, t->device_ld) : memory_of(t, number);
    const int64_t ld = t->landed ? t->device_ld : pack_slot_ld(&t->host, &piece, t->device_ld);
    int64_t first, last;
    parts_of_item(t, item, &first, &last);
    t->digest[item % CREW_ITEMS] = (struct gpu_key){{0, 0}};
    for (int64_t i = first; i < last; i++) {
        const struct pack_piece part = part_of(t, &piece, i);
        const char *from = packed + pack_part_offset(&t->host, &piece, &part, ld);
        if (part.cols == 0)
            continue;
        pack_to_host(&t->host, &part, from, ld);
        if (t->host.digest)
            digest_part(t, item, &part, from, ld);
    }
}

/* Waits until a piece is in its slot. Nothing is on the stream after the last one. */
static enum gpu_status await(struct transfer *t, int64_t number)
{
    return number == t->count - 1 ? lane_wait(t->lane)
                                  : wait_slot(t->lane, t->ring, slot_of(t, number));
}

/* Returns in *arrived the pieces that have come down, from the first on; they are written. A slot
 * may still hold a piece on its way up: in the stream's order it leaves before another comes
 * down. */
static enum gpu_status bring_down(struct transfer *t, int64_t *arrived)
{
    enum gpu_status status = GPU_OK;
    int64_t asked = 0, taken = 0;
    while (*arrived < t->count) {
        const int64_t written = pieces_done(t);
        take_all_seen(t, &taken, written);
        for (; status == GPU_OK && asked < t->count && asked < written + t->slots; asked++)
            status = put_copy(t, asked, false, asked < t->count - 1);
        if (status != GPU_OK)
            break;
        const bool may_open = asked > *arrived && has_room(t, *arrived, written);
        /* Nothing else can be done while the next piece is on the bus, if all that came before is
         * written. */
        if (may_open && (written == *arrived || *arrived == t->count - 1))
            status = await(t, *arrived);
        else if (!may_open || !look_at_slot(t, *arrived, &status)) {
            if (status == GPU_OK)
                crew_attend(&t->job, (written + 1) * t->parts);
            continue;
        }
        if (status != GPU_OK)
            break;
        open_pieces(t, ++*arrived);
    }
    crew_finish(&t->job, *arrived * t->parts);
    take_all_seen(t, &taken, *arrived);
    return status;
}

enum gpu_status lane_download(struct gpu_lane *lane, const struct lane_rectangle *to,
                              CUdeviceptr device, int64_t device_ld, int64_t *done_cols,
                              int64_t *done_rows)
{
    struct transfer t = {.lane = lane, .host = *to, .device = device, .device_ld = device_ld};
    int64_t arrived = 0;
    *done_cols = *done_rows = 0;
    if (bytes_of(to, device_ld) >= LANE_STREAMED_BYTES)
        t.fresh = pack_is_fresh(to, &(struct pack_piece){.col = to->cols / 2});
    begin_job(&t, unpack_item);
    enum gpu_status status = choose_ring(&t);
    if (t.host.digest)
        *t.host.digest = digest_of_shape(&t.host, t.device_ld);
    if (status == GPU_OK)
        status = bring_down(&t, &arrived);
    if (arrived > 0) {
        const struct pack_piece last = piece_of(&t, arrived - 1);
        const int64_t before = to->backwards ? to->cols - last.col - last.cols : last.col;
        const bool whole = pack_ends_columns(to, &last);
        *done_cols = whole ? before + last.cols : before;
        *done_rows = whole ? 0 : last.row + last.rows;
    }
    end_transfer(&t, arrived);
    return status;
}

/* ---- All or nothing ---- */

/* Sets *landing to pinned memory in which `bytes` bytes can arrive at once, a whole ring; NULL:
 * there is none. */
static enum gpu_status prepare_landing(struct gpu_lane *lane, int64_t bytes, char **landing)
{
    const bool narrow = bytes <= LANE_NARROW_SLOTS * LANE_SLOT_BYTES;
    struct lane_ring *ring = narrow ? &lane->narrow : &lane->wide;
    *landing = NULL;
    if (bytes > LANE_LANDING_BYTES)
        return GPU_OK;
    enum gpu_status status = lane_prepare_ring(ring, narrow ? LANE_NARROW_SLOTS : LANE_WIDE_SLOTS);
    *landing = ring->memory;
    return status == GPU_NO_MEMORY && !narrow ? GPU_OK : status;
}

void staging_unpack(const struct lane_rectangle *to, const void *packed, int64_t packed_ld)
{
    struct transfer t = {.host = *to, .device_ld = packed_ld, .landed = packed};
    int64_t taken = 0;
    if (t.host.digest)
        *t.host.digest = digest_of_shape(&t.host, t.device_ld);
    begin_job(&t, unpack_item);
    while (taken < t.count) {
        open_pieces(&t, accel_min(t.count, taken + CREW_ITEMS));
        crew_finish(&t.job, taken + 1);
        take_all_seen(&t, &taken, pieces_done(&t));
    }
    crew_end(&t.job);
}

/* Downloads through the slots to memory of our own, and copies from there. */
static enum gpu_status download_aside(struct gpu_lane *lane, const struct lane_rectangle *to,
                                      CUdeviceptr device, int64_t device_ld)
{
    int64_t done_cols, done_rows;
    struct lane_rectangle aside = lane_whole(malloc((size_t)(to->rows * to->cols * to->size) + 1),
                                             to->rows, to->cols, to->rows, to->size);
    if (!aside.host)
        return GPU_NO_MEMORY;
    host_memory_prefer_huge(aside.host, to->rows * to->cols * to->size);
    /* Of what comes down, with the device's leading dimension */
    aside.digest = to->uplo ? NULL : to->digest;
    enum gpu_status status = lane_download(lane, &aside, device, device_ld, &done_cols, &done_rows);
    struct lane_rectangle digested = *to;
    digested.digest = NULL;
    if (status == GPU_OK)
        staging_unpack(&digested, aside.host, to->rows);
    free(aside.host);
    return status;
}

enum gpu_status lane_download_whole(struct gpu_lane *lane, const struct lane_rectangle *to,
                                    CUdeviceptr device, int64_t device_ld)
{
    char *landing;
    const int64_t bytes = bytes_of(to, device_ld);
    if (bytes == 0)
        return GPU_OK;
    enum gpu_status status = prepare_landing(lane, bytes, &landing);
    if (status != GPU_OK)
        return status;
    if (!landing)
        return download_aside(lane, to, device, device_ld);
    lane_copies(lane, lane->stream, GPU_STEP_DOWN, to, to->rows * to->cols * to->size);
    status = GPU_CHECK(cuMemcpyDtoHAsync, landing, device, (size_t)bytes, lane_stream(lane));
    timing_end(lane, lane->stream, GPU_STEP_DOWN);
    if (status == GPU_OK)
        status = lane_wait(lane);
    if (status == GPU_OK)
        staging_unpack(to, landing, device_ld);
    return status;
}

enum gpu_status lane_copy(struct gpu_lane *lane, gpu_address to, int64_t to_ld, gpu_address from,
                          int64_t from_ld, int64_t rows, int64_t cols, int64_t size)
{
    const CUDA_MEMCPY2D plane = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
                                 .srcDevice = from,
                                 .srcPitch = (size_t)(from_ld * size),
                                 .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                                 .dstDevice = to,
                                 .dstPitch = (size_t)(to_ld * size),
                                 .WidthInBytes = (size_t)(rows * size),
                                 .Height = (size_t)cols};
    if ((from_ld | to_ld) > INT_MAX / 16) /* CU_DEVICE_ATTRIBUTE_MAX_PITCH */
        return GPU_UNSUPPORTED;
    return GPU_CHECK(cuMemcpy2DAsync, &plane, lane_stream(lane));
}
