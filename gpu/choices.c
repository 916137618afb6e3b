#include "choices.h"

#include <pthread.h>
#include <string.h>

#include "base/forks.h"
#include "digest.h"

/* A set holds the calls whose keys have the same remainder. */
enum { SETS = 64, WAYS = 4 };

static struct chosen {
    struct gpu_key key; /* of the call, its rates and its memory */
    uint64_t used;      /* 0: the entry is free */
    struct schedule_choice choice;
} table[SETS][WAYS];
static uint64_t now;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
FORKS_LOCK(lock);

static struct gpu_key key_of(const struct schedule_call *call, const struct schedule_rates *rates,
                             int64_t memory_bytes)
{
    const int64_t of_call[] = {call->kind, call->two, call->up,   call->reads,  call->m,
                               call->n,    call->k,   call->most, call->widest, memory_bytes};
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

static bool find(struct gpu_key key, struct schedule_choice *choice)
{
    struct chosen *set = table[key.word[0] % SETS];
    bool found = false;
    pthread_mutex_lock(&lock);
    for (int i = 0; i < WAYS && !found; i++) {
        found = is_same(&set[i], key);
        if (found) {
            set[i].used = ++now;
            *choice = set[i].choice;
        }
    }
    pthread_mutex_unlock(&lock);
    return found;
}

/* In place of the one that has not been used for longest. */
static void keep(struct gpu_key key, const struct schedule_choice *choice)
{
    struct chosen *set = table[key.word[0] % SETS], *oldest = set;
    pthread_mutex_lock(&lock);
    for (int i = 1; i < WAYS; i++)
        if (set[i].used < oldest->used)
            oldest = &set[i];
    *oldest = (struct chosen){key, ++now, *choice};
    pthread_mutex_unlock(&lock);
}

bool choices_make(struct schedule *s, const struct schedule_call *call,
                  const struct schedule_rates *rates, int64_t memory_bytes)
{
    const struct gpu_key key = key_of(call, rates, memory_bytes);
    struct schedule_choice choice;
    if (find(key, &choice) && schedule_make_by(s, &choice, call, rates, memory_bytes))
        return true;
    if (!schedule_make(s, call, rates, memory_bytes))
        return false;
    keep(key, &s->by);
    return true;
}
