#include "plan_cache.h"

#include "base/memory/lru.h"

/* Sets of factors: A, B, both, or none. */
enum { LEFT_OUT = 1 << SCHEDULE_C };

struct cached_plan {
    struct lru_entry lru;
    struct plan_key {
        int64_t memory_bytes;
        struct schedule_call call;
        struct schedule_rates rates;
    } key;
    struct plan_chosen {
        struct schedule_params params;
        double ms[LEFT_OUT]; /* by the operands that are left out; 0: not simulated yet */
    } value;
};
LRU(plans, cached_plan, 64, 4);

/* Where several threads see to the same call, a time may be forgotten: then it is simulated
 * again. */
static void keep_plan(const struct plan_key *key, const struct schedule *s, unsigned left_out,
                      double ms)
{
    struct plan_chosen chosen = {.ms = {0}};
    lru_get(&plans, key, &chosen);
    chosen.params = s->by;
    chosen.ms[left_out] = ms;
    lru_put(&plans, key, &chosen);
}

static bool make_or_recall_plan(struct schedule *s, const struct plan_key *key)
{
    struct plan_chosen chosen;
    if (lru_get(&plans, key, &chosen) &&
        schedule_make_by(s, &chosen.params, &key->call, &key->rates, key->memory_bytes))
        return true;
    if (!schedule_make(s, &key->call, &key->rates, key->memory_bytes))
        return false;
    keep_plan(key, s, 0, s->ms);
    return true;
}

bool plan_cache_make(struct schedule *s, const struct schedule_call *call,
                     const struct schedule_rates *rates, int64_t memory_bytes)
{
    const struct plan_key key = {memory_bytes, *call, *rates};
    return make_or_recall_plan(s, &key);
}

double plan_cache_ms(const struct schedule_call *call, const struct schedule_rates *rates,
                     int64_t memory_bytes, unsigned left_out)
{
    const struct plan_key key = {memory_bytes, *call, *rates};
    struct plan_chosen chosen;
    struct schedule s;
    if (lru_get(&plans, &key, &chosen) && chosen.ms[left_out] > 0)
        return chosen.ms[left_out];
    if (!make_or_recall_plan(&s, &key))
        return -1;
    bool changed = true;
    for (int x = SCHEDULE_A; changed && x < SCHEDULE_C; x++)
        changed = !(left_out & 1u << x) || schedule_leave_out(&s, x);
    /* Without host memory, a simulation says 0. */
    const double ms = !changed ? 0 : left_out ? schedule_simulate(&s, rates).ms : s.ms;
    if (ms > 0)
        keep_plan(&key, &s, left_out, ms);
    schedule_free(&s);
    return ms > 0 ? ms : -1;
}
