#define _GNU_SOURCE
#include "resolve.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/thread/forks.h"
#include "base/thread/linker.h"
#include "base/output/message.h"
#include "keep.h"
#include "objects.h"
#include "ops/op.h"
#include "own_lock.h"
#include "provider.h"
#include "real_linker.h"

static void *symbol_of(const struct accel_provider *provider, const char *name)
{
    const struct link_map *object = accel_object_of(provider->function);
    void *found = object ? accel_real_lookup_in(object, name) : NULL;
    if (!found)
        dlerror(); /* drops our look-up's message */
    return found && accel_object_of(found) == object ? found : NULL;
}

static const char *path_of_provider(const struct accel_provider *provider)
{
    const struct link_map *object = accel_object_of(provider->function);
    return object ? object->l_name : "";
}

static bool is_named(const char *name, uint32_t hash, int object, void *wanted)
{
    (void)hash;
    (void)object;
    return strcmp(name, wanted) == 0;
}

static bool refers_to(const struct accel_provider *provider, const char *name)
{
    const struct link_map *object = accel_object_of(provider->function);
    struct accel_users users = {.next = 0};
    bool found = false;
    do {
        accel_objects_using(is_named, (void *)(uintptr_t)name, &users);
        for (int i = 0; object && i < users.count; i++)
            found = found || users.dynamic[i] == object->l_ld;
    } while (!found && users.count > 0);
    return found;
}

struct accel_provider accel_resolve_provider(void *function)
{
    return (struct accel_provider){function, symbol_of, path_of_provider, refers_to};
}

/* Whether libaccel may know a library's function. */
static bool may_know_function(const struct accel_routine *routine)
{
    const struct accel_foreign *foreign = accel_op_of(routine)->foreign;
    return foreign && foreign->accepts && dispatch_takes_library(routine);
}

static int layout_of(uint32_t entry, void *function)
{
    const struct accel_routine *routine = accel_name_routine(entry);
    const struct accel_provider provider = accel_resolve_provider(function);
    return may_know_function(routine) ? accel_op_of(routine)->foreign->accepts(&provider) : 0;
}

/* All that have been made. They are never freed, as another thread may hold one; an equal one
 * serves again, or a program that opens and closes plug-ins would grow with each. */
static struct made {
    struct accel_original original;
    unsigned long long unloads; /* as of when it was last wanted */
    struct made *before;
} * made;
static pthread_mutex_t made_lock = PTHREAD_MUTEX_INITIALIZER;
FORKS_LOCK(made_lock);

/* For when memory has run out: a call still needs its original. */
#define RESERVE 512
static struct made reserve[RESERVE];
static int reserved;

static bool is_same_original(const struct accel_original *a, const struct accel_original *b)
{
    return a->function == b->function && a->computes == b->computes && a->width == b->width &&
           a->layout == b->layout && a->global == b->global && a->wide == b->wide &&
           a->unasked == b->unasked;
}

/* Under the lock. */
static struct made *find_made(const struct accel_original *wanted)
{
    struct made *at = made;
    while (at && !is_same_original(&at->original, wanted))
        at = at->before;
    return at;
}

/* Of a signal handler that has interrupted who holds the lock. */
static const struct accel_original *store_beside(const struct accel_original *wanted)
{
    struct accel_original *original = malloc(sizeof *original);
    if (original)
        *original = *wanted;
    return original;
}

static const struct accel_original *store_original(const struct accel_original *wanted)
{
    const unsigned long long unloads = accel_objects_unloads();
    if (!own_lock(&made_lock))
        return store_beside(wanted);
    struct made *at = find_made(wanted);
    if (!at) {
        at = malloc(sizeof *at);
        if (!at && reserved < RESERVE)
            at = &reserve[reserved++];
        if (at) {
            at->original = *wanted;
            at->before = made;
            made = at;
        }
    } else if (at->unloads != unloads) { /* the address may be another library's now */
        atomic_store_explicit(&at->original.library, NULL, memory_order_release);
    }
    if (at)
        at->unloads = unloads;
    own_unlock(&made_lock);
    return at ? &at->original : NULL;
}

static const struct accel_original *make_original(uint32_t entry, void *function, bool global,
                                                  const struct accel_original *wide)
{
    const int width = accel_provider_width(entry, function), layout = layout_of(entry, function);
    void *computes = function, *behind = accel_provider_behind(entry, function);
    for (; behind; behind = accel_provider_behind(entry, behind))
        computes = behind;
    const struct accel_original wanted = {.function = function,
                                          .computes = computes,
                                          .ours = width || layout > 0,
                                          .width = width,
                                          .layout = layout,
                                          .global = global,
                                          .wide = wide};
    return store_original(&wanted);
}

const struct accel_original *accel_resolve_known(uint32_t entry, void *function)
{
    const struct accel_original *original = make_original(entry, function, false, NULL);
    dlerror();
    return original;
}

const struct accel_original *accel_resolve_unasked(uint32_t entry, void *function)
{
    const struct accel_routine *routine = accel_name_routine(entry);
    const struct link_map *object = accel_object_of(function);
    /* A variable may have such a name, too. */
    if (!object || !accel_object_defines(object->l_addr, object->l_ld, accel_names[entry].symbol) ||
        !(accel_provider_may_be(entry, function) || may_know_function(routine)))
        return NULL;
    const struct accel_original wanted = {
        .function = function, .computes = function, .unasked = true};
    return store_original(&wanted);
}

/* ---- The four stages ---- */

/* Whether a function comes before libaccel in the global scope: another preload's, or the
 * program's. It gets all calls itself, so one that reaches us has been passed on by it. */
static bool is_before_us(const void *function)
{
    return accel_resolve_is_before_us((uintptr_t)function + 1);
}

