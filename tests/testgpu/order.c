/*
 * Whether what uses memory is in order: two operations on two streams, one of which writes what the
 * other one reads or writes, must have an event or a wait of the host between them, however they
 * happen to run. Each operation has a clock: of each stream, up to which of its operations all are
 * done before this one begins. All threads of the host count as one.
 */
#include <stdlib.h>
#include <string.h>
#include "driver.h"

/* Of one allocation, the latest are kept. */
enum { KEPT_MOST = 512 };

struct touch {
    int stream;
    uint32_t number;
    bool writes;
    const char *name;
    struct testgpu_place place;
};

/* Side by side, as each operation looks at all of them; the latest comes last. */
struct touches {
    size_t count, room;
    struct touch touch[];
};

static uint32_t host[ORDER_STREAMS];

/* With the lock, as everything here but testgpu_touch() and testgpu_overlap(). */
void order_join(uint32_t *clock, const uint32_t *other)
{
    for (int i = 0; i < ORDER_STREAMS; i++)
        if (clock[i] < other[i])
            clock[i] = other[i];
}

void order_host_waited(const struct operation *operation)
{
    if (operation != NULL)
        order_join(host, operation->clock);
}

void order_put(CUstream stream, struct operation *operation)
{
    order_join(stream->clock, host);
    order_join(stream->clock, operation->clock);
    operation->stream = stream->number < ORDER_STREAMS ? (int)stream->number : -1;
    operation->number = ++stream->put;
    if (operation->stream >= 0)
        stream->clock[operation->stream] = operation->number;
    memcpy(operation->clock, stream->clock, sizeof operation->clock);
}

void order_forget(struct touches *touches)
{
    free(touches);
}

/* ---- Places ---- */

struct stretch {
    uint64_t start, end;
};

static struct stretch column(const struct testgpu_place *place, uint64_t number)
{
    const uint64_t top = place->address + number * place->pitch, diagonal = number * place->element;
    return (struct stretch){
        top + (place->part == TESTGPU_LOWER ? diagonal : 0),
        top + (place->part == TESTGPU_UPPER ? diagonal + place->element : place->bytes)};
}

static uint64_t end_of(const struct testgpu_place *place)
{
    return place->address + (place->columns - 1) * place->pitch + place->bytes;
}

bool testgpu_overlap(const struct testgpu_place *one, const struct testgpu_place *other)
{
    uint64_t i = 0, j = 0;
    if (one->bytes == 0 || one->columns == 0 || other->bytes == 0 || other->columns == 0)
        return false;
    if (end_of(one) <= other->address || end_of(other) <= one->address)
        return false;
    while (i < one->columns && j < other->columns) {
        const struct stretch x = column(one, i), y = column(other, j);
        if (x.start < y.end && y.start < x.end)
            return true;
        if (x.end <= y.start)
            i++;
        else
            j++;
    }
    return false;
}

static bool same(const struct testgpu_place *one, const struct testgpu_place *other)
{
    return one->address == other->address && one->pitch == other->pitch &&
           one->bytes == other->bytes && one->columns == other->columns && one->part == other->part;
}

/* ---- Touches ---- */

static void check(const struct touch *before, const struct operation *now, const char *name,
                  const struct testgpu_place *place, bool writes)
{
    if (before->stream == now->stream || (!writes && !before->writes) ||
        now->clock[before->stream] >= before->number || !testgpu_overlap(&before->place, place))
        return;
    testgpu_fault("unordered", "address=%#llx: %s by %s on one stream, %s by %s on another",
                  (unsigned long long)place->address, before->writes ? "written" : "read",
                  before->name, writes ? "written" : "read", name);
}

/* Who is behind the new one is behind an older one of the same stream at the same place, too. */
static bool replaces(const struct touch *new, const struct touch *old)
{
    return new->stream == old->stream && (new->writes || !old->writes) &&
           same(&new->place, &old->place);
}

static void keep(struct touches **touches, const struct touch *new)
{
    struct touches *all = *touches;
    size_t kept = 0;
    for (size_t i = 0; all != NULL && i < all->count; i++) {
        if (replaces(new, &all->touch[i]))
            continue;
        if (kept < i)
            all->touch[kept] = all->touch[i];
        kept++;
    }
    if (kept == KEPT_MOST)
        memmove(all->touch, all->touch + 1, --kept * sizeof *all->touch);
    if (all == NULL || kept == all->room) {
        const size_t room = all == NULL ? 4 : 2 * all->room;
        all = realloc(all, sizeof *all + room * sizeof *all->touch);
        if (all == NULL)
            abort();
        all->room = room;
    }
    all->touch[kept] = *new;
    all->count = kept + 1;
    *touches = all;
}

void testgpu_touch(struct testgpu_run *run, const struct testgpu_place *place, bool writes)
{
    const struct operation *now = run->operation;
    if (!settings.order || now == NULL || now->stream < 0 || place->bytes == 0 ||
        place->columns == 0)
        return;
    testgpu_lock();
    struct allocation *a = allocation_at((uintptr_t)place->address);
    if (a != NULL) {
        const struct touch new = {now->stream, now->number, writes, now->name, *place};
        for (size_t i = a->touches != NULL ? a->touches->count : 0; i-- > 0;)
            check(&a->touches->touch[i], now, now->name, place, writes);
        keep(&a->touches, &new);
    }
    testgpu_unlock();
}
