#include "small.h"

#include <stdatomic.h>

#include "dispatch/cost/model.h"
#include "ops/op.h"
#include "call/shape.h"

static uint64_t find_gate(void)
{
    const struct model_rates cpu = model_cpu_rates(1);
    uint64_t n = 1;
    for (;; n *= 2) {
        double size = 2 * (double)n, elements = size * size, bytes = 16 * elements;
        double cpu_ms = 8 * size * elements / cpu.gflops[ACCEL_COMPLEX128] * 1e-6;
        double gpu_ms = MODEL_LAUNCH_MS + 4 * bytes / MODEL_COPY_GBPS * 1e-6;
        if (cpu_ms >= gpu_ms)
            return n;
    }
}

uint64_t small_gate(void)
{
    static _Atomic uint64_t gate;
    uint64_t known = atomic_load_explicit(&gate, memory_order_relaxed);
    if (!known) {
        known = find_gate();
        atomic_store_explicit(&gate, known, memory_order_relaxed);
    }
    return known;
}

bool small_is_size(int64_t size)
{
    return (uint64_t)size < small_gate();
}

bool small_is(const struct accel_call *call)
{
    const struct accel_op *op = call->op;
    if (op->foreign)
        return op->foreign->count_at && op->cost->sizes(call)[0] < call->routine->small;
    return shape_is_small(call, small_is_size);
}

bool small_is_negligible(const struct accel_call *call)
{
    double sum = accel_flops(call);
    if (call->batch != 1)
        return false;
    for (int i = 0; i < ACCEL_SPANS; i++)
        sum += (double)call->span[i].rows * (double)call->span[i].cols * 8;
    return sum * 1e-6 < MODEL_LAUNCH_MS / 2 && sum >= 0;
}
