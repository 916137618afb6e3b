/* Copies, and schedules one step after the other. */
#include <string.h>

#include "gpu/device/pipeline_job.h"
#include "gpu/pack/matrix.h"
#include "host_device.h"

static enum gpu_status wait(struct gpu_lane *lane)
{
    (void)lane;
    return GPU_OK;
}

static enum gpu_status upload(struct gpu_lane *lane, gpu_address device, int64_t device_ld,
                              const struct lane_rectangle *from)
{
    (void)lane;
    const struct pack_chunk all = {0, from->cols, 0, from->rows};
    pack_from_host((char *)(uintptr_t)device, from, &all, device_ld);
    if (from->digest)
        *from->digest = pack_matrix_digest(from, device_ld);
    return GPU_OK;
}

static enum gpu_status download_whole(struct gpu_lane *lane, const struct lane_rectangle *to,
                                      gpu_address device, int64_t device_ld)
{
    (void)lane;
    const struct pack_chunk all = {0, to->cols, 0, to->rows};
    pack_to_host(to, &all, (char *)(uintptr_t)device, device_ld);
    if (to->digest)
        *to->digest = pack_matrix_digest(to, device_ld);
    return GPU_OK;
}

static enum gpu_status download(struct gpu_lane *lane, const struct lane_rectangle *to,
                                gpu_address device, int64_t device_ld, int64_t *done_cols,
                                int64_t *done_rows)
{
    *done_cols = to->cols;
    *done_rows = 0;
    return download_whole(lane, to, device, device_ld);
}

static enum gpu_status copy(struct gpu_lane *lane, gpu_address to, int64_t to_ld, gpu_address from,
                            int64_t from_ld, int64_t rows, int64_t cols, int64_t size)
{
    (void)lane;
    for (int64_t j = 0; j < cols; j++)
        memcpy((char *)(uintptr_t)to + j * to_ld * size,
               (char *)(uintptr_t)from + j * from_ld * size, (size_t)(rows * size));
    return GPU_OK;
}

static enum gpu_status pipeline(struct gpu_lane *lane, struct pipeline_job *f)
{
    return pipeline_in_order(&host_copies, lane, f);
}

const struct gpu_copies host_copies = {.wait = wait,
                                       .use_solver = wait,
                                       .upload = upload,
                                       .download = download,
                                       .download_whole = download_whole,
                                       .copy = copy,
                                       .pipeline = pipeline};
