/*
 * Copies host memory up to the device and back, through a lane's rings of pinned slots.
 *
 * The device never reads or writes the caller's host memory by itself: the calling thread and the
 * copy pool (base/thread/copy_pool.h) pack columns into slots, or unpack them from slots that have
 * arrived. So a copy that fails has not half overwritten anything, and no copy is pending on the
 * caller's memory after the call.
 */
#ifndef ACCEL_STAGING_H
#define ACCEL_STAGING_H

#include "gpu/pack/cells.h"
#include "gpu/pack/chunks.h"
#include "gpu.h"

/* A stream of a device, with its pinned slots. */
struct gpu_lane;

struct pipeline_job; /* pipeline_job.h */

struct gpu_copies {
    /* Waits until the stream is done, and those of a schedule that nothing waited for. Does not
     * call the driver if nothing has been put on them since the last wait. */
    enum gpu_status (*wait)(struct gpu_lane *lane);

    /* Makes the lane ready for the steps of solver.h. Returns GPU_UNSUPPORTED if there is no
     * solver, or it has failed to start before. The caller must not hold a lock that the freeing of
     * idle lanes or memory takes. */
    enum gpu_status (*use_solver)(struct gpu_lane *lane);

    /* Copies a rectangle to device memory with leading dimension device_ld, in stream order.
     * Returns when the host memory has been read. */
    enum gpu_status (*upload)(struct gpu_lane *lane, gpu_address device, int64_t device_ld,
                              const struct lane_rectangle *from);

    /* Copies device memory to a rectangle, in stream order. Returns when the rectangle is written;
     * to->digest is then the one that upload() would give for it, of what has come down. On a
     * failure, *done_cols whole columns and *done_rows rows of the next have been written; nothing
     * else has been touched. */
    enum gpu_status (*download)(struct gpu_lane *lane, const struct lane_rectangle *to,
                                gpu_address device, int64_t device_ld, int64_t *done_cols,
                                int64_t *done_rows);

    /* Does the same, digest and all, all or nothing: on a failure, nothing has been touched. Only
     * the bytes from the first to the last element come down; a large rectangle costs memory of its
     * own. */
    enum gpu_status (*download_whole)(struct gpu_lane *lane, const struct lane_rectangle *to,
                                      gpu_address device, int64_t device_ld);

    /* Copies between two places in device memory, in stream order. Returns GPU_UNSUPPORTED if a
     * leading dimension is too large. */
    enum gpu_status (*copy)(struct gpu_lane *lane, gpu_address to, int64_t to_ld, gpu_address from,
                            int64_t from_ld, int64_t rows, int64_t cols, int64_t size);

    /* Returns when the results are written, or on a failure, when nothing more is written. If
     * nothing comes down, returns when all has come up, and kernels may still run. */
    enum gpu_status (*pipeline)(struct gpu_lane *lane, struct pipeline_job *pipeline);
};

#endif
