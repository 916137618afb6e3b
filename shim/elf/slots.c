#define _GNU_SOURCE
#include "slots.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/thread/forks.h"
#include "base/output/message.h"
#include "gpu/device/gpu.h"
#include "objects.h"
#include "own_lock.h"
#include "ops/op.h"
#include "ops/typical.h"
#include "real_linker.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
FORKS_LOCK(lock);

_Static_assert(ACCEL_LEAST_CACHED_BYTES == GPU_LEAST_CACHED_BYTES, "the gate of Level 2");

/* Exported entries: whether one has been called, and its original if that is the same for all
 * callers. */
static bool resolved[ACCEL_ENTRIES_MAX];
static _Atomic(const struct accel_original *) global_original[ACCEL_ENTRIES_MAX];

/* For the slow path: the originals at the same places as in the site table. */
static _Atomic(const struct accel_original *) site_original[ACCEL_SITES];
static bool sites_used;

static struct {
    uint32_t exported;
    unsigned long long unloads; /* as of the look-up */
    _Atomic(const struct accel_original *) original;
} bound[ACCEL_BOUND_ENTRIES];
static int bound_used;
static bool bound_full_said;

/* An object that has called: saves look-ups for its further call sites. */
struct caller {
    const void *object;
    uint32_t entry;
    const struct accel_original *original;
};
static struct caller *caller;
static size_t callers, callers_max;

/* filter_key() for which the slots are set; UNSET if an entry has come in since. */
#define UNSET UINT64_MAX
static _Atomic uint64_t published = UNSET;
static unsigned long long unloads_seen;
static _Atomic unsigned long long originals; /* found so far */

static bool is_bound(uint32_t entry)
{
    return entry >= accel_entry_count;
}

uint32_t accel_slots_exported(uint32_t entry)
{
    return is_bound(entry) ? bound[entry - accel_entry_count].exported : entry;
}

static void *code(uint32_t offset)
{
    return (void *)(uintptr_t)(accel_blocks + offset);
}

static void *slow_code(uint32_t entry)
{
    return (void *)(uintptr_t)(accel_slow_blocks + (size_t)entry * ACCEL_SLOW_SIZE);
}

static void *bound_code(uint32_t index, size_t offset)
{
    return (void *)(uintptr_t)(accel_bound_blocks + (size_t)index * ACCEL_BOUND_BLOCK + offset);
}

/* ---- The call-site table ---- */

static uint64_t site_key(uint32_t entry, uintptr_t ret)
{
    return ret + ((uint64_t)entry << ACCEL_SITE_ENTRY_SHIFT);
}

/* Of originals to which no stub may jump by itself: no entry has a number so large, so that only
 * the slow path finds the key. */
static uint64_t hidden_key(uint64_t key)
{
    return key | 1ull << 63;
}
_Static_assert((uint64_t)ACCEL_ENTRIES_MAX << ACCEL_SITE_ENTRY_SHIFT < 1ull << 63, "hidden keys");

/* As in the by-caller stub. */
static uint32_t site_place(uint64_t key)
{
    return ((uint32_t)key * ACCEL_SITE_HASH >> (32 - ACCEL_SITE_BITS)) +
           ACCEL_SITE_OFFSET((uint32_t)(key >> ACCEL_SITE_ENTRY_SHIFT));
}

/* The stub looks at two places, the slow path at some more. */
#define PROBES 16

static uint32_t next_place(uint32_t at)
{
    return (at + 1) % ACCEL_SITES;
}

static const struct accel_original *site_find(uint64_t key)
{
    uint32_t at = site_place(key);
    for (int i = 0; i < PROBES; i++, at = next_place(at)) {
        if (atomic_load_explicit(&accel_site_key[at], memory_order_acquire) == key) {
            const struct accel_original *original =
                atomic_load_explicit(&site_original[at], memory_order_acquire);
            if (atomic_load_explicit(&accel_site_key[at], memory_order_acquire) == key)
                return original;
        }
    }
    return NULL;
}

static void site_set(uint32_t at, uint64_t key, const struct accel_original *original)
{
    atomic_store_explicit(&accel_site_key[at], 0, memory_order_release);
    atomic_store_explicit(&site_original[at], original, memory_order_release);
    atomic_store_explicit(&accel_site_target[at], original->function, memory_order_release);
    atomic_store_explicit(&accel_site_key[at], key, memory_order_release);
}

