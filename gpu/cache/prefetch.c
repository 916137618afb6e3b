#include "prefetch.h"

#include "base/memory/write_watch.h"
#include "admission.h"

/* What it costs to begin a watch, measured in pages of 4 KiB: a time, and 10^9 bytes a second. */
#define PROTECT_MS   0.1
#define PROTECT_GBPS 25.0

int gpu_operand_to_prefetch(const struct accel_call *call)
{
    int largest = -1;
    for (int i = 0; call->batch == 1 && i < ACCEL_SPANS; i++)
        if (device_cache_may(call, &call->span[i]) &&
            (largest < 0 || accel_bytes(&call->span[i]) > accel_bytes(&call->span[largest])))
            largest = i;
    return largest;
}

static void begin_watch(const struct accel_span *x)
{
    const struct admission_watch w = {.watch = dirty_tracking_begin(x)};
    if (w.watch)
        admission_watched(x, &w);
    else
        admission_not_watched(x);
}

bool gpu_is_worth_prefetching(const struct accel_call *call, double gain_ms, double upload_ms)
{
    const int operand = gpu_operand_to_prefetch(call);
    uint64_t watch;
    if (operand < 0)
        return false;
    const struct accel_span part = device_cache_part(call, &call->span[operand]), *x = &part;
    const double protect_ms = PROTECT_MS + (double)accel_bytes(x) / PROTECT_GBPS * 1e-6;
    switch (admission_miss(x, gain_ms, protect_ms, upload_ms, &watch)) {
    case ADMISSION_PROTECT:
        begin_watch(x);
        return false;
    case ADMISSION_VALIDATE:
        if (write_watch_unchanged(watch)) {
            admission_unchanged(x, watch);
            return true;
        }
        admission_written(x, watch);
        return false;
    default:
        return false;
    }
}

/* ---- On the way up ---- */

struct prefetch prefetch_begin(const struct cached_operand *r)
{
    struct prefetch prefetch = {.validates = r->watch != 0};
    if (prefetch.validates)
        dirty_tracking_validate(&r->part, &prefetch.validation);
    return prefetch;
}

void prefetch_end(struct prefetch *prefetch, struct cached_operand *r)
{
    if (!prefetch->validates)
        return;
    r->edges = prefetch->validation.edges;
    r->validated = dirty_tracking_is_validated(&prefetch->validation);
}
