#include "migrate.h"

#include <unistd.h>

#include "device.h"

/* Moves whole pages of [first, first + bytes) alone: what lies beside an operand stays with the
 * host. Returns the bytes that are asked for. */
static int64_t move(const struct gpu_work *work, const void *first, int64_t bytes)
{
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    const uintptr_t from = ((uintptr_t)first + page - 1) / page * page;
    const uintptr_t to = ((uintptr_t)first + (uintptr_t)bytes) / page * page;
    if (to <= from ||
        CUDA(cuMemPrefetchAsync)((CUdeviceptr)from, to - from, work->ctx->device->number,
                                 stream_ctx_stream(work->ctx)) != CUDA_SUCCESS)
        return 0;
    return (int64_t)(to - from);
}

static int64_t move_span(const struct gpu_work *work, const struct accel_span *x)
{
    const int64_t batch = work->call->batch;
    int64_t moved = 0;
    if (!x->array)
        return move(work, x->ptr, accel_extent(x, batch));
    for (int64_t i = 0; i < batch; i++)
        moved += move(work, x->array[i], accel_extent(x, 1));
    return moved;
}

void migrate_operands(struct gpu_work *work)
{
    if (!CUDA(cuMemPrefetchAsync))
        return;
    for (int i = 0; i < ACCEL_SPANS; i++) {
        const struct accel_span *x = &work->call->span[i];
        const int64_t moved = x->place == ACCEL_PLACED ? move_span(work, x) : 0;
        if (moved > 0)
            gpu_work_event(work, GPU_EVENT_MIGRATE, x, x->rows, x->cols, moved);
    }
}
