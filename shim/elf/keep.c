#define _GNU_SOURCE
#include "keep.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/forks.h"
#include "base/linker.h"
#include "objects.h"
#include "own_lock.h"
#include "real_linker.h"
#include "resolve.h"
#include "slots.h"

/* Each user has a handle of its own, so that a library goes with the last object that needs it. */
struct kept {
    const ElfW(Dyn) * user, *provider;
    void *handle;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
FORKS_LOCK(lock);
static struct kept *kept;
static size_t kept_count, kept_max;
static unsigned long long unloads_seen;
static _Atomic unsigned long long state_seen;

/* Call it under the lock. */
static struct kept *find(const ElfW(Dyn) * user, const ElfW(Dyn) * provider)
{
    for (size_t i = 0; i < kept_count; i++)
        if (kept[i].user == user && kept[i].provider == provider)
            return &kept[i];
    return NULL;
}

static bool is_kept(const ElfW(Dyn) * user, const ElfW(Dyn) * provider)
{
    if (!own_lock(&lock))
        return false;
    bool found = find(user, provider) != NULL;
    own_unlock(&lock);
    return found;
}

/* Takes the handle; returns false, and does not, if it is kept already or memory is short. */
static bool remember(const struct kept *wanted)
{
    bool added = false;
    if (!own_lock(&lock))
        return false;
    if (kept_count == kept_max) {
        size_t more = kept_max ? 2 * kept_max : 16;
        struct kept *grown = realloc(kept, more * sizeof *grown);
        if (grown) {
            kept = grown;
            kept_max = more;
        }
    }
    if (kept_count < kept_max && !find(wanted->user, wanted->provider)) {
        kept[kept_count++] = *wanted;
        added = true;
    }
    own_unlock(&lock);
    return added;
}

static void keep(const ElfW(Dyn) * user, const struct accel_object *provider)
{
    if (user == provider->dynamic || is_kept(user, provider->dynamic))
        return;
    linker_enter();
    const struct kept wanted = {user, provider->dynamic,
                                dlopen(provider->name, RTLD_NOLOAD | RTLD_LAZY)};
    const struct link_map *map = wanted.handle;
    /* By now, the name may lead to another library. */
    if (wanted.handle && (map->l_ld != provider->dynamic || !remember(&wanted)))
        accel_real_dlclose(wanted.handle);
    linker_leave();
}

/* Objects of the program's start are never unloaded. While constructors run there are no others that matter: to open one again would run its
 * constructor before its turn. */
static bool may_go(const struct accel_object *object)
{
    const unsigned at_start = accel_objects_at_start();
    return at_start > 0 && (unsigned)object->number >= at_start;
}

void accel_keep(const void *user, const void *function)
{
    const struct link_map *from = accel_object_of(user), *to = accel_object_of(function);
    struct accel_object provider;
    if (!from || !to || from == to || is_kept(from->l_ld, to->l_ld))
        return;
    if (accel_objects_at(function, &provider) && may_go(&provider))
        keep(from->l_ld, &provider);
}

/* Returns the handle of the next library that is kept for a user, NULL if there is none. It stays while the user does. */
static void *next_handle(const ElfW(Dyn) * user, size_t *next)
{
    void *handle = NULL;
    if (!own_lock(&lock))
        return NULL;
    for (; !handle && *next < kept_count; ++*next)
        if (kept[*next].user == user)
            handle = kept[*next].handle;
    own_unlock(&lock);
    return handle;
}

void *accel_kept_lookup(const struct link_map *user, const char *name)
{
    void *handle, *found = NULL;
    for (size_t next = 0; !found && (handle = next_handle(user->l_ld, &next));)
        found = accel_real_lookup(handle, name);
    return found && !accel_is_own(found) ? found : NULL;
}

/* ---- Names to which objects are bound ---- */

/* A set of exported entries: a bit each. */
struct names {
    uint64_t bits[(ACCEL_ENTRIES_MAX + 63) / 64];
};

static void add(struct names *names, uint32_t entry)
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

static bool note_name(const char *name, int object, void *data)
{
    int entry = accel_name_find(name);
    (void)object;
    if (entry >= 0)
        add(data, (uint32_t)entry);
    return false;
}

/* A library, and the names that the global scope finds in it. */
struct provider {
    struct accel_object object;
    struct names names;
};

/* An object that was loaded before the library can be bound to it only by a call, and accel_resolve() has seen that. */
static bool is_bound(const char *name, int object, void *data)
{
    const struct provider *provider = data;
    int entry = accel_name_find(name);
    return object > provider->object.number && entry >= 0 && has(&provider->names, (uint32_t)entry);
}

/* Finds the first library that defines any of the names and may go; takes out of *names its names and those that no such library
 * has. Returns false if there is no such library. */
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
            add(&provider->names, entry);
    }
    return found_map != NULL;
}

static bool is_ours(const char *name)
{
    return accel_name_find(name) >= 0;
}

/* Reads the relocations of all objects, which are many: call it only if there is a library that may go. */
static void keep_all_bound(void)
{
    struct names names = {{0}};
    struct accel_users users = {.next = 0};
    accel_objects_using(note_name, &names, &users);
    for (;;) {
        struct provider provider = {.names = {{0}}};
        if (!next_provider(&names, &provider))
            break;
        users.next = 0;
        do {
            accel_objects_using(is_bound, &provider, &users);
            for (int i = 0; i < users.count; i++)
                keep(users.dynamic[i], &provider.object);
        } while (users.count > 0);
    }
}

void accel_keep_bound(void)
{
    const unsigned long long state = accel_objects_changes() + accel_slots_originals();
    if (state == atomic_load_explicit(&state_seen, memory_order_acquire))
        return;
    if (accel_objects_define(is_ours, accel_objects_at_start()))
        keep_all_bound();
    atomic_store_explicit(&state_seen, state, memory_order_release);
}

/* Takes out one whose user is gone; returns its handle, NULL if there is none. */
static void *next_unneeded(void)
{
    for (size_t i = 0;; i++) {
        struct kept one;
        if (!own_lock(&lock))
            return NULL;
        bool there = i < kept_count;
        if (there)
            one = kept[i];
        own_unlock(&lock);
        if (!there)
            return NULL;
        if (accel_objects_has(one.user))
            continue;
        if (!own_lock(&lock))
            return NULL;
        struct kept *place = find(one.user, one.provider);
        bool taken = place && place->handle == one.handle;
        if (taken)
            *place = kept[--kept_count];
        own_unlock(&lock);
        if (taken)
            return one.handle;
    }
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

/* In the child of a fork: another thread of the parent may have been in the middle of growing the array. The libraries stay. */
static void forget_kept(void)
{
    kept = NULL;
    kept_count = kept_max = 0;
}
FORKS_CHILD(forget_kept);
