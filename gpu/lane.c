#include "lane.h"

#include "pool.h"

#include <pthread.h>
#include <string.h>

/* More threads than this wait: a stream each would only share the copy engines and the device. */
#define LANES_MAX 8

static struct gpu_lane lanes[LANES_MAX];
/* CHANGING: being made or destroyed, by a thread that does not hold the lock meanwhile. */
static enum { NONE, CHANGING, IDLE, USED } state[LANES_MAX];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t released = PTHREAD_COND_INITIALIZER;

/* ---- Life ---- */

static void destroy(struct gpu_lane *lane)
{
    if (lane->params)
        CUDA(cusolverDnDestroyParams)(lane->params);
    if (lane->cusolver)
        CUDA(cusolverDnDestroy)(lane->cusolver);
    if (lane->cublas)
        CUDA(cublasDestroy_v2)(lane->cublas);
    for (int i = 0; i < LANE_SLOTS; i++)
        if (lane->slot[i].done)
            CUDA(cuEventDestroy)(lane->slot[i].done);
    if (lane->joined)
        CUDA(cuEventDestroy)(lane->joined);
    if (lane->staging)
        CUDA(cuMemFreeHost)(lane->staging);
    if (lane->stream)
        CUDA(cuStreamDestroy)(lane->stream);
    memset(lane, 0, sizeof *lane);
}

/* cublasCreate() answers NOT_INITIALIZED where its own allocations fail, too. */
static enum gpu_status create_cublas(struct gpu_lane *lane)
{
    cublasStatus_t result = CUDA(cublasCreate_v2)(&lane->cublas);
    if (result == CUBLAS_STATUS_NOT_INITIALIZED || result == CUBLAS_STATUS_ALLOC_FAILED) {
        lane->cublas = NULL;
        pool_trim();
        result = CUDA(cublasCreate_v2)(&lane->cublas);
    }
    if (result != CUBLAS_STATUS_SUCCESS)
        lane->cublas = NULL;
    if (result == CUBLAS_STATUS_NOT_INITIALIZED)
        return GPU_NO_MEMORY;
    /* A device that cuBLAS does not know is of no use; it can be lacking for single functions alone. */
    if (result == CUBLAS_STATUS_NOT_SUPPORTED || result == CUBLAS_STATUS_ARCH_MISMATCH)
        result = CUBLAS_STATUS_INTERNAL_ERROR;
    return gpu_check_cublas(result, "cublasCreate");
}

/* Its first use loads kernels, which may want room. */
enum gpu_status lane_use_cusolver(struct gpu_lane *lane)
{
    enum gpu_status status = GPU_OK;
    if (lane->params)
        return GPU_OK;
    if (!cuda_api_open_cusolver())
        return GPU_UNSUPPORTED;
    for (int attempt = 0; !lane->cusolver && attempt < 2; attempt++) {
        cusolverStatus_t result = CUDA(cusolverDnCreate)(&lane->cusolver);
        if (result == CUSOLVER_STATUS_SUCCESS)
            break;
        lane->cusolver = NULL;
        status = result == CUSOLVER_STATUS_NOT_INITIALIZED
                     ? GPU_NO_MEMORY
                     : gpu_check_cusolver(result, "cusolverDnCreate");
        if (status != GPU_NO_MEMORY)
            break;
        pool_trim();
    }
    if (!lane->cusolver)
        return status;
    status = GPU_CHECK_CUSOLVER(cusolverDnSetStream, lane->cusolver, lane->stream);
    if (status == GPU_OK)
        status = GPU_CHECK_CUSOLVER(cusolverDnCreateParams, &lane->params);
    if (status != GPU_OK)
        lane->params = NULL;
    return status;
}