static void site_insert(uint64_t key, const struct accel_original *original)
{
    uint32_t at = site_place(key);
    sites_used = true;
    for (int i = 0; i < PROBES; i++, at = next_place(at)) {
        uint64_t there = atomic_load_explicit(&accel_site_key[at], memory_order_relaxed);
        if (!there)
            site_set(at, key, original);
        if (!there || there == key)
            return;
    }
    /* All are taken: the first one gives way. A stub that is reading it sees that the key
     * changes. */
    site_set(site_place(key), key, original);
}

/* ---- Gates ---- */

/* Whether structs of this original have their count where those of the entry's first original have
 * it. Under the lock. */
static bool is_like_first(uint32_t exported, const struct accel_original *original)
{
    if (exported < accel_blas_name_count)
        return true;
    const struct accel_foreign *foreign = accel_op_of(accel_name_routine(exported))->foreign;
    const int offset = foreign->count_at ? foreign->count_at(original->layout) : -1;
    uint32_t at = offset >= 0 ? (uint32_t)offset + 1 : UINT32_MAX, first = 0;
    return atomic_compare_exchange_strong(&accel_count_at[exported - accel_blas_name_count], &first,
                                          at) ||
           first == at;
}

/* Whether the entry's gate can read the calls of originals that are like the first one. */
static bool has_gate(uint32_t exported)
{
    if (exported < accel_blas_name_count)
        return true;
    uint32_t at = atomic_load_explicit(&accel_count_at[exported - accel_blas_name_count],
                                       memory_order_relaxed);
    return at != 0 && at != UINT32_MAX;
}

/* Whether the call-site table may lead to an original. If there is a wide one, every call is looked
 * at. A gate behind the look-up must find BLAS, or structs of the layout that it reads; a library
 * that is turned off has no gate. Under the lock. */
static bool is_for_sites(uint32_t exported, const struct accel_original *original)
{
    if (original->wide)
        return false;
    return original->ours ? is_like_first(exported, original)
                          : !dispatch_takes_library(accel_name_routine(exported));
}

/* ---- Slots ---- */

static uint64_t filter_key(struct dispatch_filter filter)
{
    return (uint64_t)filter.level << 56 | (uint64_t)filter.matrices << 55 |
           (filter.gate & ((1ull << 55) - 1));
}

static void set_slot(_Atomic(void *) *enter, _Atomic(void *) *original, void *forward, void *gate,
                     void *slow, enum dispatch_level level)
{
    atomic_store_explicit(original, forward, memory_order_release);
    void *to = level == DISPATCH_SEE_NOTHING ? forward : level == DISPATCH_SEE_LARGE ? gate : slow;
    atomic_store_explicit(enter, to, memory_order_release);
}

/* The gain of a routine that only moves data does not depend on its size, unless its matrix is on
 * the device, or may come to be there; that of a library which is turned off is none. A library
 * that has been told to use the GPU is guided to its end. */
static enum dispatch_level level_for(uint32_t exported, struct dispatch_filter filter)
{
    const enum dispatch_level level = filter.level;
    const struct accel_routine *routine = accel_name_routine(exported);
    const bool taken = dispatch_takes_library(routine);
    if (taken && !accel_is_blas(routine) && accel_op_of(routine)->foreign->guide)
        return DISPATCH_SEE_ALL;
    const bool may_be_there = filter.matrices && accel_reads_matrix(routine);
    const bool at_any_size = !taken || (accel_only_moves(routine) && !may_be_there);
    return at_any_size && level == DISPATCH_SEE_LARGE ? DISPATCH_SEE_NOTHING : level;
}

static void publish_exported(uint32_t entry, struct dispatch_filter filter)
{
    enum dispatch_level level = filter.level;
    const struct accel_original *global =
        atomic_load_explicit(&global_original[entry], memory_order_relaxed);
    const struct accel_entry_code *at = &accel_code[entry];
    /* A name that is not BLAS here matters only to a log, which sees all. */
    if (!global || global->ours)
        level = level_for(entry, filter);
    else if (level != DISPATCH_SEE_ALL)
        level = DISPATCH_SEE_NOTHING;
    /* A gate reads the arguments: if only the look-up tells that they are BLAS's, the gate comes
     * after it. */
    void *gate = code(global ? at->gate : at->bycaller_gate);
    if ((global && global->ours && !is_like_first(entry, global)) || !has_gate(entry))
        gate = slow_code(entry);
    set_slot(&accel_slot_enter[entry], &accel_slot_forward[entry],
             global ? global->function : code(at->bycaller), gate, slow_code(entry), level);
}

