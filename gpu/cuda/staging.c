#include "check.h"
#include "lane.h"

#include <limits.h>
#include <stdlib.h>

/* ---- Slots ---- */

/* The most copies of one piece each that have no event: to wait for them, wait for the stream. So a call on three small
 * operands needs no event. */
#define UNMARKED_MAX 3

static enum gpu_status prepare_staging(struct gpu_lane *lane)
{
    void *memory = NULL;
    if (lane->staging)
        return GPU_OK;
    for (int i = 0; i < LANE_SLOTS; i++) {
        if (lane->slot[i].done)
            continue;
        enum gpu_status status =
            GPU_CHECK(cuEventCreate, &lane->slot[i].done, CU_EVENT_DISABLE_TIMING);
        if (status != GPU_OK)
            return status;
    }
    enum gpu_status status = GPU_CHECK(cuMemHostAlloc, &memory, (size_t)LANE_RING_BYTES, 0);
    if (status == GPU_OK)
        lane->staging = memory;
    return status;
}

static char *slot_memory(struct gpu_lane *lane, int slot)
{
    return lane->staging + (size_t)slot * LANE_SLOT_BYTES;
}

/* Waits until a slot is free. Slots are used in turn, so the event of a later one tells that this one is free, too. */
static enum gpu_status wait_slot(struct gpu_lane *lane, int slot)
{
    int marked = 0;
    if (lane->slot[slot].state == LANE_SLOT_FREE)
        return GPU_OK;
    while (marked < LANE_SLOTS &&
           lane->slot[(slot + marked) % LANE_SLOTS].state != LANE_SLOT_MARKED)
        marked++;
    if (marked == LANE_SLOTS)
        return lane_wait(lane);
    enum gpu_status status =
        GPU_CHECK_FINAL(cuEventSynchronize, lane->slot[(slot + marked) % LANE_SLOTS].done);
    for (int i = 0; status == GPU_OK && i <= marked; i++)
        lane->slot[(slot + i) % LANE_SLOTS].state = LANE_SLOT_FREE;
    return status;
}

static enum gpu_status mark_slot(struct gpu_lane *lane, int slot)
{
    enum gpu_status status = GPU_CHECK(cuEventRecord, lane->slot[slot].done, lane_stream(lane));
    lane->slot[slot].state = status == GPU_OK ? LANE_SLOT_MARKED : LANE_SLOT_SENT;
    return status;
}

static bool is_last(const struct pack_piece *piece, const struct lane_rectangle *r)
{
    return piece->row + piece->rows == r->rows &&
           (r->backwards ? piece->col == 0 : piece->col + piece->cols == r->cols);
}

static bool is_whole(const struct pack_piece *piece, const struct lane_rectangle *r)
{
    return piece->rows == r->rows && piece->cols == r->cols;
}

/* ---- Both ways ---- */

enum gpu_status lane_upload(struct gpu_lane *lane, CUdeviceptr device, int64_t device_ld,
                            const struct lane_rectangle *from)
{
    struct pack_piece piece = {0};
    enum gpu_status status = prepare_staging(lane);
    while (status == GPU_OK && pack_next(&piece, from, device_ld, LANE_SLOT_BYTES)) {
        int slot = lane->next;
        lane->next = (slot + 1) % LANE_SLOTS;
        status = wait_slot(lane, slot);
        if (status != GPU_OK)
            break;
        pack_from_host(slot_memory(lane, slot), from, &piece, device_ld);
        status =
            GPU_CHECK(cuMemcpyHtoDAsync, device + (CUdeviceptr)pack_offset(&piece, from, device_ld),
                      slot_memory(lane, slot), (size_t)pack_bytes(&piece, from, device_ld),
                      lane_stream(lane));
        lane->slot[slot].state = LANE_SLOT_SENT;
        if (status == GPU_OK && is_whole(&piece, from) && lane->unmarked < UNMARKED_MAX)
            lane->unmarked++;
        else if (status == GPU_OK)
            status = mark_slot(lane, slot);
    }
    return status;
}

