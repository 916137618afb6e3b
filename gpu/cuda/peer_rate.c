/* How fast one device reads another one's lent memory (lent_memory.h), and whether what arrives is
 * right. */
#define _GNU_SOURCE
#include "base/thread/clock.h"
#include "base/thread/forks.h"
#include "device.h"

#include <pthread.h>

#define COPY_BYTES  ((int64_t)32 << 20) /* an eighth of a millisecond at 256 GB/s */
#define LEAST_BYTES ((int64_t)64 << 10)
#define MOST_GBPS   8192.0 /* where copies take no time */
#define AGAIN_MS    10000  /* memory was short */
enum { ATTEMPTS = 4 };     /* the first one warms up */

/* Both ends of the memory are looked at, which differ, and have other bytes before each copy. */
enum { END_BYTES = 4096, SENT = 0xa5, BEFORE = 0x3c };

struct peer_way {
    struct cuda_device *reader, *owner;
    CUdeviceptr from, to;
    int64_t bytes;
    unsigned char *seen; /* pinned: the ends that have arrived */
    CUevent begin, end;
    float best_ms;
    bool is_right;
    bool is_quiet; /* nothing that uses the memory is under way */
};

typedef enum gpu_status way_step(struct peer_way *way);

static enum gpu_status in_context(struct cuda_device *device, way_step *step, struct peer_way *way)
{
    struct gpu_scope scope;
    GPU_TRY(gpu_enter(device, &scope));
    const enum gpu_status status = step(way);
    gpu_leave(&scope);
    return status;
}

static CUdeviceptr last_end(CUdeviceptr memory, const struct peer_way *way)
{
    return memory + (CUdeviceptr)(way->bytes - END_BYTES);
}

static enum gpu_status mark_ends(CUdeviceptr memory, const struct peer_way *way,
                                 unsigned char value, CUstream stream)
{
    GPU_TRY(GPU_CHECK(cuMemsetD8Async, memory, value, END_BYTES, stream));
    return GPU_CHECK(cuMemsetD8Async, last_end(memory, way), (unsigned char)(value + 1), END_BYTES,
                     stream);
}

/* Returns whether nothing is under way any more on a stream, which work has been put on with this
 * status: GPU_OK if that has been waited for. */
static bool is_quiet(CUstream stream, enum gpu_status status)
{
    return status == GPU_OK || GPU_CHECK_FINAL(cuStreamSynchronize, stream) == GPU_OK;
}

/* ---- Of the owner ---- */

static enum gpu_status lend(struct peer_way *way)
{
    struct lent_memory *lending = &way->owner->pool.lending;
    bool grew;
    enum gpu_status status = lent_memory_open_to(lending, way->reader->number);
    if (status == GPU_OK)
        status = pool_get_lent(way->owner, way->bytes, &way->from, &grew);
    if (status == GPU_OK)
        status = mark_ends(way->from, way, SENT, lending->stream);
    if (status == GPU_OK)
        status = GPU_CHECK_FINAL(cuStreamSynchronize, lending->stream);
    way->is_quiet = !way->from || is_quiet(lending->stream, status);
    return status;
}

static enum gpu_status take_back(struct peer_way *way)
{
    pool_put(way->owner, way->from);
    pool_settle(way->owner);
    return GPU_OK;
}

/* ---- Of the reader ---- */

static bool is_all(const unsigned char *byte, unsigned char value)
{
    for (int i = 0; i < END_BYTES; i++)
        if (byte[i] != value)
            return false;
    return true;
}

/* Copies once, and keeps the time if it is the best. */
static enum gpu_status copy_once(struct peer_way *way, CUstream stream, bool counts)
{
    float ms = 0;
    if (gpu_is_gone())
        return GPU_ERROR; /* exit() waits for us */
    GPU_TRY(mark_ends(way->to, way, BEFORE, stream));
    GPU_TRY(GPU_CHECK(cuEventRecord, way->begin, stream));
    GPU_TRY(GPU_CHECK(cuMemcpyDtoDAsync, way->to, way->from, (size_t)way->bytes, stream));
    GPU_TRY(GPU_CHECK(cuEventRecord, way->end, stream));
    GPU_TRY(GPU_CHECK(cuMemcpyDtoHAsync, way->seen, way->to, END_BYTES, stream));
    GPU_TRY(GPU_CHECK(cuMemcpyDtoHAsync, way->seen + END_BYTES, last_end(way->to, way), END_BYTES,
                      stream));
    GPU_TRY(GPU_CHECK_FINAL(cuStreamSynchronize, stream));
    GPU_TRY(GPU_CHECK_FINAL(cuEventElapsedTime, &ms, way->begin, way->end));
    way->is_right =
        way->is_right && is_all(way->seen, SENT) && is_all(way->seen + END_BYTES, SENT + 1);
    if (counts && ms < way->best_ms)
        way->best_ms = ms;
    return GPU_OK;
}

