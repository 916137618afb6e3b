#include "work.h"

#include "gpu/plan/scheduled.h"

struct gpu_tile gpu_tile_from(const struct gpu_work *work, struct gpu_tile tile, int64_t row,
                              int64_t col)
{
    const int64_t size = (int64_t)accel_dtype_size(work->call->routine->dtype);
    tile.ptr += (gpu_address)((row + col * tile.ld) * size);
    return tile;
}

bool gpu_work_describe(const struct gpu_work *work, struct scheduled *scheduled)
{
    const struct scheduled *known = work->host->scheduled;
    if (!known || known->of != work->call)
        return scheduled_describe(work->call, scheduled);
    *scheduled = *known;
    return true;
}

void gpu_work_event(struct gpu_work *work, enum gpu_event_kind kind, const struct accel_span *x,
                    int64_t rows, int64_t cols, int64_t bytes)
{
    const struct gpu_event event = {kind, x ? x->name : NULL, rows, cols, bytes};
    if (work->host->event)
        work->host->event(work->host->context, &event);
}

int64_t gpu_work_room(const struct gpu_work *work, int attempt, int64_t before)
{
    if (attempt == 2)
        gpu_memory(work)->trim(work);
    return attempt == 0  ? before
           : attempt < 3 ? gpu_memory(work)->available(work) / 9 * 8
                         : before / 4 * 3;
}

enum gpu_status gpu_work_give_back(struct gpu_work *work)
{
    enum gpu_status status = gpu_copies(work)->wait(work->lane);
    if (status == GPU_OK)
        gpu_memory(work)->drop(work);
    return status;
}

enum gpu_status gpu_work_settle(struct gpu_work *work)
{
    /* On a failure, `launched` stays: the results may be there or not. */
    enum gpu_status status = gpu_copies(work)->wait(work->lane);
    if (status == GPU_OK)
        work->launched = false;
    return status;
}

bool gpu_work_by_original(const struct gpu_work *work, const struct accel_call *part)
{
    return work->host->original(work->host->context, part);
}
