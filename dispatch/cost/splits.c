#include "splits.h"

#include <pthread.h>
#include <string.h>

#include "base/thread/forks.h"
#include "gpu/pack/digest.h"
#include "gpu/plan/scheduled.h"
#include "ops/op.h"
#include "call/shape.h"

enum { KEPT = 32 };

static struct found {
    struct gpu_key key; /* of the call, its devices and the host */
    uint64_t used;      /* 0: the entry is free */
    struct split split;
} table[KEPT];
static uint64_t now;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
FORKS_LOCK(lock);

/* All that a split depends on. */
struct facts {
    int64_t routine, batch, cuts, dtype[ACCEL_SPANS], read[ACCEL_SPANS];
    int64_t shape[13], operand[SCHEDULE_OPERANDS]; /* of the whole schedule, which has the sizes */
    struct schedule_sharing sharing[SCHEDULE_OPERANDS];
    double per_term;
    int64_t memory[SPLIT_MOST], port[SPLIT_MOST];
    struct schedule_rates rates[SPLIT_MOST]; /* without gaps */
    double host_gbps;
};

static void add_schedule(struct facts *facts, const struct schedule_call *s)
{
    const int64_t shape[] = {s->kind, s->two,  s->one_way, s->up,   s->reads, s->m,       s->n,
                             s->k,    s->most, s->widest,  s->head, s->omits, s->products};
    memcpy(facts->shape, shape, sizeof shape);
    facts->per_term = s->per_term;
    for (int x = 0; x < SCHEDULE_OPERANDS; x++)
        facts->operand[x] = s->size[x] * 2 + s->across[x];
    memcpy(facts->sharing, s->sharing, sizeof facts->sharing);
}

static void add_device(struct facts *facts, int i, const struct split_device *device)
{
    facts->rates[i] = device->rates;
    facts->memory[i] = device->memory_bytes;
    facts->port[i] = device->port;
}

static struct gpu_key key_of(const struct accel_call *call, const struct split_device *device,
                             int count, double host_gbps)
{
    struct scheduled scheduled;
    struct facts facts;
    memset(&facts, 0, sizeof facts);
    facts.routine = call->routine - accel_routines;
    facts.batch = call->batch;
    facts.cuts = accel_cuts_of(call);
    facts.host_gbps = host_gbps;
    for (int i = 0; i < ACCEL_SPANS; i++) {
        facts.dtype[i] = call->span[i].dtype;
        facts.read[i] = call->span[i].ptr && accel_is_read(call, &call->span[i]);
    }
    if (scheduled_describe(call, &scheduled))
        add_schedule(&facts, &scheduled.call);
    for (int i = 0; i < count; i++)
        add_device(&facts, i, &device[i]);
    return gpu_digest_columns((const char *)&facts, sizeof facts, 1, sizeof facts);
}

static bool find(struct gpu_key key, struct split *split)
{
    bool found = false;
    pthread_mutex_lock(&lock);
    for (int i = 0; i < KEPT && !found; i++) {
        found = table[i].used > 0 && memcmp(&table[i].key, &key, sizeof key) == 0;
        if (found) {
            table[i].used = ++now;
            *split = table[i].split;
        }
    }
    pthread_mutex_unlock(&lock);
    return found;
}

/* In place of the one that has not been used for longest. */
static void keep(struct gpu_key key, const struct split *split)
{
    struct found *oldest = table;
    pthread_mutex_lock(&lock);
    for (int i = 1; i < KEPT; i++)
        if (table[i].used < oldest->used)
            oldest = &table[i];
    *oldest = (struct found){key, ++now, *split};
    pthread_mutex_unlock(&lock);
}

void splits_make(struct split *split, const struct accel_call *call,
                 const struct split_device *device, int count, double host_gbps)
{
    const struct gpu_key key = key_of(call, device, count, host_gbps);
    if (find(key, split))
        return;
    split_make(split, call, device, count, host_gbps);
    keep(key, split);
}
