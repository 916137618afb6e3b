/*
 * Copies host memory up to the device and back, through a stream context's rings of pinned buffers.
 *
 * The device never reads or writes the caller's host memory by itself: the calling thread and the
 * copy pool (base/thread/copy_pool.h) pack columns into buffers, or unpack them from buffers that
 * have arrived. So a copy that fails has not half overwritten anything, and no copy is pending on
 * the caller's memory after the call.
 */
#ifndef GPU_COPIES_H
#define GPU_COPIES_H

#include "gpu/pack/tiles.h"
#include "gpu/pack/chunks.h"
#include "gpu.h"

/* A matrix on a device: its first element, and how many elements after it the next column begins.
 * Who uses it knows its shape and type. A vector is a matrix of one row; its `ld` is BLAS's
 * increment, and may be negative: then its first element is the last in memory. */
struct dmat {
    gpu_address ptr; /* its lowest address */
    int64_t ld;
};

/* Returns a matrix that kernels can use where it is, by gpu_in_place(). */
static inline struct dmat dmat_in_place(const struct accel_span *x)
{
    return (struct dmat){(gpu_address)(uintptr_t)x->ptr, x->ld};
}

/* Returns the part that begins at element (row, col), of elements of `size` bytes. */
static inline struct dmat dmat_part(struct dmat x, int64_t row, int64_t col, int64_t size)
{
    x.ptr += (gpu_address)((row + col * x.ld) * size);
    return x;
}

/* A stream of a device, with its pinned buffers. */
struct stream_ctx;

struct pipeline_job; /* pipeline_job.h */

struct gpu_copies {
    /* Waits until the stream is done, and those of a schedule that nothing waited for. Does not
     * call the driver if nothing has been put on them since the last wait. */
    enum gpu_status (*wait)(struct stream_ctx *ctx);

    /* Makes the stream context ready for the steps of solver.h. Returns GPU_UNSUPPORTED if there is
     * no solver, or it has failed to start before. The caller must not hold a lock that the freeing
     * of idle stream contexts or memory takes. */
    enum gpu_status (*use_solver)(struct stream_ctx *ctx);

    /* Copies a rectangle to device memory, in stream order. Returns when the host memory has been
     * read. */
    enum gpu_status (*upload)(struct stream_ctx *ctx, struct dmat to,
                              const struct host_rectangle *from);

    /* Copies device memory to a rectangle, in stream order. Returns when the rectangle is written;
     * to->digest is then the one that upload() would give for it, of what has come down. On a
     * failure, *done_cols whole columns and *done_rows rows of the next have been written; nothing
     * else has been touched. */
    enum gpu_status (*download)(struct stream_ctx *ctx, const struct host_rectangle *to,
                                struct dmat from, int64_t *done_cols, int64_t *done_rows);

    /* Does the same, digest and all, all or nothing: on a failure, nothing has been touched. Only
     * the bytes from the first to the last element come down; a large rectangle costs memory of its
     * own. */
    enum gpu_status (*download_whole)(struct stream_ctx *ctx, const struct host_rectangle *to,
                                      struct dmat from);

    /* Copies between two places in device memory, in stream order. Returns GPU_UNSUPPORTED if a
     * leading dimension is too large. */
    enum gpu_status (*copy)(struct stream_ctx *ctx, struct dmat to, struct dmat from, int64_t rows,
                            int64_t cols, int64_t size);

    /* Returns when the results are written, or on a failure, when nothing more is written. If
     * nothing comes down, returns when all has come up, and kernels may still run. */
    enum gpu_status (*pipeline)(struct stream_ctx *ctx, struct pipeline_job *pipeline);
};

#endif
