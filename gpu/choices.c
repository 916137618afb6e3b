#include "choices.h"

#include <pthread.h>
#include <string.h>

#include "base/forks.h"
#include "digest.h"

/* A set holds the calls whose keys have the same remainder. */
enum { SETS = 64, WAYS = 4 };

/* Sets of factors: A, B, both, or none. */
enum { LEFT_OUT = 1 << SCHEDULE_C };

static struct chosen {
    struct gpu_key key; /* of the call, its rates and its memory */
    uint64_t used;      /* 0: the entry is free */
    struct schedule_choice choice;
    double ms[LEFT_OUT]; /* by the operands that are left out; 0: not simulated yet */
} table[SETS][WAYS];
static uint64_t now;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
FORKS_LOCK(lock);

static struct gpu_key key_of(const struct schedule_call *call, const struct schedule_rates *rates,
                             int64_t memory_bytes)
{
    const int64_t of_call[] = {call->kind,   call->two,  call->up,    call->reads,
                               call->m,      call->n,    call->k,     call->most,
                               call->widest, call->skip, memory_bytes};
    const double of_rates[] = {rates->up,      rates->down,      rates->compute, rates->half,
                               rates->copy_ms, rates->kernel_ms, rates->wait_ms, call->per_term};
    struct {
        int64_t call[sizeof of_call / sizeof *of_call];
        double rates[sizeof of_rates / sizeof *of_rates];
        int64_t operand[SCHEDULE_OPERANDS];
    } words;
    memcpy(words.call, of_call, sizeof of_call);
    memcpy(words.rates, of_rates, sizeof of_rates);
    for (int x = 0; x < SCHEDULE_OPERANDS; x++)
        words.operand[x] = call->size[x] * 4 + call->across[x] * 2 + call->in_place[x];
    return gpu_digest_columns((const char *)&words, sizeof words, 1, sizeof words);
}

static bool is_same(const struct chosen *chosen, struct gpu_key key)
{
    return chosen->used > 0 && memcmp(&chosen->key, &key, sizeof key) == 0;
}

/* Under the lock. Returns NULL if the call is not there. */
static struct chosen *look_for(struct gpu_key key)
{
    struct chosen *set = table[key.word[0] % SETS];
    for (int i = 0; i < WAYS; i++)
        if (is_same(&set[i], key)) {
            set[i].used = ++now;
            return &set[i];
        }
    return NULL;
}

static bool find(struct gpu_key key, struct schedule_choice *choice)
{
    pthread_mutex_lock(&lock);
    const struct chosen *found = look_for(key);
    if (found)
        *choice = found->choice;
    pthread_mutex_unlock(&lock);
    return found;
}

static double find_ms(struct gpu_key key, unsigned left_out)
{
    pthread_mutex_lock(&lock);
    const struct chosen *found = look_for(key);
    const double ms = found ? found->ms[left_out] : 0;
    pthread_mutex_unlock(&lock);
    return ms;
}

/* Under the lock. In place of the one that has not been used for longest. */
static struct chosen *add(struct gpu_key key)
{
    struct chosen *set = table[key.word[0] % SETS], *oldest = set;
    for (int i = 1; i < WAYS; i++)
        if (set[i].used < oldest->used)
            oldest = &set[i];
    *oldest = (struct chosen){.key = key, .used = ++now};
    return oldest;
}

static void keep(struct gpu_key key, const struct schedule *s, unsigned left_out, double ms)
{
    pthread_mutex_lock(&lock);
    struct chosen *chosen = look_for(key);
    if (!chosen)
        chosen = add(key);
    chosen->choice = s->by;
    chosen->ms[left_out] = ms;
    pthread_mutex_unlock(&lock);
}

static bool make(struct schedule *s, struct gpu_key key, const struct schedule_call *call,
                 const struct schedule_rates *rates, int64_t memory_bytes)
{
    struct schedule_choice choice;
    if (find(key, &choice) && schedule_make_by(s, &choice, call, rates, memory_bytes))
        return true;
    if (!schedule_make(s, call, rates, memory_bytes))
        return false;
    keep(key, s, 0, s->ms);
    return true;
}

bool choices_make(struct schedule *s, const struct schedule_call *call,
                  const struct schedule_rates *rates, int64_t memory_bytes)
{
    return make(s, key_of(call, rates, memory_bytes), call, rates, memory_bytes);
}

double choices_ms(const struct schedule_call *call, const struct schedule_rates *rates,
                  int64_t memory_bytes, unsigned left_out)
{
    const struct gpu_key key = key_of(call, rates, memory_bytes);
    struct schedule s;
    double ms = find_ms(key, left_out);
    if (ms > 0)
        return ms;
    if (!make(&s, key, call, rates, memory_bytes))
        return -1;
    bool changed = true;
    for (int x = SCHEDULE_A; changed && x < SCHEDULE_C; x++)
        changed = !(left_out & 1u << x) || schedule_leave_out(&s, x);
    /* Without host memory, a simulation says 0. */
    ms = !changed ? 0 : left_out ? schedule_simulate(&s, rates).ms : s.ms;
    if (ms > 0)
        keep(key, &s, left_out, ms);
    schedule_free(&s);
    return ms > 0 ? ms : -1;
}
