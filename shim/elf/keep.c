#define _GNU_SOURCE
#include "keep.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/thread/forks.h"
#include "base/thread/linker.h"
#include "objects.h"
#include "own_lock.h"
#include "real_linker.h"
#include "resolve.h"
#include "slots.h"

/* Each user has a handle of its own, so that a library goes with the last object that needs it.
 * Places are used again and never freed: they are read without the lock, also by a signal handler
 * whose thread holds it. The user (NULL: a free place) is set last, and taken out first. */
struct kept {
    _Atomic(const ElfW(Dyn) *) user, provider;
    _Atomic(void *) handle;
    _Atomic(struct kept *) next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
FORKS_LOCK(lock);
static _Atomic(struct kept *) kept;
static unsigned long long unloads_seen;
static _Atomic unsigned long long state_seen;

static struct kept *first_kept(void)
{
    return atomic_load_explicit(&kept, memory_order_acquire);
}

static struct kept *next_kept(const struct kept *at)
{
    return atomic_load_explicit(&at->next, memory_order_acquire);
}

static const ElfW(Dyn) * user_of(const struct kept *at)
{
    return atomic_load_explicit(&at->user, memory_order_acquire);
}

static const ElfW(Dyn) * provider_of(const struct kept *at)
{
    return atomic_load_explicit(&at->provider, memory_order_relaxed);
}

static void *handle_of(const struct kept *at)
{
    return atomic_load_explicit(&at->handle, memory_order_relaxed);
}

static bool is_kept(const ElfW(Dyn) * user, const ElfW(Dyn) * provider)
{
    for (const struct kept *at = first_kept(); at; at = next_kept(at))
        if (user_of(at) == user && provider_of(at) == provider)
            return true;
    return false;
}

/* Returns a free place, NULL if memory is short. Call it under the lock. */
static struct kept *free_place(void)
{
    _Atomic(struct kept *) *end = &kept;
    for (struct kept *at = first_kept(); at; at = next_kept(at)) {
        if (!user_of(at))
            return at;
        end = &at->next;
    }
    struct kept *const added = calloc(1, sizeof *added);
    atomic_store_explicit(end, added, memory_order_release);
    return added;
}

/* Takes the handle; returns false, and does not, if it is kept already, memory is short, or this
 * thread holds a lock: it is in a signal handler. */
static bool remember(const ElfW(Dyn) * user, const ElfW(Dyn) * provider, void *handle)
{
    if (!own_lock(&lock))
        return false;
    struct kept *place = is_kept(user, provider) ? NULL : free_place();
    if (place) {
        atomic_store_explicit(&place->provider, provider, memory_order_relaxed);
        atomic_store_explicit(&place->handle, handle, memory_order_relaxed);
        atomic_store_explicit(&place->user, user, memory_order_release);
    }
    own_unlock(&lock);
    return place != NULL;
}

static void keep_provider(const ElfW(Dyn) * user, const struct accel_object *provider)
{
    if (user == provider->dynamic || is_kept(user, provider->dynamic))
        return;
    linker_enter();
    void *handle = dlopen(provider->name, RTLD_NOLOAD | RTLD_LAZY);
    const struct link_map *map = handle;
    /* By now, the name may lead to another library. */
    if (handle && (map->l_ld != provider->dynamic || !remember(user, provider->dynamic, handle)))
        accel_real_dlclose(handle);
    linker_leave();
}

/* Objects of the program's start are never unloaded. While constructors run there are no others
 * that matter: to open one again would run its constructor before its turn. */
static bool may_go(const struct accel_object *object)
{
    const unsigned at_start = accel_objects_at_start();
    return at_start > 0 && (unsigned)object->number >= at_start;
}

/* ---- What would hold each other ---- */

/* An object, and those that hold it, directly or not: a queue. */
struct holders {
    int count;
    const ElfW(Dyn) * dynamic[256];
};

/* If there are too many, the last ones count as none: then a library may stay too long, which does
 * less harm than one that goes too early. */
static void add_holder(struct holders *holders, const ElfW(Dyn) * dynamic)
{
    for (int i = 0; i < holders->count; i++)
        if (holders->dynamic[i] == dynamic)
            return;
    if (holders->count < (int)(sizeof holders->dynamic / sizeof *holders->dynamic))
        holders->dynamic[holders->count++] = dynamic;
}

static void add_linked(struct holders *holders, const ElfW(Dyn) * held)
{
    struct accel_users users = {.next = 0};
    do {
        accel_objects_needing(held, &users);
        for (int i = 0; i < users.count; i++)
            add_holder(holders, users.dynamic[i]);
    } while (users.count > 0);
}

static void add_users(struct holders *holders, const ElfW(Dyn) * held)
{
    for (const struct kept *at = first_kept(); at; at = next_kept(at)) {
        const ElfW(Dyn) *const user = user_of(at);
        if (user && provider_of(at) == held)
            add_holder(holders, user);
    }
}

/* Whether one object stays loaded as long as another does: that one is linked to it, or we keep it
 * for that one, perhaps by way of others. */
static bool holds(const ElfW(Dyn) * holder, const ElfW(Dyn) * held)
{
    struct holders holders = {1, {held}};
    for (int i = 0; i < holders.count; i++) {
        if (holders.dynamic[i] == holder)
            return true;
        add_linked(&holders, holders.dynamic[i]);
        add_users(&holders, holders.dynamic[i]);
    }
    return false;
}

static void keep_found(const ElfW(Dyn) * user, const void *function, bool of_root)
{
    const struct link_map *to = accel_object_of(function);
    struct accel_object provider;
    if (!to || to->l_ld == user || is_kept(user, to->l_ld))
        return;
    if (accel_objects_at(function, &provider) && may_go(&provider) &&
        !(of_root && holds(provider.dynamic, user)))
        keep_provider(user, &provider);
}

void accel_keep(const void *user, const void *function)
{
    const struct link_map *from = accel_object_of(user);
    if (from)
        keep_found(from->l_ld, function, false);
}

void accel_keep_of_root(const void *user, const void *function)
{
    const struct link_map *from = accel_object_of(user);
    if (from)
        keep_found(from->l_ld, function, true);
}

/* Takes no lock: a signal handler that interrupts its holder must find the same library. A library
 * that is kept for an object stays loaded as long as that object. */
void *accel_kept_lookup(const struct link_map *user, const char *name)
{
    void *found = NULL;
    for (const struct kept *at = first_kept(); at && !found; at = next_kept(at))
        if (user_of(at) == user->l_ld)
            found = accel_real_lookup(handle_of(at), name);
    return found && !accel_is_own(found) ? found : NULL;
}

/* ---- Looks, each at what has come since the one before ---- */

/* Up to which object a look has gone. */
struct looked {
    _Atomic unsigned long long loads;
};

/* The number of the first object behind those that a look has seen. Objects that have gone since
 * only make it smaller. */
static unsigned first_unseen(const struct looked *looked, unsigned long long *loads)
{
    return accel_objects_first_since(atomic_load_explicit(&looked->loads, memory_order_acquire),
                                     loads);
}

/* Notes a look that began at `loads` and `unloads`. If objects have gone meanwhile, their numbers
 * have changed, and the next look sees all again; so it does while there are no objects of the
 * program's start yet. */
static void note_look(struct looked *looked, unsigned long long loads, unsigned long long unloads)
{
    if (accel_objects_at_start() > 0 && accel_objects_unloads() == unloads)
        atomic_store_explicit(&looked->loads, loads, memory_order_release);
}

/* ---- Names to which objects are bound ---- */

/* A set of exported entries: a bit each. */
struct names {
    uint64_t bits[(ACCEL_ENTRIES_MAX + 63) / 64];
};

static void add_name(struct names *names, uint32_t entry)
{
    names->bits[entry / 64] |= 1ull << entry % 64;
}

static void take_out(struct names *names, uint32_t entry)
{
    names->bits[entry / 64] &= ~(1ull << entry % 64);
}

static bool has(const struct names *names, uint32_t entry)
{
    return names->bits[entry / 64] >> entry % 64 & 1;
}

static bool note_name(const char *name, uint32_t hash, int object, void *data)
{
    const int entry = accel_name_find_hashed(name, hash);
    (void)object;
    if (entry >= 0)
        add_name(data, (uint32_t)entry);
    return false;
}

/* A library, and the names that the global scope finds in it. */
struct provider {
    struct accel_object object;
    struct names names;
};

/* An object that was loaded before the library can be bound to it only by a call, and
 * accel_resolve() has seen that. */
static bool is_bound(const char *name, uint32_t hash, int object, void *data)
{
    const struct provider *provider = data;
    if (object <= provider->object.number)
        return false;
    const int entry = accel_name_find_hashed(name, hash);
    return entry >= 0 && has(&provider->names, (uint32_t)entry);
}

/* Finds the first library that defines any of the names and may go; takes out of *names its names
 * and those that no such library has. Returns false if there is no such library. */
static bool next_provider(struct names *names, struct provider *provider)
{
    const struct link_map *stays = NULL, *found_map = NULL;
    for (uint32_t entry = 0; entry < accel_name_count; entry++) {
        if (!has(names, entry))
            continue;
        const void *function = accel_resolve_scopes(entry, 0);
        const struct link_map *map = function ? accel_object_of(function) : NULL;
        if (map && map != stays && !found_map && accel_objects_at(function, &provider->object)) {
            if (may_go(&provider->object))
                found_map = map;
            else
                stays = map;
        }
        if (map && found_map && map != found_map)
            continue; /* of another library, which may come next */
        take_out(names, entry);
        if (map && map == found_map)
            add_name(&provider->names, entry);
    }
    return found_map != NULL;
}

static bool is_ours(const char *name, uint32_t hash)
{
    return accel_name_find_hashed(name, hash) >= 0;
}

/* Keeps what objects from number `first` on are bound to. Reads all their relocations, which are
 * many: call it only if there is a library that may go. */
static void keep_bound_from(int first)
{
    struct names names = {{0}};
    struct accel_users users = {.next = first};
    accel_objects_using(note_name, &names, &users);
    for (;;) {
        struct provider provider = {.names = {{0}}};
        if (!next_provider(&names, &provider))
            break;
        users.next = first;
        do {
            accel_objects_using(is_bound, &provider, &users);
            for (int i = 0; i < users.count; i++)
                keep_provider(users.dynamic[i], &provider.object);
        } while (users.count > 0);
    }
}

/* ---- Names to which objects are bound in the scope of what brought them in ---- */

static bool is_our_name(const char *name, uint32_t hash, int object, void *data)
{
    (void)object;
    (void)data;
    return is_ours(name, hash);
}

/* Whether the global scope had a name before the object came: that one is bound to it. */
static bool had_globally(uint32_t entry, const ElfW(Dyn) * user)
{
    const void *function = accel_resolve_scopes(entry, 0);
    return function && accel_objects_number(function) < accel_objects_number(user);
}

static void keep_from(void *scope, const ElfW(Dyn) * user, const struct names *names)
{
    const struct link_map *last = NULL;
    for (uint32_t entry = 0; entry < accel_name_count; entry++) {
        const void *function =
            has(names, entry) ? accel_real_lookup(scope, accel_names[entry].symbol) : NULL;
        const struct link_map *map = function ? accel_object_of(function) : NULL;
        if (!map || map == last || map->l_ld == user || accel_is_own(function) ||
            had_globally(entry, user))
            continue;
        keep_found(user, function, true);
        last = map;
    }
}

static void keep_of_its_root(const ElfW(Dyn) * user)
{
    struct accel_object root;
    struct names names = {{0}};
    if (!accel_objects_root(user, &root))
        return;
    accel_objects_uses_of(user, note_name, &names);
    linker_enter();
    void *scope = dlopen(root.name, RTLD_NOLOAD | RTLD_LAZY);
    const struct link_map *map = scope;
    if (scope && map->l_ld == root.dynamic)
        keep_from(scope, user, &names);
    if (scope)
        accel_real_dlclose(scope);
    linker_leave();
}

/* The object that brought another one in, and what that one is bound to, stay the same: so each
 * object is looked at once. */
static void keep_of_roots(void)
{
    static struct looked looked;
    unsigned long long loads;
    const unsigned long long unloads = accel_objects_unloads();
    const unsigned at_start = accel_objects_at_start(), since = first_unseen(&looked, &loads);
    struct accel_users users = {.next = (int)(since > at_start ? since : at_start)};
    do {
        accel_objects_using(is_our_name, NULL, &users);
        for (int i = 0; i < users.count; i++)
            keep_of_its_root(users.dynamic[i]);
    } while (users.count > 0);
    note_look(&looked, loads, unloads);
}

/* ---- At each change ---- */

/* Whether an object behind those of the program's start defines one of the names, or one that is
 * gone has done so: each object's symbols are read once. */
static bool is_defined(void)
{
    static struct looked looked;
    static atomic_bool defined;
    if (atomic_load_explicit(&defined, memory_order_acquire))
        return true;
    unsigned long long loads;
    const unsigned long long unloads = accel_objects_unloads();
    const unsigned at_start = accel_objects_at_start(), since = first_unseen(&looked, &loads);
    if (accel_objects_define(is_ours, since > at_start ? since : at_start)) {
        atomic_store_explicit(&defined, true, memory_order_release);
        return true;
    }
    note_look(&looked, loads, unloads);
    return false;
}

/* Keeps what new objects are bound to if one of them names one of ours: the others are bound to
 * what they were. What they have called meanwhile is an original: then all are looked at. */
static void keep_bound_of_new(void)
{
    static struct looked looked;
    static _Atomic unsigned long long originals_seen;
    unsigned long long loads;
    const unsigned long long unloads = accel_objects_unloads(), originals = accel_slots_originals();
    const int unseen = (int)first_unseen(&looked, &loads);
    struct accel_users users = {.next = unseen};
    if (originals != atomic_load_explicit(&originals_seen, memory_order_acquire)) {
        keep_bound_from(0);
    } else {
        accel_objects_using(is_our_name, NULL, &users);
        if (users.count > 0)
            keep_bound_from(unseen);
    }
    atomic_store_explicit(&originals_seen, originals, memory_order_release);
    note_look(&looked, loads, unloads);
}

void accel_keep_bound(void)
{
    const unsigned long long state = accel_objects_changes() + accel_slots_originals();
    if (state == atomic_load_explicit(&state_seen, memory_order_acquire))
        return;
    if (is_defined()) {
        keep_bound_of_new();
        keep_of_roots();
    }
    atomic_store_explicit(&state_seen, state, memory_order_release);
}

/* Takes out one whose user is gone; returns its handle, NULL if there is none. */
static void *next_unneeded(void)
{
    for (struct kept *at = first_kept(); at; at = next_kept(at)) {
        const ElfW(Dyn) *user = user_of(at);
        void *const handle = handle_of(at);
        if (!user || accel_objects_has(user))
            continue;
        if (!own_lock(&lock))
            return NULL;
        const bool taken =
            handle_of(at) == handle && atomic_compare_exchange_strong(&at->user, &user, NULL);
        own_unlock(&lock);
        if (taken)
            return handle;
    }
    return NULL;
}

void accel_keep_release(void)
{
    const unsigned long long unloads = accel_objects_unloads();
    if (!own_lock(&lock))
        return;
    bool changed = unloads != unloads_seen;
    unloads_seen = unloads;
    own_unlock(&lock);
    /* A library that goes may be the last user of another. */
    for (void *handle = changed ? next_unneeded() : NULL; handle; handle = next_unneeded())
        accel_real_dlclose(handle);
}
