#include "decision_cache.h"

#include <stdatomic.h>
#include <stddef.h>

/* A program has a few such calls at a time; of more than fit, the last ones are known. */
enum { PLACES = 256, PROBES = 4 };

/* So many decisions in a row must stand, before as many calls go by unread. */
enum { IN_A_ROW = 8, HELD_MOST = 64 };

/* One word, so that no thread sees a part of what another one writes. */
union kept_decision {
    struct {
        uint32_t tag; /* the upper half of the key, which no two calls in a program share */
        uint8_t left; /* calls that still go by unread */
        uint8_t row;  /* decisions in a row that stood, as far as they count */
        uint16_t busy;
    };
    uint64_t word; /* 0: free */
};
_Static_assert(sizeof(union kept_decision) == sizeof(uint64_t), "one word");

static _Atomic uint64_t kept[PLACES];
static _Atomic uint64_t changes; /* of devices' states */

/* A decision of before a change has a key that no call has any more. */
static uint64_t key_of(uint64_t call)
{
    const uint64_t spread = UINT64_C(0x9E3779B97F4A7C15);
    return call + spread * atomic_load_explicit(&changes, memory_order_acquire);
}

static uint32_t tag_of(uint64_t key)
{
    return (uint32_t)(key >> 32);
}

/* Returns the key's place, NULL if it has none. */
static _Atomic uint64_t *find(uint64_t key, union kept_decision *is)
{
    for (uint64_t i = 0; i < PROBES; i++) {
        _Atomic uint64_t *const place = &kept[(key + i) % PLACES];
        is->word = atomic_load_explicit(place, memory_order_relaxed);
        if (is->word && is->tag == tag_of(key))
            return place;
    }
    return NULL;
}

/* Returns a place for a key that has none: a free one, or the first. */
static _Atomic uint64_t *take(uint64_t key)
{
    for (uint64_t i = 0; i < PROBES; i++) {
        _Atomic uint64_t *const place = &kept[(key + i) % PLACES];
        if (atomic_load_explicit(place, memory_order_relaxed) == 0)
            return place;
    }
    return &kept[key % PLACES];
}

bool decision_cache_holds(uint64_t call, int busy)
{
    union kept_decision is;
    _Atomic uint64_t *const place = find(key_of(call), &is);
    if (!place || is.left == 0 || busy > is.busy)
        return false;
    is.left--;
    atomic_store_explicit(place, is.word, memory_order_relaxed);
    return true;
}

/* Returns how many calls go by after so many decisions in a row. */
static uint8_t held_after(int row)
{
    if (row < IN_A_ROW)
        return 0;
    const int held = IN_A_ROW << (row - IN_A_ROW);
    return (uint8_t)(held < HELD_MOST ? held : HELD_MOST);
}

void decision_cache_note(uint64_t call, bool stands, int busy)
{
    const uint64_t key = key_of(call);
    union kept_decision is;
    _Atomic uint64_t *place = find(key, &is);
    if (!place && !stands)
        return;
    if (!place) {
        place = take(key);
        is = (union kept_decision){.tag = tag_of(key)};
    }
    if (!stands)
        is.row = 0;
    else if (held_after(is.row) < HELD_MOST)
        is.row++;
    is.left = held_after(is.row);
    is.busy = (uint16_t)(busy < UINT16_MAX ? busy : UINT16_MAX);
    atomic_store_explicit(place, is.word, memory_order_relaxed);
}

void decision_cache_forget(void)
{
    atomic_fetch_add_explicit(&changes, 1, memory_order_acq_rel);
}
