#include "resident.h"

#include <stdatomic.h>

#include "base/clock.h"
#include "base/crew.h"
#include "device.h"
#include "ops/op.h"
#include "ops/shape.h"
#include "sightings.h"

/* Less is up before a digest of it would be known. */
#define LEAST_BYTES ((int64_t)1 << 20)

/* A thread digests at this many 10^9 bytes a second, nominally; all of them not above the memory's rate. */
#define THREAD_GBPS 12.0
#define MEMORY_GBPS 100.0

static _Atomic double measured_gbps; /* 0: not yet */

double gpu_digest_gbps(void)
{
    const double gbps = atomic_load_explicit(&measured_gbps, memory_order_relaxed);
    const double nominal = THREAD_GBPS * (1 + crew_size());
    return gbps > 0 ? gbps : nominal < MEMORY_GBPS ? nominal : MEMORY_GBPS;
}

/* A digest is slow for many reasons, and fast only because it can be. */
static void measure(int64_t bytes, double ms)
{
    const double slowly = 0.125, known = gpu_digest_gbps();
    const double gbps = (double)bytes / (ms > 1e-3 ? ms : 1e-3) * 1e-6;
    atomic_store_explicit(&measured_gbps, gbps > known ? gbps : known + slowly * (gbps - known),
                          memory_order_relaxed);
}

bool resident_may(const struct accel_call *call, const struct accel_span *x)
{
    const enum accel_op_group group = accel_op_of(call->routine)->group;
    return (group == ACCEL_LEVEL_3 || group == ACCEL_LEVEL_2) && x->ptr && x->inc == 0 &&
           x->access == ACCEL_READ && x->place == ACCEL_HOST && accel_bytes(x) >= LEAST_BYTES &&
           accel_is_read(call, x) && !accel_adds_nothing(call);
}

static struct gpu_key digest_of(const struct accel_span *x)
{
    const struct lane_rectangle all = lane_whole(x->ptr, x->rows, x->cols, x->ld, gpu_size_of(x));
    const double start = accel_now_ms();
    const struct gpu_key key = staging_digest(&all, gpu_device_ld(x->rows, x->dtype));
    measure(accel_bytes(x), accel_now_ms() - start);
    return key;
}

struct resident resident_look(struct gpu_work *work, const struct accel_span *x,
                              gpu_address *memory)
{
    struct resident r = {.here = false};
    if (!work->host->keeps || !resident_may(work->call, x))
        return r;
    enum sighting how = sightings_see(x);
    if (how == SIGHTING_LOOK) {
        const struct gpu_key key = digest_of(x);
        r.here = gpu_work_find(work, &key, memory);
        how = sightings_looked(x, r.here);
    }
    r.digests = how == SIGHTING_KEEP;
    return r;
}

enum gpu_status resident_keep(struct gpu_work *work, const struct accel_span *x, gpu_address memory,
                              const struct resident *r)
{
    const enum gpu_status status = gpu_work_keep(work, memory, &r->key);
    if (status == GPU_OK)
        sightings_kept(x, &r->key);
    return status;
}

unsigned gpu_kept(struct gpu_device *device, const struct accel_call *call)
{
    unsigned kept = 0;
    struct gpu_key key;
    for (int i = 0; i < ACCEL_SPANS; i++) {
        const struct accel_span *x = &call->span[i];
        if (resident_may(call, x) && sightings_expect(x, &key) &&
            device->functions->has_kept(device, &key))
            kept |= 1u << i;
    }
    return kept;
}
