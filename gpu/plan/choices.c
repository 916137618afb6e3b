#include "choices.h"

#include <string.h>

#include "memo.h"

/* Sets of factors: A, B, both, or none. */
enum { LEFT_OUT = 1 << SCHEDULE_C };

struct chosen {
    struct schedule_choice choice;
    double ms[LEFT_OUT]; /* by the operands that are left out; 0: not simulated yet */
};
_Static_assert(sizeof(struct chosen) <= MEMO_BYTES, "a choice is remembered as a whole");

static struct gpu_key key_of(const struct schedule_call *call, const struct schedule_rates *rates,
                             int64_t memory_bytes)
{
    const int64_t of_call[] = {call->kind, call->two,   call->one_way,  call->up,    call->reads,
                               call->m,    call->n,     call->k,        call->most,  call->widest,
                               call->head, call->omits, call->products, memory_bytes};
    struct {
        int64_t call[sizeof of_call / sizeof *of_call];
        struct schedule_rates rates; /* without gaps */
        double per_term;
        int64_t operand[SCHEDULE_OPERANDS];
        double lent[SCHEDULE_OPERANDS];
        struct schedule_sharing sharing[SCHEDULE_OPERANDS];
    } words;
    memcpy(words.call, of_call, sizeof of_call);
    words.rates = *rates;
    words.per_term = call->per_term;
    for (int x = 0; x < SCHEDULE_OPERANDS; x++)
        words.operand[x] = call->size[x] * 4 + call->across[x] * 2 + call->in_place[x];
    memcpy(words.lent, call->lent, sizeof words.lent);
    memcpy(words.sharing, call->sharing, sizeof words.sharing);
    return gpu_digest_columns((const char *)&words, sizeof words, 1, sizeof words);
}

/* Where several threads see to the same call, a time may be forgotten: then it is simulated
 * again. */
static void keep(struct gpu_key key, const struct schedule *s, unsigned left_out, double ms)
{
    struct chosen chosen = {.ms = {0}};
    memo_find(key, &chosen, sizeof chosen);
    chosen.choice = s->by;
    chosen.ms[left_out] = ms;
    memo_keep(key, &chosen, sizeof chosen);
}

static bool make(struct schedule *s, struct gpu_key key, const struct schedule_call *call,
                 const struct schedule_rates *rates, int64_t memory_bytes)
{
    struct chosen chosen;
    if (memo_find(key, &chosen, sizeof chosen) &&
        schedule_make_by(s, &chosen.choice, call, rates, memory_bytes))
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
    struct chosen chosen;
    struct schedule s;
    if (memo_find(key, &chosen, sizeof chosen) && chosen.ms[left_out] > 0)
        return chosen.ms[left_out];
    if (!make(&s, key, call, rates, memory_bytes))
        return -1;
    bool changed = true;
    for (int x = SCHEDULE_A; changed && x < SCHEDULE_C; x++)
        changed = !(left_out & 1u << x) || schedule_leave_out(&s, x);
    /* Without host memory, a simulation says 0. */
    const double ms = !changed ? 0 : left_out ? schedule_simulate(&s, rates).ms : s.ms;
    if (ms > 0)
        keep(key, &s, left_out, ms);
    schedule_free(&s);
    return ms > 0 ? ms : -1;
}
