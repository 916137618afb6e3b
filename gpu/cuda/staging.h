/*
 * Host memory up to the device and back, through a lane's ring of pinned slots.
 *
 * The device never reads or writes the caller's host memory by itself: a thread of the program packs columns into a
 * slot, or unpacks them from one that has arrived. So a copy that fails has not half overwritten anything, and nothing
 * of ours is pending on the caller's memory after the call.
 */
#ifndef ACCEL_STAGING_H
#define ACCEL_STAGING_H

#include "lane.h"
#include "gpu/pack.h"

/* Copies a rectangle to device memory with leading dimension device_ld, in stream order. Returns
 * when the host memory has been read. */
enum gpu_status lane_upload(struct gpu_lane *lane, CUdeviceptr device, int64_t device_ld,
                            const struct lane_rectangle *from);

/* Copies device memory to a rectangle, after what is on the stream. Returns when it is written. On
 * a failure, *done_rows and *done_cols tell what has been written: done_cols whole columns and
 * done_rows of the next; nothing else has been touched. */
enum gpu_status lane_download(struct gpu_lane *lane, const struct lane_rectangle *to,
                              CUdeviceptr device, int64_t device_ld, int64_t *done_cols,
                              int64_t *done_rows);

/* The same, all or nothing: on a failure, nothing has been touched. Only the bytes from the first to the last element
 * come down, and a rectangle of more than LANE_LANDING_BYTES of them costs memory of its own. */
enum gpu_status lane_download_whole(struct gpu_lane *lane, const struct lane_rectangle *to,
                                    CUdeviceptr device, int64_t device_ld);

/* Whether a column fits a slot: then what lane_download() has written is whole columns. */
static inline bool lane_column_fits(int64_t device_ld, int64_t size)
{
    return device_ld <= LANE_SLOT_BYTES / size;
}

#endif
