#include "flow.h"

static enum gpu_status copy_up(const struct gpu_copies *copies, struct gpu_lane *lane,
                               struct flow *flow, const struct schedule_step *step)
{
    struct flow_copy copy;
    flow->copy_of(flow->context, step, &copy);
    const enum gpu_status status = copies->upload(lane, copy.device, copy.device_ld, &copy.host);
    if (status == GPU_OK && flow->came_up)
        flow->came_up(flow->context, step);
    return status;
}

static enum gpu_status copy_down(const struct gpu_copies *copies, struct gpu_lane *lane,
                                 struct flow *flow, const struct schedule_step *step)
{
    struct flow_copy copy;
    enum gpu_status status = GPU_OK;
    if (flow->written == 0 && flow->may_leave)
        status = flow->may_leave(flow->context);
    if (status != GPU_OK)
        return status;
    flow->copy_of(flow->context, step, &copy);
    const struct pack_piece all = {0, copy.host.cols, 0, copy.host.rows};
    char *old = flow->old[flow->written % 2];
    if (old)
        pack_from_host(old, &copy.host, &all, copy.host.rows);
    status = flow->all_or_nothing
                 ? copies->download_whole(lane, &copy.host, copy.device, copy.device_ld)
                 : copies->download(lane, &copy.host, copy.device, copy.device_ld, &flow->done_cols,
                                    &flow->done_rows);
    if (status != GPU_OK)
        return status;
    flow->written++;
    flow->done_cols = flow->done_rows = 0;
    flow->arrived(flow->context, step);
    if (flow->unpacked)
        flow->unpacked(flow->context, step);
    return GPU_OK;
}

enum gpu_status flow_in_order(const struct gpu_copies *copies, struct gpu_lane *lane,
                              struct flow *flow)
{
    const struct schedule *s = flow->schedule;
    enum gpu_status status = GPU_OK;
    flow->written = 0;
    flow->done_cols = flow->done_rows = 0;
    for (int n = 0; status == GPU_OK && n < s->count; n++) {
        const struct schedule_step *step = &s->step[n];
        status = step->engine == SCHEDULE_UP     ? copy_up(copies, lane, flow, step)
                 : step->engine == SCHEDULE_DOWN ? copy_down(copies, lane, flow, step)
                                                 : flow->compute(flow->context, step);
    }
    return status;
}
