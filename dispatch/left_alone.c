#include "left_alone.h"

#include <stdatomic.h>

/* By routine, a bit each. */
enum { WORDS = 16 };
static _Atomic uint64_t left[LEFT_REASONS][WORDS];

static uint32_t index_of(const struct accel_routine *routine)
{
    return (uint32_t)(routine - accel_routines);
}

bool left_alone_add(const struct accel_routine *routine, enum left_alone reason)
{
    uint32_t i = index_of(routine);
    uint64_t bit = (uint64_t)1 << i % 64;
    return i < WORDS * 64 && !(atomic_fetch_or(&left[reason][i / 64], bit) & bit);
}

bool left_alone_has(const struct accel_routine *routine, enum left_alone reason)
{
    uint32_t i = index_of(routine);
    return i < WORDS * 64 &&
           (atomic_load_explicit(&left[reason][i / 64], memory_order_relaxed) >> i % 64 & 1);
}