/* A slot may still hold a piece on its way up: in the stream's order it leaves before another comes down. */
enum gpu_status lane_download(struct gpu_lane *lane, const struct lane_rectangle *to,
                              CUdeviceptr device, int64_t device_ld, int64_t *done_cols,
                              int64_t *done_rows)
{
    struct pack_piece asked = {0}, written = {0};
    int in_flight = 0, oldest = lane->next;
    bool more = true;
    *done_cols = *done_rows = 0;
    enum gpu_status status = prepare_staging(lane);
    while (status == GPU_OK) {
        while (status == GPU_OK && in_flight < LANE_SLOTS &&
               (more = more && pack_next(&asked, to, device_ld, LANE_SLOT_BYTES))) {
            int slot = (oldest + in_flight) % LANE_SLOTS;
            status = GPU_CHECK(cuMemcpyDtoHAsync, slot_memory(lane, slot),
                               device + (CUdeviceptr)pack_offset(&asked, to, device_ld),
                               (size_t)pack_bytes(&asked, to, device_ld), lane_stream(lane));
            lane->slot[slot].state = LANE_SLOT_SENT;
            if (status == GPU_OK && !is_last(&asked, to))
                status = mark_slot(lane, slot);
            in_flight += status == GPU_OK;
        }
        if (status != GPU_OK || in_flight == 0)
            break;
        pack_next(&written, to, device_ld, LANE_SLOT_BYTES); /* as for `asked` */
        /* Nothing is on the stream after the last piece. */
        status = is_last(&written, to) ? lane_wait(lane) : wait_slot(lane, oldest);
        if (status != GPU_OK)
            break;
        pack_to_host(to, &written, slot_memory(lane, oldest), device_ld);
        int64_t before = to->backwards ? to->cols - written.col - written.cols : written.col;
        bool whole = written.row + written.rows == to->rows;
        *done_cols = whole ? before + written.cols : before;
        *done_rows = whole ? 0 : written.row + written.rows;
        oldest = (oldest + 1) % LANE_SLOTS;
        in_flight--;
    }
    lane->next = oldest;
    return status;
}

/* ---- All or nothing ---- */

/* Sets *landing to pinned memory in which `bytes` bytes can arrive at once, the ring itself for a few; NULL: there is none. */
static enum gpu_status prepare_landing(struct gpu_lane *lane, int64_t bytes, char **landing)
{
    void *memory = NULL;
    *landing = NULL;
    if (bytes <= LANE_RING_BYTES) {
        enum gpu_status status = prepare_staging(lane);
        *landing = lane->staging;
        return status;
    }
    if (bytes > LANE_LANDING_BYTES)
        return GPU_OK;
    if (!lane->landing) {
        enum gpu_status status = GPU_CHECK(cuMemHostAlloc, &memory, (size_t)LANE_LANDING_BYTES, 0);
        if (status != GPU_OK)
            return status == GPU_NO_MEMORY ? GPU_OK : status;
        lane->landing = memory;
    }
    *landing = lane->landing;
    return GPU_OK;
}

/* Downloads through the slots to memory of our own, and copies from there. */
static enum gpu_status download_aside(struct gpu_lane *lane, const struct lane_rectangle *to,
                                      CUdeviceptr device, int64_t device_ld)
{
    int64_t done_cols, done_rows;
    const struct pack_piece all = {0, to->cols, 0, to->rows};
    struct lane_rectangle aside = lane_whole(malloc((size_t)(to->rows * to->cols * to->size) + 1),
                                             to->rows, to->cols, to->rows, to->size);
    if (!aside.host)
        return GPU_NO_MEMORY;
    enum gpu_status status = lane_download(lane, &aside, device, device_ld, &done_cols, &done_rows);
    if (status == GPU_OK)
        pack_to_host(to, &all, aside.host, to->rows);
    free(aside.host);
    return status;
}

enum gpu_status lane_download_whole(struct gpu_lane *lane, const struct lane_rectangle *to,
                                    CUdeviceptr device, int64_t device_ld)
{
    const struct pack_piece all = {0, to->cols, 0, to->rows};
    char *landing;
    if (to->rows <= 0 || to->cols <= 0)
        return GPU_OK;
    int64_t bytes = pack_bytes(&all, to, device_ld);
    enum gpu_status status = prepare_landing(lane, bytes, &landing);
    if (status != GPU_OK)
        return status;
    if (!landing)
        return download_aside(lane, to, device, device_ld);
    status = GPU_CHECK(cuMemcpyDtoHAsync, landing, device, (size_t)bytes, lane_stream(lane));
    if (status == GPU_OK)
        status = lane_wait(lane);
    if (status == GPU_OK)
        pack_to_host(to, &all, landing, device_ld);
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

bool lane_column_fits(int64_t device_ld, int64_t size)
{
    return device_ld <= LANE_SLOT_BYTES / size;
}