static enum gpu_status create(struct gpu_lane *lane)
{
    enum gpu_status status;
    memset(lane, 0, sizeof *lane);
    if ((status = GPU_CHECK(cuStreamCreate, &lane->stream, CU_STREAM_NON_BLOCKING)) != GPU_OK ||
        (status = GPU_CHECK(cuEventCreate, &lane->joined, CU_EVENT_DISABLE_TIMING)) != GPU_OK ||
        (status = create_cublas(lane)) != GPU_OK ||
        (status = GPU_CHECK_CUBLAS(cublasSetStream_v2, lane->cublas, lane->stream)) != GPU_OK)
        destroy(lane);
    return status;
}

/* The first in a state, or -1. */
static int find_lane(int wanted)
{
    for (int i = 0; i < LANES_MAX; i++)
        if ((int)state[i] == wanted)
            return i;
    return -1;
}

/* Under the lock, which is let go: a handle takes long to make, and other threads may have a lane to take or to give back. */
static enum gpu_status create_unlocked(int at)
{
    state[at] = CHANGING;
    pthread_mutex_unlock(&lock);
    enum gpu_status status = create(&lanes[at]);
    pthread_mutex_lock(&lock);
    state[at] = status == GPU_OK ? IDLE : NONE;
    return status;
}

enum gpu_status lane_acquire(struct gpu_lane **lane)
{
    enum gpu_status status = GPU_OK;
    pthread_mutex_lock(&lock);
    int at;
    for (;;) {
        if ((at = find_lane(IDLE)) >= 0)
            break;
        at = find_lane(NONE);
        if (at >= 0) {
            status = create_unlocked(at);
            /* No room for one more: one of those that are at work will be free. */
            if (status != GPU_NO_MEMORY || (find_lane(USED) < 0 && find_lane(CHANGING) < 0))
                break;
            status = GPU_OK;
            if (find_lane(IDLE) >= 0)
                continue;
        }
        pthread_cond_wait(&released, &lock);
    }
    if (status == GPU_OK) {
        state[at] = USED;
        *lane = &lanes[at];
    } else {
        pthread_cond_broadcast(&released); /* those that wait shall find that out, too */
    }
    pthread_mutex_unlock(&lock);
    return status;
}

void lane_release(struct gpu_lane *lane, bool broken)
{
    pthread_mutex_lock(&lock);
    if (broken) {
        /* Calls on a failed device only fail again, and what was under way may still use the slots.
         */
        memset(lane, 0, sizeof *lane);
    }
    state[lane - lanes] = broken ? NONE : IDLE;
    pthread_cond_signal(&released);
    pthread_mutex_unlock(&lock);
}

void lane_free_idle(void)
{
    int at;
    pthread_mutex_lock(&lock);
    while ((at = find_lane(IDLE)) >= 0) {
        state[at] = CHANGING;
        pthread_mutex_unlock(&lock);
        destroy(&lanes[at]);
        pthread_mutex_lock(&lock);
        state[at] = NONE;
    }
    pthread_cond_broadcast(&released);
    pthread_mutex_unlock(&lock);
}

/* ---- Staging ---- */

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
    enum gpu_status status =
        GPU_CHECK(cuMemHostAlloc, &memory, (size_t)LANE_SLOTS * LANE_SLOT_BYTES, 0);
    if (status == GPU_OK)
        lane->staging = memory;
    return status;
}

static char *slot_memory(struct gpu_lane *lane, int slot)
{
    return lane->staging + (size_t)slot * LANE_SLOT_BYTES;
}

static enum gpu_status wait_slot(struct gpu_lane *lane, int slot)
{
    if (!lane->slot[slot].pending)
        return GPU_OK;
    enum gpu_status status = GPU_CHECK_FINAL(cuEventSynchronize, lane->slot[slot].done);
    if (status == GPU_OK)
        lane->slot[slot].pending = false;
    return status;
}

static enum gpu_status mark_slot(struct gpu_lane *lane, int slot)
{
    enum gpu_status status = GPU_CHECK(cuEventRecord, lane->slot[slot].done, lane->stream);
    lane->slot[slot].pending = status == GPU_OK;
    return status;
}