static void publish_bound(uint32_t index, struct dispatch_filter filter)
{
    uint32_t exported = bound[index].exported;
    enum dispatch_level level = level_for(exported, filter);
    struct accel_slots *slots = &accel_bound_slots[index];
    const struct accel_original *original =
        atomic_load_explicit(&bound[index].original, memory_order_relaxed);
    atomic_store_explicit(&slots->compare, code(accel_code[exported].compare),
                          memory_order_release);
    atomic_store_explicit(&slots->slow, bound_code(index, ACCEL_BOUND_SLOW), memory_order_release);
    const bool gated = original->ours && is_like_first(exported, original) && has_gate(exported);
    const size_t gate = gated ? ACCEL_BOUND_GATE : ACCEL_BOUND_SLOW;
    if (!original->ours && !original->unasked)
        level = DISPATCH_SEE_NOTHING;
    set_slot(&slots->enter, &slots->forward, original->function, bound_code(index, gate),
             bound_code(index, ACCEL_BOUND_SLOW), level);
}

void accel_slots_follow(void)
{
    if (atomic_load_explicit(&published, memory_order_acquire) == filter_key(dispatch_filter()))
        return;
    if (!own_lock(&lock))
        return; /* the next call follows */
    const struct dispatch_filter filter = dispatch_filter();
    atomic_store_explicit(&accel_gate, filter.gate, memory_order_release);
    for (uint32_t i = 0; i < accel_entry_count; i++)
        if (resolved[i])
            publish_exported(i, filter);
    for (int i = 0; i < bound_used; i++)
        publish_bound((uint32_t)i, filter);
    atomic_store_explicit(&published, filter_key(filter), memory_order_release);
    own_unlock(&lock);
}

/* ---- Originals ---- */

void accel_slots_drop_if_unloaded(void)
{
    unsigned long long unloads = accel_objects_unloads();
    if (!own_lock(&lock))
        return; /* the next look-up drops it */
    if (unloads != unloads_seen) {
        unloads_seen = unloads;
        for (uint32_t i = 0; i < accel_entry_count; i++) {
            if (!resolved[i])
                continue;
            resolved[i] = false;
            atomic_store_explicit(&accel_slot_enter[i], slow_code(i), memory_order_release);
            atomic_store_explicit(&global_original[i], NULL, memory_order_release);
        }
        for (int i = 0; sites_used && i < ACCEL_SITES; i++) {
            atomic_store_explicit(&accel_site_key[i], 0, memory_order_release);
            atomic_store_explicit(&site_original[i], NULL, memory_order_release);
        }
        sites_used = false;
        callers = 0;
    }
    own_unlock(&lock);
}

static const struct accel_original *known_caller(const void *object, uint32_t entry)
{
    const struct accel_original *original = NULL;
    if (!own_lock(&lock))
        return NULL;
    for (size_t i = 0; object && !original && i < callers; i++)
        if (caller[i].object == object && caller[i].entry == entry)
            original = caller[i].original;
    own_unlock(&lock);
    return original;
}

/* Call it under the lock. If memory is short, the next call site looks the original up again. */
static void remember_caller(const void *object, uint32_t entry,
                            const struct accel_original *original)
{
    if (callers == callers_max) {
        size_t more = callers_max ? 2 * callers_max : 64;
        struct caller *grown = realloc(caller, more * sizeof *grown);
        if (!grown)
            return;
        caller = grown;
        callers_max = more;
    }
    caller[callers++] = (struct caller){object, entry, original};
}

unsigned long long accel_slots_originals(void)
{
    return atomic_load_explicit(&originals, memory_order_acquire);
}

static _Noreturn void no_original(uint32_t entry)
{
    accel_message("symbol lookup error: undefined symbol: %s", accel_names[entry].symbol);
    _exit(127); /* as the dynamic linker does */
}