static enum gpu_status copy_all(struct peer_way *way)
{
    const CUstream stream = way->reader->pool.lending.stream;
    void *seen = NULL;
    GPU_TRY(GPU_CHECK(cuMemHostAlloc, &seen, 2 * END_BYTES, 0));
    way->seen = seen;
    GPU_TRY(GPU_CHECK(cuEventCreate, &way->begin, CU_EVENT_DEFAULT));
    GPU_TRY(GPU_CHECK(cuEventCreate, &way->end, CU_EVENT_DEFAULT));
    for (int i = 0; i < ATTEMPTS && way->is_right; i++)
        GPU_TRY(copy_once(way, stream, i > 0));
    return GPU_OK;
}

static void let_go(struct peer_way *way)
{
    if (way->begin)
        CUDA(cuEventDestroy)(way->begin);
    if (way->end)
        CUDA(cuEventDestroy)(way->end);
    if (way->seen && way->is_quiet)
        CUDA(cuMemFreeHost)(way->seen);
}

/* As calls do: the reader's memory is lent, too, where the owner reaches it. */
static enum gpu_status read_lent(struct peer_way *way)
{
    bool grew;
    if (!CUDA(cuEventElapsedTime))
        return GPU_UNSUPPORTED;
    enum gpu_status status = lent_memory_open_to(&way->reader->pool.lending, way->owner->number);
    if (status != GPU_OK && status != GPU_UNSUPPORTED)
        return status;
    GPU_TRY(pool_get_lent(way->reader, way->bytes, &way->to, &grew));
    status = copy_all(way);
    way->is_quiet = is_quiet(way->reader->pool.lending.stream, status);
    let_go(way);
    if (way->is_quiet)
        pool_put(way->reader, way->to);
    pool_settle(way->reader);
    return status;
}

/* ---- Both ---- */

/* The measured memory is small beside what the process may use. */
static int64_t copy_bytes(const struct cuda_device *one, const struct cuda_device *other)
{
    const int64_t least = accel_min(one->budget, other->budget);
    return accel_min(COPY_BYTES, least / 4 / END_BYTES * END_BYTES);
}

static enum gpu_status measure_way(struct peer_way *way)
{
    way->bytes = copy_bytes(way->reader, way->owner);
    if (way->bytes < LEAST_BYTES)
        return GPU_UNSUPPORTED;
    enum gpu_status status = in_context(way->owner, lend, way);
    if (status == GPU_OK)
        status = in_context(way->reader, read_lent, way);
    if (way->from && way->is_quiet)
        in_context(way->owner, take_back, way);
    return status == GPU_OK && !way->is_right ? GPU_UNSUPPORTED : status;
}

static double rounded(double gbps)
{
    const double quarter = 1.189207115002721, three_quarters = 1.681792830507429; /* of a power */
    double power = 1;
    while (2 * power <= gbps)
        power *= 2;
    while (power > gbps)
        power /= 2;
    const double rest = gbps / power;
    return power * (rest < quarter ? 1 : rest < three_quarters ? 1.4142135623730951 : 2);
}

static double rate_of(const struct peer_way *way)
{
    const double megabytes = (double)way->bytes * 1e-6;
    const double ms = (double)way->best_ms;
    return ms * MOST_GBPS > megabytes ? rounded(megabytes / ms) : MOST_GBPS;
}

static pthread_mutex_t measuring = PTHREAD_MUTEX_INITIALIZER; /* one at a time is the true rate */
FORKS_LOCK(measuring);

/* With the lock. A failure here is none of a device's: the next call finds out whether one is
 * broken. */
static struct peer_rate measure_peer(struct cuda_device *reader, struct cuda_device *owner)
{
    struct peer_way way = {.reader = reader, .owner = owner, .best_ms = 1e30f, .is_right = true};
    struct peer_rate rate = {.start = owner->start};
    struct failure outer;
    failure_begin(&outer);
    const enum gpu_status status = measure_way(&way);
    failure_end(&outer);
    if (status == GPU_OK)
        rate.gbps = rate_of(&way);
    else if (status == GPU_NO_MEMORY)
        rate.again = accel_now_ms() + AGAIN_MS;
    return rate;
}

double cuda_peer_gbps(struct gpu_device *reader, struct gpu_device *owner)
{
    struct cuda_device *own = cuda_device_of(reader), *other = cuda_device_of(owner);
    struct peer_rate *known = &own->peer[other->common.info.index % CHOICE_MAX];
    if (cuda_is_dead())
        return 0;
    pthread_mutex_lock(&measuring);
    if (known->start != other->start || (known->again > 0 && accel_now_ms() > known->again))
        *known = measure_peer(own, other);
    const double gbps = known->gbps;
    pthread_mutex_unlock(&measuring);
    return gbps;
}