/* A rectangle goes in pieces that fit a slot: some whole columns, or a part of one that is longer
 * than a slot. On the device a piece is one contiguous run. */
struct piece {
    int64_t col, cols, row, rows;
};

static bool next_piece(struct piece *piece, const struct lane_rectangle *r, int64_t device_ld)
{
    int64_t fit = LANE_SLOT_BYTES / r->size; /* elements */
    int64_t col = piece->col + piece->cols, row = 0;
    if (piece->cols == 1 && piece->row + piece->rows < r->rows) {
        col = piece->col;
        row = piece->row + piece->rows;
    }
    if (col >= r->cols || r->rows == 0)
        return false;
    piece->col = col;
    piece->row = row;
    if (device_ld <= fit) {
        piece->rows = r->rows;
        piece->cols = fit / device_ld < r->cols - col ? fit / device_ld : r->cols - col;
    } else {
        piece->cols = 1;
        piece->rows = fit < r->rows - row ? fit : r->rows - row;
    }
    return true;
}

/* Elements from the first to the last of a piece, as it lies on the device. */
static int64_t piece_length(const struct piece *piece, int64_t device_ld)
{
    return (piece->cols - 1) * device_ld + piece->rows;
}

static CUdeviceptr piece_device(CUdeviceptr device, const struct piece *piece, int64_t device_ld,
                                int64_t size)
{
    return device + (CUdeviceptr)((piece->col * device_ld + piece->row) * size);
}

static char *piece_host(const struct lane_rectangle *r, const struct piece *piece, int64_t col)
{
    return r->host + ((piece->col + col) * r->ld + piece->row) * r->size;
}

/* Of column `col` of a piece: the rows of the piece that are meant. */
struct rows {
    int64_t first, last;
};

static struct rows rows_of(const struct lane_rectangle *r, const struct piece *piece, int64_t col)
{
    int64_t diagonal = piece->col + col - piece->row;
    struct rows rows = {0, piece->rows};
    if (r->uplo == 'U' || r->uplo == 'u')
        rows.last = diagonal + (r->uplo == 'U');
    if (r->uplo == 'L' || r->uplo == 'l')
        rows.first = diagonal + (r->uplo == 'l');
    rows.first = rows.first < 0 ? 0 : rows.first < piece->rows ? rows.first : piece->rows;
    rows.last = rows.last < rows.first    ? rows.first
                : rows.last < piece->rows ? rows.last
                                          : piece->rows;
    return rows;
}

static void pack(char *slot, const struct lane_rectangle *r, const struct piece *piece,
                 int64_t device_ld)
{
    if (r->ld == device_ld && piece->rows == device_ld && !r->uplo) {
        int64_t bytes = piece->cols * piece->rows * r->size;
        memcpy(slot, piece_host(r, piece, 0), (size_t)bytes);
        if (r->scan)
            gpu_scan_numbers(r->scan, slot, bytes);
        return;
    }
    for (int64_t col = 0; col < piece->cols; col++) {
        const struct rows rows = rows_of(r, piece, col);
        char *to = slot + col * device_ld * r->size;
        int64_t bytes = (rows.last - rows.first) * r->size;
        memset(to, 0, (size_t)(rows.first * r->size));
        memcpy(to + rows.first * r->size, piece_host(r, piece, col) + rows.first * r->size,
               (size_t)bytes);
        memset(to + rows.last * r->size, 0, (size_t)((piece->rows - rows.last) * r->size));
        int64_t diagonal = piece->col + col - piece->row;
        if (r->hermitian && diagonal >= rows.first && diagonal < rows.last)
            memset(to + diagonal * r->size + r->size / 2, 0, (size_t)(r->size / 2));
        if (r->scan)
            gpu_scan_numbers(r->scan, to + rows.first * r->size, bytes);
    }
}

