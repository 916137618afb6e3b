/*
 * One call under way on a stream context of a device. The operations' GPU functions (op->gpu->run
 * and op->gpu->steps) compose it of steps that gpu/ declares, for any kind of device: copies.h,
 * kernels.h, solver.h, and above them level3.h and level2.h. gpu_run() gives back the memory that
 * they take.
 */
#ifndef ACCEL_WORK_H
#define ACCEL_WORK_H

#include "device.h"
#include "copies.h"

#define WORK_BLOCKS 32

/* Speculation: a cached input that a kernel may use before it is validated: until the first result
 * leaves the call's own memory, which device_cache_speculation_holds() must allow. */
struct gpu_speculation {
    bool may; /* Level 3: the call asks before a result leaves the device */
    bool pending;
    /* Somebody has written to it: the call's results are worthless, and it begins anew without
     * speculation */
    bool failed;
    struct accel_span x;
    uint64_t watch;
    struct gpu_edges edges;
};

struct gpu_work {
    const struct accel_call *call;
    struct gpu_host *host;
    struct gpu_device *device;
    struct stream_ctx *ctx;
    gpu_address block[WORK_BLOCKS];
    int blocks;
    int64_t largest; /* size of a product: the workspace of another precision is enough for it */
    struct gpu_speculation speculation;
    /* A kernel is on the stream whose result is not settled yet: see gpu_work_settle() */
    bool launched;
    bool brings; /* an input that other calls may wait for (gpu/cache/arrivals.h) */
};

/* Memory of the device, for calls. */
struct gpu_memory {
    /* Takes device memory for the call. Returns GPU_NO_MEMORY if there is too little,
     * GPU_UNSUPPORTED beyond WORK_BLOCKS blocks. */
    enum gpu_status (*take)(struct gpu_work *work, int64_t bytes, gpu_address *memory);
    /* The same of memory that other devices of the process may read: those for which
     * gpu_peer_gbps() has said so, and until the call gives it back. Returns GPU_UNSUPPORTED, too,
     * if the device has no such memory. cache() does nothing with it. */
    enum gpu_status (*take_lent)(struct gpu_work *work, int64_t bytes, gpu_address *memory);
    /* Puts zeros in device memory, in stream order. */
    enum gpu_status (*zero)(struct gpu_work *work, gpu_address memory, int64_t bytes);

    /* Finds device memory that is cached under a key, for reading, and holds it for this call.
     * Returns false if there is none of so many bytes at least: another process may have told the
     * key of something smaller. */
    bool (*find)(struct gpu_work *work, const struct gpu_key *key, int64_t bytes,
                 gpu_address *memory);
    /* Caches memory that the call has taken, under a key that tells its contents: waits until they
     * are there. It stays until memory is short, or nobody has asked for it for some seconds. */
    enum gpu_status (*cache)(struct gpu_work *work, gpu_address memory, const struct gpu_key *key);

    /* Invalidates what is cached under a key: nobody will ask for it. */
    void (*invalidate)(struct gpu_work *work, const struct gpu_key *key);

    /* Return the bytes that could be taken; free the blocks that other calls have left. */
    int64_t (*available)(const struct gpu_work *work);
    void (*trim)(const struct gpu_work *work);

    /* Gives back what the call has taken, without waiting: nothing uses it. */
    void (*drop)(struct gpu_work *work);
};

static inline const struct gpu_memory *gpu_memory(const struct gpu_work *work)
{
    return work->device->functions->memory;
}

static inline const struct gpu_copies *gpu_copies(const struct gpu_work *work)
{
    return work->device->functions->copies;
}

/* Returns the part of a matrix of the call's type that begins at element (row, col). */
static inline struct dmat dmat_from(const struct gpu_work *work, struct dmat x, int64_t row,
                                    int64_t col)
{
    return dmat_part(x, row, col, (int64_t)accel_dtype_size(work->call->routine->dtype));
}

/* Copies a rectangle up, in stream order; of a triangle, there are zeros beside it then. A trimmed
 * one's zeros are set on the device. */
static inline enum gpu_status gpu_work_upload(struct gpu_work *work, struct dmat to,
                                              const struct host_rectangle *from)
{
    const int64_t bytes = ((from->cols - 1) * to.ld + from->rows) * from->size;
    const enum gpu_status status =
        from->trimmed ? gpu_memory(work)->zero(work, to.ptr, bytes) : GPU_OK;
    return status == GPU_OK ? gpu_copies(work)->upload(work->ctx, to, from) : status;
}

/* Gives back the device memory of a call's part, once its work is done. */
enum gpu_status gpu_work_give_back(struct gpu_work *work);
/* Waits until the results so far are in the program's own memory: that part is finished. */
enum gpu_status gpu_work_settle(struct gpu_work *work);

/* Runs a part of the call by the original. Returns false on a failure. */
bool gpu_work_by_original(const struct gpu_work *work, const struct accel_call *part);

struct scheduled;

/* Describes the work's call for a schedule: as the decision has (host->scheduled), or anew if this
 * is another call. Returns what scheduled_describe() does. */
bool gpu_work_describe(const struct gpu_work *work, struct scheduled *scheduled);

/* Does a step of a thing that keeps its first failure as its status: nothing after one. */
#define GPU_DO(thing, step)                                                                        \
    do {                                                                                           \
        if ((thing)->status == GPU_OK)                                                             \
            (thing)->status = (step);                                                              \
    } while (0)

/* Reports an event, and adds its bytes to the call's; x: NULL if it is of no operand. */
void gpu_work_event(struct gpu_work *work, enum gpu_event_kind kind, const struct accel_span *x,
                    int64_t rows, int64_t cols, int64_t bytes);

#endif
