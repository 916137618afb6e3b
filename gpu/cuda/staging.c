#define _GNU_SOURCE
#include "base/memory/host_memory.h"
#include "check.h"
#include "gpu/pack/pack_job.h"
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

/* A copy of a rectangle to the device or back, in pieces. Threads pack and unpack their parts; the
 * calling one alone uses CUDA. */
struct transfer {
    struct pack_job pack; /* first: items get a pointer to it */
    struct gpu_lane *lane;
    CUdeviceptr device;
    int64_t early; /* up: parts of the first piece that have been sent before it was packed */
    struct lane_ring *ring;
    int first, slots;
};

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

/* Chooses the ring and makes it ready: the wide one if threads help, unless there is no memory for
 * it. */
static enum gpu_status choose_ring(struct transfer *t)
{
    struct gpu_lane *lane = t->lane;
    enum gpu_status status = GPU_NO_MEMORY;
    if (t->pack.helpers > 0) {
        t->ring = &lane->wide;
        t->slots = (int)accel_min(LANE_WIDE_SLOTS, LANE_NARROW_SLOTS + t->pack.helpers);
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

/* Ends a transfer. So many of its pieces have gone through slots. */
static void end_transfer(struct transfer *t, int64_t pieces)
{
    crew_end(&t->pack.job);
    t->ring->next = place_of(t, pieces);
}

static void begin_copies(struct transfer *t, bool up)
{
    lane_copies(t->lane, t->lane->stream, up ? GPU_STEP_UP : GPU_STEP_DOWN, &t->pack.host,
                pieces_matrix_sent(&t->pack.host, t->pack.device_ld));
}

/* Puts the copies of the first piece's parts on the stream, up to part number `done`: the link has
 * nothing else to do yet. */
static enum gpu_status put_early(struct transfer *t, int64_t done)
{
    const struct pack_piece piece = pack_job_piece(&t->pack, 0);
    if (t->early == 0) {
        begin_copies(t, true);
        slot_of(t, 0)->copy = ++t->lane->copies;
        slot_of(t, 0)->marked = false;
    }
    return lane_send_parts(lane_stream(t->lane), &t->pack.host, &piece, t->pack.piece_bytes,
                           memory_of(t, 0), t->device, t->pack.device_ld, &t->early, done);
}

/* Puts the copy of a piece on the stream. marked: with an event of its own. */
static enum gpu_status put_copy(struct transfer *t, int64_t number, bool up, bool marked)
{
    struct gpu_lane *lane = t->lane;
    struct lane_slot *slot = slot_of(t, number);
    const struct pack_piece piece = pack_job_piece(&t->pack, number);
    const bool begun = number == 0 && t->early > 0;
    if (number == 0 && !begun)
        begin_copies(t, up);
    enum gpu_status status =
        begun ? put_early(t, t->pack.parts)
              : lane_copy_piece(lane_stream(lane), up, &t->pack.host, &piece, memory_of(t, number),
                                t->device, t->pack.device_ld);
    if (number == t->pack.count - 1)
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
    pack_job_pack(&t->pack, item, memory_of(t, item / t->pack.parts));
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
    while (*opened < t->pack.count && *opened < sent + t->slots &&
           pack_job_has_room(&t->pack, *opened, sent) && look_at_slot(t, *opened, status))
        ++*opened;
    if (*opened > before)
        pack_job_open(&t->pack, *opened);
    return *opened > before;
}

static enum gpu_status send(struct transfer *t, int64_t number)
{
    const bool marked = t->pack.count > 1 || t->lane->unmarked == UNMARKED_MAX;
    t->lane->unmarked += !marked;
    pack_job_take_seen(&t->pack, number);
    return put_copy(t, number, true, marked);
}

enum gpu_status lane_upload(struct gpu_lane *lane, CUdeviceptr device, int64_t device_ld,
                            const struct lane_rectangle *from)
{
    struct transfer t = {
        .pack = {.host = *from, .device_ld = device_ld}, .lane = lane, .device = device};
    const bool is_idle = lane->copied == lane->copies; /* as far as is known */
    int64_t opened = 0, sent = 0;
    pack_job_begin(&t.pack, pack_item, lane_least_piece(lane));
    enum gpu_status status = choose_ring(&t);
    pack_job_digest_shape(&t.pack);
    while (status == GPU_OK && sent < t.pack.count) {
        if (pack_job_done(&t.pack) > sent)
            status = send(&t, sent++);
        else if (open_slots(&t, &opened, sent, &status) || status != GPU_OK)
            continue;
        else if (sent == 0 && is_idle && pack_job_parts_done(&t.pack) > t.early)
            status = put_early(&t, pack_job_parts_done(&t.pack));
        else if (opened > sent)
            crew_attend(&t.pack.job, (sent + 1) * t.pack.parts);
        else
            status = wait_slot(t.lane, t.ring, slot_of(&t, sent));
    }
    if (status != GPU_OK && t.early > 0)
        timing_end(lane, lane->stream, GPU_STEP_UP);
    end_transfer(&t, sent);
    return status;
}

/* ---- Down ---- */

static void unpack_item(void *transfer, int64_t item)
{
    struct transfer *t = transfer;
    pack_job_unpack(&t->pack, item, memory_of(t, item / t->pack.parts));
}

/* Waits until a piece is in its slot. Nothing is on the stream after the last one. */
static enum gpu_status await(struct transfer *t, int64_t number)
{
    return number == t->pack.count - 1 ? lane_wait(t->lane)
                                       : wait_slot(t->lane, t->ring, slot_of(t, number));
}

/* Returns in *arrived the pieces that have come down, from the first on; they are written. A slot
 * may still hold a piece on its way up: in the stream's order it leaves before another comes
 * down. */
static enum gpu_status bring_down(struct transfer *t, int64_t *arrived)
{
    enum gpu_status status = GPU_OK;
    int64_t asked = 0, taken = 0;
    while (*arrived < t->pack.count) {
        const int64_t written = pack_job_done(&t->pack);
        pack_job_take_all_seen(&t->pack, &taken, written);
        for (; status == GPU_OK && asked < t->pack.count && asked < written + t->slots; asked++)
            status = put_copy(t, asked, false, asked < t->pack.count - 1);
        if (status != GPU_OK)
            break;
        const bool may_open = asked > *arrived && pack_job_has_room(&t->pack, *arrived, written);
        /* Nothing else can be done while the next piece is on the bus, if all that came before is
         * written. */
        if (may_open && (written == *arrived || *arrived == t->pack.count - 1))
            status = await(t, *arrived);
        else if (!may_open || !look_at_slot(t, *arrived, &status)) {
            if (status == GPU_OK)
                crew_attend(&t->pack.job, (written + 1) * t->pack.parts);
            continue;
        }
        if (status != GPU_OK)
            break;
        pack_job_open(&t->pack, ++*arrived);
    }
    crew_finish(&t->pack.job, *arrived * t->pack.parts);
    pack_job_take_all_seen(&t->pack, &taken, *arrived);
    return status;
}

enum gpu_status lane_download(struct gpu_lane *lane, const struct lane_rectangle *to,
                              CUdeviceptr device, int64_t device_ld, int64_t *done_cols,
                              int64_t *done_rows)
{
    struct transfer t = {
        .pack = {.host = *to, .device_ld = device_ld}, .lane = lane, .device = device};
    int64_t arrived = 0;
    *done_cols = *done_rows = 0;
    if (pack_matrix_bytes(to, device_ld) >= PACK_STREAMED_BYTES)
        t.pack.fresh = pack_is_fresh(to, &(struct pack_piece){.col = to->cols / 2});
    pack_job_begin(&t.pack, unpack_item, lane_least_piece(lane));
    enum gpu_status status = choose_ring(&t);
    pack_job_digest_shape(&t.pack);
    if (status == GPU_OK)
        status = bring_down(&t, &arrived);
    if (arrived > 0) {
        const struct pack_piece last = pack_job_piece(&t.pack, arrived - 1);
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
        pack_matrix_unpack(&digested, aside.host, to->rows);
    free(aside.host);
    return status;
}

enum gpu_status lane_download_whole(struct gpu_lane *lane, const struct lane_rectangle *to,
                                    CUdeviceptr device, int64_t device_ld)
{
    char *landing;
    const int64_t bytes = pack_matrix_bytes(to, device_ld);
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
        pack_matrix_unpack(to, landing, device_ld);
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
