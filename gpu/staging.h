/*
 * Host memory up to the device and back, through a lane's ring of pinned slots.
 *
 * The device never reads or writes the caller's host memory by itself: a thread of the program packs columns into a
 * slot, or unpacks them from one that has arrived. So a copy that fails has not half overwritten anything, and nothing
 * of ours is pending on the caller's memory after the call.
 */
#ifndef ACCEL_STAGING_H
#define ACCEL_STAGING_H

#include "gpu.h"
#include "pack.h"

/* In device memory. Of the width that all devices' addresses have. */
typedef unsigned long long gpu_address;

/* A stream of a device, with its pinned slots. */
struct gpu_lane;

/* Waits until all that is on the stream is done; without a call of the driver where nothing is. */
enum gpu_status lane_wait(struct gpu_lane *lane);

/* Makes it ready for the steps of solver.h: GPU_UNSUPPORTED where there is no solver, or it has failed to start before. Not under a
 * lock that the freeing of idle lanes or memory takes. */
enum gpu_status lane_use_solver(struct gpu_lane *lane);

/* Copies a rectangle to device memory with leading dimension device_ld, in stream order. Returns
 * when the host memory has been read. */
enum gpu_status lane_upload(struct gpu_lane *lane, gpu_address device, int64_t device_ld,
                            const struct lane_rectangle *from);

/* Copies device memory to a rectangle, after what is on the stream. Returns when it is written. On
 * a failure, *done_rows and *done_cols tell what has been written: done_cols whole columns and
 * done_rows of the next; nothing else has been touched. */
enum gpu_status lane_download(struct gpu_lane *lane, const struct lane_rectangle *to,
                              gpu_address device, int64_t device_ld, int64_t *done_cols,
                              int64_t *done_rows);

/* The same, all or nothing: on a failure, nothing has been touched. Only the bytes from the first to the last element
 * come down, and a large rectangle costs memory of its own. */
enum gpu_status lane_download_whole(struct gpu_lane *lane, const struct lane_rectangle *to,
                                    gpu_address device, int64_t device_ld);

/* Between two places in device memory, in stream order. GPU_UNSUPPORTED where a leading dimension is too large. */
enum gpu_status lane_copy(struct gpu_lane *lane, gpu_address to, int64_t to_ld, gpu_address from,
                          int64_t from_ld, int64_t rows, int64_t cols, int64_t size);

/* Whether a column fits a slot: then what lane_download() has written is whole columns. */
bool lane_column_fits(int64_t device_ld, int64_t size);

#endif