/* Asks what a function is at its first call that comes here. */
static const struct accel_original *bound_original(uint32_t index)
{
    const struct accel_original *unasked =
        atomic_load_explicit(&bound[index].original, memory_order_acquire);
    if (!unasked->unasked)
        return unasked;
    const struct accel_original *asked =
        accel_resolve_known(bound[index].exported, unasked->function);
    if (!asked || !own_lock(&lock))
        return asked ? asked : unasked; /* not stored */
    if (atomic_compare_exchange_strong(&bound[index].original, &unasked, asked))
        atomic_store_explicit(&published, UNSET, memory_order_release);
    own_unlock(&lock);
    return asked;
}

const struct accel_original *accel_slots_original(uint32_t entry, uintptr_t ret)
{
    if (is_bound(entry))
        return bound_original(entry - accel_entry_count);
    const struct accel_original *original =
        atomic_load_explicit(&global_original[entry], memory_order_acquire);
    if (original)
        return original;
    uint64_t key = site_key(entry, ret);
    original = site_find(key);
    if (!original)
        original = site_find(hidden_key(key));
    if (original)
        return original;

    /* Without our lock: the look-ups take the dynamic linker's lock, and a constructor that runs
     * under that lock may wait for ours. */
    const void *object = accel_object_of((const void *)(ret - 1));
    original = known_caller(object, entry);
    bool known = original != NULL;
    if (!known) {
        original = accel_resolve(entry, ret);
        accel_slots_drop_if_unloaded();
    }
    if (!original)
        no_original(entry);
    if (!own_lock(&lock))
        return original; /* not stored */
    if (original->global && !resolved[entry]) {
        atomic_store_explicit(&global_original[entry], original, memory_order_release);
    } else {
        site_insert(is_for_sites(entry, original) ? key : hidden_key(key), original);
        if (!known && object)
            remember_caller(object, entry, original);
    }
    atomic_fetch_add_explicit(&originals, 1, memory_order_acq_rel);
    if (!resolved[entry]) {
        resolved[entry] = true;
        atomic_store_explicit(&published, UNSET, memory_order_release);
    }
    own_unlock(&lock);
    return original;
}

/* Returns the place of a bound function, bound_used if it has none. Call it under the lock. */
static int bound_place(uint32_t entry, const void *function)
{
    int at = 0;
    while (at < bound_used &&
           (bound[at].exported != entry ||
            atomic_load_explicit(&bound[at].original, memory_order_relaxed)->function != function))
        at++;
    return at;
}

void *accel_slots_bind(uint32_t entry, void *function)
{
    if (!own_lock(&lock))
        return function;
    int at = bound_place(entry, function);
    bool current = at < bound_used && bound[at].unloads == unloads_seen;
    unsigned long long unloads = unloads_seen;
    own_unlock(&lock);
    if (current)
        return bound_code((uint32_t)at, 0);

    const struct accel_original *original = accel_resolve_unasked(entry, function);
    if (!original)
        return function;
    void *pointer = function;
    if (!own_lock(&lock))
        return function;
    at = bound_place(entry, function);
    if (at < ACCEL_BOUND_ENTRIES) {
        const bool is_new = at == bound_used;
        if (is_new)
            bound[at].exported = entry;
        bound[at].unloads = unloads;
        /* After an unload, the same address may be another library's. */
        atomic_store_explicit(&bound[at].original, original, memory_order_release);
        if (is_new) {
            publish_bound((uint32_t)at,
                          (struct dispatch_filter){
                              .level = DISPATCH_SEE_ALL}); /* until accel_slots_follow() */
            bound_used++;
        }
        atomic_store_explicit(&published, UNSET, memory_order_release);
        pointer = bound_code((uint32_t)at, 0);
    } else if (!bound_full_said) {
        bound_full_said = true;
        accel_message(
            "dlsym has handed out %d functions; libaccel does not see calls of further ones",
            ACCEL_BOUND_ENTRIES);
    }
    own_unlock(&lock);
    return pointer;
}

/* In the child of a fork: another thread of the parent may have been in the middle of growing the
 * array. */
static void forget_callers(void)
{
    caller = NULL;
    callers = callers_max = 0;
    atomic_store_explicit(&published, UNSET, memory_order_release);
}
FORKS_CHILD(forget_callers);
