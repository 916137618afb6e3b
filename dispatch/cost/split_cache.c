#include "split_cache.h"

#include <string.h>

#include "base/memory/lru.h"
#include "gpu/plan/scheduled.h"
#include "ops/op.h"
#include "call/shape.h"

/* All that a split depends on. */
struct split_key {
    struct schedule_call call; /* of the whole schedule, which has the sizes; zero: it has none */
    int64_t routine, batch, cuts, dtype[ACCEL_SPANS], read[ACCEL_SPANS];
    struct split_device device[SPLIT_MOST];
    double host_gbps;
};
_Static_assert(sizeof(struct split_key) == (4 + 2 * ACCEL_SPANS) * 8 +
                                               sizeof(struct schedule_call) +
                                               SPLIT_MOST * sizeof(struct split_device),
               "without padding: it is a cache key");

struct cached_split {
    struct lru_entry lru;
    struct split_key key;
    struct split value;
};
LRU(known_splits, cached_split, 8, 4);

static void set_key(struct split_key *key, const struct accel_call *call,
                    const struct split_device *device, int count, double host_gbps)
{
    struct scheduled scheduled;
    memset(key, 0, sizeof *key);
    key->routine = call->routine - accel_routines;
    key->batch = call->batch;
    key->cuts = accel_cuts_of(call);
    key->host_gbps = host_gbps;
    for (int i = 0; i < ACCEL_SPANS; i++) {
        key->dtype[i] = call->span[i].dtype;
        key->read[i] = call->span[i].ptr && accel_is_read(call, &call->span[i]);
    }
    if (scheduled_describe(call, &scheduled))
        key->call = scheduled.call;
    memcpy(key->device, device, (size_t)count * sizeof *device);
}

void split_cache_make(struct split *split, const struct accel_call *call,
                      const struct split_device *device, int count, double host_gbps)
{
    struct split_key key;
    set_key(&key, call, device, count, host_gbps);
    if (lru_get(&known_splits, &key, split))
        return;
    split_make(split, call, device, count, host_gbps);
    lru_put(&known_splits, &key, split);
}