static void unpack(const struct lane_rectangle *r, const struct piece *piece, const char *slot,
                   int64_t device_ld)
{
    for (int64_t col = 0; col < piece->cols; col++) {
        const struct rows rows = rows_of(r, piece, col);
        memcpy(piece_host(r, piece, col) + rows.first * r->size,
               slot + (col * device_ld + rows.first) * r->size,
               (size_t)((rows.last - rows.first) * r->size));
    }
}

enum gpu_status lane_upload(struct gpu_lane *lane, CUdeviceptr device, int64_t device_ld,
                            const struct lane_rectangle *from)
{
    struct piece piece = {0};
    enum gpu_status status = prepare_staging(lane);
    while (status == GPU_OK && next_piece(&piece, from, device_ld)) {
        int slot = lane->next;
        lane->next = (slot + 1) % LANE_SLOTS;
        status = wait_slot(lane, slot);
        if (status != GPU_OK)
            break;
        pack(slot_memory(lane, slot), from, &piece, device_ld);
        status = GPU_CHECK(cuMemcpyHtoDAsync, piece_device(device, &piece, device_ld, from->size),
                           slot_memory(lane, slot),
                           (size_t)(piece_length(&piece, device_ld) * from->size), lane->stream);
        if (status == GPU_OK)
            status = mark_slot(lane, slot);
    }
    return status;
}

enum gpu_status lane_download(struct gpu_lane *lane, const struct lane_rectangle *to,
                              CUdeviceptr device, int64_t device_ld, int64_t *done_cols,
                              int64_t *done_rows)
{
    struct piece asked = {0}, written = {0};
    int in_flight = 0, oldest = lane->next;
    bool more = true;
    *done_cols = *done_rows = 0;
    enum gpu_status status = prepare_staging(lane);
    for (int i = 0; status == GPU_OK && i < LANE_SLOTS; i++)
        status = wait_slot(lane, i);
    while (status == GPU_OK) {
        while (status == GPU_OK && in_flight < LANE_SLOTS &&
               (more = more && next_piece(&asked, to, device_ld))) {
            int slot = (oldest + in_flight) % LANE_SLOTS;
            status = GPU_CHECK(cuMemcpyDtoHAsync, slot_memory(lane, slot),
                               piece_device(device, &asked, device_ld, to->size),
                               (size_t)(piece_length(&asked, device_ld) * to->size), lane->stream);
            if (status == GPU_OK)
                status = mark_slot(lane, slot);
            in_flight += status == GPU_OK;
        }
        if (status != GPU_OK || in_flight == 0)
            break;
        status = wait_slot(lane, oldest);
        if (status != GPU_OK)
            break;
        next_piece(&written, to, device_ld); /* the same pieces in the same order */
        unpack(to, &written, slot_memory(lane, oldest), device_ld);
        bool whole = written.row + written.rows == to->rows;
        *done_cols = whole ? written.col + written.cols : written.col;
        *done_rows = whole ? 0 : written.row + written.rows;
        oldest = (oldest + 1) % LANE_SLOTS;
        in_flight--;
    }
    lane->next = oldest;
    return status;
}

/* While another stream captures, nothing can be put on the default stream, and to try it would break the
 * capture; this question does not (CUDA driver API, cuStreamIsCapturing). */
bool lane_default_stream_is_closed(void)
{
    CUstreamCaptureStatus capture;
    return CUDA(cuStreamIsCapturing) && CUDA(cuStreamIsCapturing)(CU_STREAM_LEGACY, &capture) ==
                                            CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
}

enum gpu_status lane_join_default_stream(struct gpu_lane *lane)
{
    if (lane_default_stream_is_closed())
        return GPU_OK;
    enum gpu_status status = GPU_CHECK(cuEventRecord, lane->joined, CU_STREAM_LEGACY);
    return status == GPU_OK ? GPU_CHECK(cuStreamWaitEvent, lane->stream, lane->joined, 0) : status;
}