static void *from_caller_scope(const char *name, uintptr_t ret)
{
    /* The byte before the return address is in the call instruction; the byte at it may lie in
     * another function or in none. */
    const struct link_map *caller = accel_object_of((const void *)(ret - 1));
    struct accel_object root;
    /* Code of another namespace is not bound to us: it calls a pointer that code of our namespace
     * has handed out. */
    if (!caller || caller == accel_own_object() || !accel_is_in_our_namespace(caller))
        return NULL;
    void *found =
        accel_objects_root(caller->l_ld, &root) ? accel_real_lookup_named(root.name, name) : NULL;
    if (found) /* as glibc does, which notes that the caller depends on it */
        accel_keep_of_root((const void *)(ret - 1), found);
    else
        found = accel_kept_lookup(caller, name);
    found = found ? found : accel_real_lookup_in(caller, name);
    return found && !is_before_us(found) ? found : NULL;
}

/* Returns the first provider of the name among the loaded objects: LP64, else ILP64, else of
 * unknown width; in *wide the first ILP64 one if there are both widths, else NULL. */
static void *from_loaded_objects(uint32_t entry, void **wide)
{
    struct accel_objects objects = {.next = 0};
    void *by_width[3] = {NULL}; /* unknown, 32, 64 */
    *wide = NULL;
    do {
        accel_objects_defining(accel_names[entry].symbol, objects.next, &objects);
        for (size_t at = 0; at < objects.used; at += strlen(objects.text + at) + 1) {
            void *found = accel_real_lookup_named(objects.text + at, accel_names[entry].symbol);
            if (!found || is_before_us(found) || found == by_width[0] || found == by_width[1] ||
                found == by_width[2])
                continue;
            int w = accel_provider_width(entry, found) / 32;
            if (!by_width[w])
                by_width[w] = found;
        }
    } while (objects.used > 0);
    if (by_width[1] && by_width[2])
        *wide = by_width[2];
    return by_width[1] ? by_width[1] : by_width[2] ? by_width[2] : by_width[0];
}

static void *from_extra_libraries(const char *name)
{
    char path[4096];
    const char *at = dispatch_original_libraries();
    static atomic_bool said;
    while (at && *at) {
        size_t length = strcspn(at, ":");
        if (length > 0 && length < sizeof path) {
            memcpy(path, at, length);
            path[length] = 0;
            linker_enter();
            void *handle = dlopen(path, RTLD_LAZY | RTLD_LOCAL);
            linker_leave();
            void *found = handle ? accel_real_lookup(handle, name) : NULL;
            if (found && !accel_is_own(found))
                return found; /* in use from now on: it stays loaded */
            if (handle)
                accel_real_dlclose(handle);
            else if (!atomic_exchange(&said, true))
                accel_message("ACCEL_ORIGINAL: %s cannot be opened; libaccel ignores it", path);
        }
        at += length + (at[length] == ':');
    }
    return NULL;
}

static void *from_global_scope(const char *name)
{
    void *found = accel_real_lookup(RTLD_NEXT, name);
    return found && !accel_is_own(found) ? found : NULL;
}

void *accel_resolve_scopes(uint32_t entry, uintptr_t ret)
{
    const char *name = accel_names[entry].symbol;
    void *found = from_global_scope(name);
    if (found && ret)
        accel_keep((const void *)(ret - 1), found);
    return found || !ret ? found : from_caller_scope(name, ret);
}

bool accel_resolve_is_before_us(uintptr_t ret)
{
    const struct link_map *caller = accel_object_of((const void *)(ret - 1));
    const struct link_map *map = accel_own_object()->l_prev;
    while (map && map != caller)
        map = map->l_prev;
    return map != NULL;
}

void *accel_resolve_between(const char *name, uintptr_t ret)
{
    const struct link_map *map = accel_object_of((const void *)(ret - 1));
    for (map = map->l_next; map && map != accel_own_object(); map = map->l_next) {
        void *found = accel_real_lookup_in(map, name);
        if (found && accel_object_of(found) == map)
            return found;
    }
    return NULL;
}

/* A library that dlopen() has added to the global scope is the original of callers that came after
 * it, and of those that have no other. One that was there before, and has BLAS in its own scope, is
 * bound to that: for good, if its own dlopen() said RTLD_NOW, as Python's does. */
static void *from_later_global_scope(const char *name, uintptr_t ret, void *global, int number)
{
    void *const own = accel_objects_number((const void *)(ret - 1)) < number
                          ? from_caller_scope(name, ret)
                          : NULL;
    return own ? own : global;
}

const struct accel_original *accel_resolve(uint32_t entry, uintptr_t ret)
{
    const char *name = accel_names[entry].symbol;
    void *wide = NULL, *const first = from_global_scope(name), *found = first;
    const int number = first ? accel_objects_number(first) : -1;
    const unsigned at_start = accel_objects_at_start();
    const bool global = number >= 0 && (at_start == 0 || (unsigned)number < at_start);
    if (first && !global)
        found = from_later_global_scope(name, ret, first, number);
    if (found && found == first)
        accel_keep((const void *)(ret - 1), found);
    if (!found)
        found = from_caller_scope(name, ret);
    if (!found)
        found = from_loaded_objects(entry, &wide);
    void *extra = found && !wide ? NULL : from_extra_libraries(name);
    if (extra) {
        found = extra;
        wide = NULL;
    }
    const struct accel_original *ilp64 = wide ? make_original(entry, wide, false, NULL) : NULL;
    const struct accel_original *original =
        found ? make_original(entry, found, global, ilp64) : NULL;
    dlerror(); /* drops our look-ups' messages */
    return original;
}
