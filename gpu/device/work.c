#include "work.h"

#include "gpu/plan/scheduled.h"

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
    int64_t *const total[] = {[GPU_EVENT_H2D] = &work->host->up_bytes,
                              [GPU_EVENT_D2H] = &work->host->down_bytes,
                              [GPU_EVENT_PEER] = &work->host->peer_bytes,
                              [GPU_EVENT_CACHED] = &work->host->cached_bytes,
                              [GPU_EVENT_ALLOCATE] = NULL};
    if (total[kind])
        *total[kind] += bytes;
    if (work->host->event)
        work->host->event(work->host->context, &event);
}

enum gpu_status gpu_work_give_back(struct gpu_work *work)
{
    GPU_TRY(gpu_copies(work)->wait(work->ctx));
    gpu_memory(work)->drop(work);
    return GPU_OK;
}

enum gpu_status gpu_work_settle(struct gpu_work *work)
{
    /* On a failure, `launched` stays: the results may be there or not. */
    GPU_TRY(gpu_copies(work)->wait(work->ctx));
    work->launched = false;
    return GPU_OK;
}

bool gpu_work_by_original(const struct gpu_work *work, const struct accel_call *part)
{
    return work->host->original(work->host->context, part);
}
