/* Where the elements of a side lie: as few places as they make, for order.c. */
#include "cufft_side.h"

/* A side in more places than these counts as a whole, with its gaps. */
enum { PLACES = 256, LEVELS = 1 + DIMENSIONS };

size_t side_extent(const struct side *side)
{
    int64_t last = 0;
    for (int i = 0; i < LEVELS; i++)
        last += (side->count[i] - 1) * side->step[i];
    return (size_t)(last + 1) * side->element;
}

double side_bytes(const struct side *side)
{
    double bytes = (double)side->element;
    for (int i = 0; i < LEVELS; i++)
        bytes *= (double)side->count[i];
    return bytes;
}

struct level {
    uint64_t count, step;
};

/* From the shortest step; what has one element makes none, and two that follow each other closely
 * make one. */
static int levels_of(const struct side *side, struct level *levels)
{
    int used = 0, kept = 0;
    for (int i = 0; i < LEVELS; i++) {
        const struct level new = {(uint64_t)side->count[i],
                                  (uint64_t)side->step[i] * side->element};
        if (new.count == 1)
            continue;
        int at = used++;
        for (; at > 0 && levels[at - 1].step > new.step; at--)
            levels[at] = levels[at - 1];
        levels[at] = new;
    }
    for (int i = 0; i < used; i++) {
        if (kept > 0 && levels[i].step == levels[kept - 1].step * levels[kept - 1].count)
            levels[kept - 1].count *= levels[i].count;
        else
            levels[kept++] = levels[i];
    }
    return kept;
}

static int places_of(const struct side *side, struct testgpu_place *places)
{
    struct level levels[LEVELS];
    int count = levels_of(side, levels), first = 0;
    uint64_t outer = 1;
    struct testgpu_place place = {side->address, 0, side->element, 1, TESTGPU_WHOLE, 1};
    if (first < count && levels[first].step == place.bytes)
        place.bytes *= levels[first++].count;
    place.pitch = place.bytes;
    if (first < count) {
        place.pitch = levels[first].step;
        place.columns = levels[first++].count;
    }
    for (int i = first; i < count; i++)
        outer *= levels[i].count;
    if (outer > PLACES) {
        const uint64_t extent = side_extent(side);
        places[0] = (struct testgpu_place){side->address, extent, extent, 1, TESTGPU_WHOLE, 1};
        return 1;
    }
    for (uint64_t number = 0; number < outer; number++) {
        uint64_t rest = number;
        places[number] = place;
        for (int i = first; i < count; i++) {
            places[number].address += rest % levels[i].count * levels[i].step;
            rest /= levels[i].count;
        }
    }
    return (int)outer;
}

void touch_side(struct testgpu_run *run, const struct side *side, bool writes)
{
    struct testgpu_place places[PLACES];
    const int count = places_of(side, places);
    for (int i = 0; i < count; i++)
        testgpu_touch(run, &places[i], writes);
}

bool sides_overlap(const struct side *one, const struct side *other)
{
    struct testgpu_place places[PLACES], others[PLACES];
    const int count = places_of(one, places), other_count = places_of(other, others);
    for (int i = 0; i < count; i++)
        for (int j = 0; j < other_count; j++)
            if (testgpu_overlap(&places[i], &others[j]))
                return true;
    return false;
}

static bool same_steps(const struct side *one, const struct side *other, int level)
{
    return one->count[level] == 1 || (uint64_t)one->step[level] * one->element ==
                                         (uint64_t)other->step[level] * other->element;
}

bool rows_agree(const struct side *one, const struct side *other)
{
    for (int i = 0; i < DIMENSIONS; i++)
        if (!same_steps(one, other, i))
            return false;
    return one->count[DIMENSIONS] == 1 || one->step[DIMENSIONS] == other->step[DIMENSIONS];
}
