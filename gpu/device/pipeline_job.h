/*
 * Runs a schedule (schedule.h) on a stream context: uploads, kernels and downloads on a stream
 * each, or kernels on two, joined by events. The calling thread and the copy pool
 * (base/thread/copy_pool.h) pack and unpack meanwhile; the calling thread alone uses the device.
 */
#ifndef ACCEL_PIPELINE_JOB_H
#define ACCEL_PIPELINE_JOB_H

#include "gpu/plan/schedule.h"
#include "copies.h"

/* A tile of an operand: in host memory, and packed on the device. */
struct tile_copy {
    struct host_rectangle host;
    struct dmat device;
    /* Another device's memory, from which it comes, packed in the same way; 0: it comes from the
     * host's */
    gpu_address lent;
};

struct pipeline_job {
    /* Its last download waits for all of its kernels, and with them for all of its uploads: when
     * that has come down, nothing is under way. */
    const struct schedule *schedule;
    int64_t result_bytes;
    /* The kernels of schedule_goes_beside() go to a stream of their own, if there is memory for the
     * workspace that the device's BLAS needs there; results come down. So the device has other
     * blocks to compute where a kernel's last ones do not fill it. */
    bool has_sides;
    /* Uploads read what earlier downloads have written: they wait until that is in host memory. */
    bool reads_results;
    void *context;
    /* NULL, or host memory for a tile of the result each: the old values of the tile that comes
     * down are kept in old[], packed by columns of its rows; those of download number n in old[n %
     * 2]. */
    char *old[2];
    /* Describes a step that copies a tile. copy->host.scan may look at what goes up; it has seen a
     * tile before the step that waits for the tile is put on its stream. copy->host.digest: of what
     * comes down; the chunks' digests are joined to what is there. */
    void (*copy_of)(void *context, const struct schedule_step *step, struct tile_copy *copy);
    /* The results of a step have all come down. */
    void (*arrived)(void *context, const struct schedule_step *step);
    /* NULL, or of a pipeline that reads what others write: whether an upload's tile is there by
     * now. It is asked again later. */
    bool (*is_there)(void *context, const struct schedule_step *step);
    /* With is_there: waits until it may say something else. Returns false if that will not be: the
     * pipeline ends with GPU_UNSUPPORTED. */
    bool (*wait)(void *context);
    /* NULL, or: an upload is complete. Others wait for that, and this pipeline perhaps for theirs:
     * as long as uploads are under way, it waits for nothing for longer than `wait` does. */
    void (*came_up)(void *context, const struct schedule_step *step);
    /* NULL, or: a step's results are in host memory. */
    void (*unpacked)(void *context, const struct schedule_step *step);
    /* NULL, or asked once, when the kernels that the first download needs are on the stream:
     * whether results may leave the device. Else the pipeline ends with what it says; nothing has
     * been written. */
    enum gpu_status (*may_leave)(void *context);
    /* Puts the kernels of a step on the call's stream, which may be the one beside. */
    enum gpu_status (*compute)(void *context, const struct schedule_step *step);
    /* Of pipeline_in_order(): a download that fails has written nothing. */
    bool all_or_nothing;
    /* Filled in: how many downloads have been written to host memory, and of the next one, so
     * many whole columns and rows of the column behind them. Nothing else has been touched. */
    int written;
    int64_t done_cols, done_rows;
};

/* Runs a schedule one step after the other, by a device's copies: for one that is a single kernel,
 * and for a device that does not do more at once. Returns what gpu_copies.pipeline() does. */
enum gpu_status pipeline_in_order(const struct gpu_copies *copies, struct stream_ctx *ctx,
                                  struct pipeline_job *pipeline);

#endif
