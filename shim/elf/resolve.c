#define _GNU_SOURCE
#include "resolve.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/forks.h"
#include "dispatch/dispatch.h"
#include "base/say.h"
#include "gpu/ending.h"
#include "base/linker.h"
#include "keep.h"
#include "objects.h"
#include "ops/op.h"
#include "own_lock.h"
#include "provider.h"

/* RTLD_NEXT and dlsym's own version: glibc moved dlsym into libc.so.6 as GLIBC_2.34; before that it
 * is in libdl under the architecture's baseline. */
static const char *const dlsym_versions[] = {"GLIBC_2.34", "GLIBC_2.2.5"};

typedef void *(*dlsym_function)(void *, const char *);

/* glibc 2.35 and later: _dl_find_object, NULL where it is not there. dladdr looks for the symbol as well, through all of a
 * library's: 0.15 ms in OpenBLAS. */
static _Atomic(void *) find_object;

static struct link_map *found_object(const void *address)
{
#ifdef DLFO_STRUCT_HAS_EH_DBASE
    void *function = atomic_load_explicit(&find_object, memory_order_acquire);
    int (*find)(void *, struct dl_find_object *);
    struct dl_find_object result;
    memcpy(&find, &function, sizeof find);
    if (find && find((void *)(uintptr_t)address, &result) == 0)
        return result.dlfo_link_map;
#endif
    (void)address;
    return NULL;
}

const struct link_map *accel_object_of(const void *address)
{
    Dl_info info;
    struct link_map *map = found_object(address);
    if (map)
        return map;
    if (!dladdr1(address, &info, (void **)&map, RTLD_DL_LINKMAP))
        return NULL;
    return map;
}

static const struct link_map *own_object(void)
{
    static _Atomic(const struct link_map *) own;
    const struct link_map *map = atomic_load_explicit(&own, memory_order_acquire);
    if (!map) {
        map = accel_object_of(accel_blocks);
        atomic_store_explicit(&own, map, memory_order_release);
    }
    return map;
}

bool accel_is_own(const void *address)
{
    return accel_object_of(address) == own_object();
}

/* The linker's own r_debug: a program may have a copy of it, which is not kept. */
static _Atomic(const struct r_debug *) linker_state;

bool accel_resolve_maps(void)
{
    const struct r_debug *state = atomic_load_explicit(&linker_state, memory_order_acquire);
    return state && *(const volatile int *)&state->r_state != RT_CONSISTENT;
}

void accel_resolve_init(void)
{
    if (atomic_load_explicit(&accel_real_dlsym, memory_order_acquire))
        return;
    void *real = NULL;
    atomic_store_explicit(&linker_state, dlvsym(RTLD_NEXT, "_r_debug", "GLIBC_2.2.5"),
                          memory_order_release);
    atomic_store_explicit(&find_object, dlvsym(RTLD_NEXT, "_dl_find_object", "GLIBC_2.35"),
                          memory_order_release);
    for (size_t i = 0; !real && i < sizeof dlsym_versions / sizeof *dlsym_versions; i++)
        real = dlvsym(RTLD_NEXT, "dlsym", dlsym_versions[i]);
    atomic_store_explicit(&accel_real_dlsym, real, memory_order_release);
}

void *accel_real_lookup(void *handle, const char *name)
{
    accel_resolve_init();
    void *real = atomic_load_explicit(&accel_real_dlsym, memory_order_acquire);
    dlsym_function lookup;
    memcpy(&lookup, &real, sizeof lookup);
    void *found = lookup(handle, name);
    /* Not merely `return lookup(...)`: as a tail jump it would be our caller that asks. */
    __asm__ volatile("" : "+r"(found));
    return found;
}

int accel_real_dlclose(void *handle)
{
    static _Atomic(void *) real;
    void *function = atomic_load_explicit(&real, memory_order_acquire);
    if (!function) {
        function = accel_real_lookup(RTLD_NEXT, "dlclose");
        atomic_store_explicit(&real, function, memory_order_release);
    }
    int (*close_function)(void *);
    memcpy(&close_function, &function, sizeof close_function);
    ending_before_close();
    int result = close_function(handle);
    ending_after_close();
    return result;
}

char *accel_real_dlerror(void)
{
    static _Atomic(void *) real;
    void *function = atomic_load_explicit(&real, memory_order_acquire);
    if (!function) {
        function = (void *)(uintptr_t)accel_objects_function("dlerror", own_object()->l_ld);
        atomic_store_explicit(&real, function, memory_order_release);
    }
    char *(*error_function)(void);
    memcpy(&error_function, &function, sizeof error_function);
    return error_function ? error_function() : NULL;
}

/* The namespace of an object (dlmopen), LM_ID_NEWLM where it cannot be told. */
static Lmid_t namespace_of(const struct link_map *object)
{
    Lmid_t space = LM_ID_NEWLM;
    /* glibc's handles are link maps. */
    if (dlinfo((void *)(uintptr_t)object, RTLD_DI_LMID, &space) != 0)
        return LM_ID_NEWLM;
    return space;
}

static bool is_in_our_namespace(const struct link_map *object)
{
    return namespace_of(object) == namespace_of(own_object());
}

void *accel_resolve_handle(const struct link_map *object)
{
    const Lmid_t space = namespace_of(object);
    if (space == LM_ID_NEWLM)
        return NULL;
    void *handle =
        dlmopen(space, object->l_name[0] ? object->l_name : NULL, RTLD_NOLOAD | RTLD_LAZY);
    if (handle && handle != object) {
        accel_real_dlclose(handle);
        return NULL;
    }
    return handle;
}

/* Under linker_enter(). Closes the handle; NULL is none. */
static void *lookup_by(void *handle, const char *name)
{
    if (!handle)
        return NULL;
    void *found = accel_real_lookup(handle, name);
    accel_real_dlclose(handle);
    return found && !accel_is_own(found) ? found : NULL;
}

static void *lookup_in(const struct link_map *object, const char *name)
{
    linker_enter();
    void *found = lookup_by(accel_resolve_handle(object), name);
    linker_leave();
    return found;
}

/* By the linker's name for an object of our own namespace. */
static void *lookup_in_named(const char *object, const char *name)
{
    linker_enter();
    void *found = lookup_by(dlopen(object[0] ? object : NULL, RTLD_NOLOAD | RTLD_LAZY), name);
    linker_leave();
    return found;
}

/* ---- What a provider is ---- */

/* A library may have functions of its own, with other arguments, under a name or two of these: what has few is not taken for BLAS. */
enum { NAMES_OF_A_LIBRARY = 8 };

static bool is_library_of(const struct link_map *object, uint32_t entry)
{
    int names = 0;
    for (uint32_t i = entry % accel_mangling_count;
         names < NAMES_OF_A_LIBRARY && i < accel_blas_name_count; i += accel_mangling_count)
        names += accel_object_defines(object->l_addr, object->l_ld, accel_names[i].sibling);
    return names == NAMES_OF_A_LIBRARY;
}

/* As the names in other manglings say that the library has: scipy-openblas 0.3.31 has its batches under plain
 * names alone. */
static int width_of_others(const struct link_map *object)
{
    for (uint32_t i = 0; i < accel_mangling_count; i++) {
        const struct accel_mangling *mangling = accel_name_mangling(i);
        void *isamax = mangling->width ? lookup_in(object, mangling->probe) : NULL;
        if (isamax && accel_object_of(isamax) == object)
            return mangling->width;
    }
    return 0;
}

static int probed_width(const struct accel_mangling *mangling, const struct link_map *object)
{
    void *isamax = lookup_in(object, mangling->probe);
    if (isamax)
        return accel_provider_width(isamax, mangling->abi);
    /* A library that has only part of BLAS: the Fortran name, then the one that it would call. */
    isamax = lookup_in(object, "isamax_");
    if (!isamax) {
        int width = width_of_others(object);
        /* Another namespace's libraries call none of ours. */
        if (width || !is_in_our_namespace(object))
            return width;
        isamax = accel_real_lookup(RTLD_NEXT, "isamax_");
        dlerror();
    }
    return isamax && !accel_is_own(isamax) ? accel_provider_width(isamax, ACCEL_ABI_FORTRAN) : 0;
}

/*
 * What was found of the last few libraries: a look-up in one that came in as another's dependency takes the linker some
 * hundred microseconds, and each of its names would need it. What a name was probed by is the same for all of an interface.
 */
static struct {
    const struct link_map *object;
    const char *probe;
    unsigned long long unloads; /* at that time: after one, the place may be another object's */
    int width;                  /* never 0: a library that comes later may tell */
} known[16];
static unsigned known_next;
static pthread_mutex_t known_lock = PTHREAD_MUTEX_INITIALIZER;
FORKS_LOCK(known_lock);

static int probed_width_once(uint32_t entry, const struct link_map *object)
{
    const struct accel_mangling *mangling = accel_name_mangling(entry);
    const unsigned long long unloads = accel_objects_unloads();
    int width = 0;
    const bool looked = own_lock(&known_lock);
    for (size_t i = 0; looked && !width && i < sizeof known / sizeof *known; i++)
        if (known[i].object == object && known[i].unloads == unloads &&
            known[i].probe == mangling->probe)
            width = known[i].width;
    if (looked)
        own_unlock(&known_lock);
    if (width)
        return width;
    width = is_library_of(object, entry) ? probed_width(mangling, object) : 0;
    if (!width)
        return 0;
    if (!own_lock(&known_lock))
        return width;
    unsigned at = known_next++ % (sizeof known / sizeof *known);
    known[at].object = object;
    known[at].probe = mangling->probe;
    known[at].unloads = unloads;
    known[at].width = width;
    own_unlock(&known_lock);
    return width;
}

/* The INTEGER width of the library that defines function, 0 where it cannot be told, or there is none. */
static int width_of(uint32_t entry, void *function)
{
    const struct accel_mangling *mangling = accel_name_mangling(entry);
    if (mangling->abi == ACCEL_ABI_OWN)
        return 0;
    const struct accel_name *name = &accel_names[entry];
    const struct link_map *object = accel_object_of(function);
    if (!object)
        return 0;
    if (!mangling->trusted && !accel_object_defines(object->l_addr, object->l_ld, name->sibling))
        return 0;
    return mangling->width ? mangling->width : probed_width_once(entry, object);
}

/* What an operation of another library asks its provider for. */
static void *symbol_of(const struct accel_provider *provider, const char *name)
{
    const struct link_map *object = accel_object_of(provider->function);
    void *found = object ? lookup_in(object, name) : NULL;
    return found && accel_object_of(found) == object ? found : NULL;
}

static bool is_accepted(uint32_t entry, void *function)
{
    const struct accel_op *op = accel_op_of(accel_name_routine(entry));
    const struct accel_provider provider = {function, symbol_of};
    return op->accepts && op->accepts(&provider);
}

/* Where memory has run out, a call still needs its original. These are never given back, and one that is there already
 * serves again. */
#define RESERVE 512
static struct accel_original reserve[RESERVE];
static int reserved;
static pthread_mutex_t reserve_lock = PTHREAD_MUTEX_INITIALIZER;
FORKS_LOCK(reserve_lock);

static struct accel_original *from_reserve(const struct accel_original *wanted)
{
    struct accel_original *original = NULL;
    if (!own_lock(&reserve_lock))
        return NULL;
    for (int i = 0; !original && i < reserved; i++)
        if (reserve[i].function == wanted->function && reserve[i].width == wanted->width &&
            reserve[i].ours == wanted->ours && reserve[i].global == wanted->global &&
            reserve[i].wide == wanted->wide)
            original = &reserve[i];
    if (!original && reserved < RESERVE) {
        original = &reserve[reserved++];
        *original = *wanted;
    }
    own_unlock(&reserve_lock);
    return original;
}

static const struct accel_original *make_original(uint32_t entry, void *function, bool global,
                                                  const struct accel_original *wide)
{
    const int width = width_of(entry, function);
    const struct accel_original wanted = {.function = function,
                                          .ours = width != 0 || is_accepted(entry, function),
                                          .width = width,
                                          .global = global,
                                          .wide = wide};
    struct accel_original *original = malloc(sizeof *original);
    if (!original)
        return from_reserve(&wanted);
    *original = wanted;
    return original;
}

void accel_original_free(const struct accel_original *original)
{
    if (original < reserve || original >= reserve + RESERVE)
        free((void *)(uintptr_t)original);
}

const struct accel_original *accel_resolve_known(uint32_t entry, void *function)
{
    const struct accel_original *original = make_original(entry, function, false, NULL);
    dlerror();
    return original;
}

/* ---- The four stages ---- */

static void *from_caller_scope(const char *name, uintptr_t ret)
{
    /* The byte before the return address is in the call instruction, the one at it may not be in
     * the same function, nor in any. */
    const struct link_map *caller = accel_object_of((const void *)(ret - 1));
    /* Code of another namespace is not bound to us: it has a pointer that one of ours handed out. */
    if (!caller || caller == own_object() || !is_in_our_namespace(caller))
        return NULL;
    return lookup_in(caller, name);
}

/* The first provider of the name among the loaded objects, and *wide: the first ILP64 one where
 * both widths are there, else NULL. */
static void *from_loaded_objects(uint32_t entry, void **wide)
{
    struct accel_objects objects = {.next = 0};
    void *by_width[3] = {NULL}; /* unknown, 32, 64 */
    *wide = NULL;
    do {
        accel_objects_defining(accel_names[entry].symbol, objects.next, &objects);
        for (size_t at = 0; at < objects.used; at += strlen(objects.text + at) + 1) {
            void *found = lookup_in_named(objects.text + at, accel_names[entry].symbol);
            if (!found || found == by_width[0] || found == by_width[1] || found == by_width[2])
                continue;
            int w = width_of(entry, found) / 32;
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
                return found; /* stays loaded: it is in use from now on */
            if (handle)
                accel_real_dlclose(handle);
            else if (!atomic_exchange(&said, true))
                accel_say("ACCEL_ORIGINAL: %s cannot be opened", path);
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
    return found || !ret ? found : from_caller_scope(name, ret);
}

bool accel_resolve_is_before_us(uintptr_t ret)
{
    const struct link_map *caller = accel_object_of((const void *)(ret - 1));
    const struct link_map *map = own_object()->l_prev;
    while (map && map != caller)
        map = map->l_prev;
    return map != NULL;
}

void *accel_resolve_between(const char *name, uintptr_t ret)
{
    const struct link_map *map = accel_object_of((const void *)(ret - 1));
    for (map = map->l_next; map && map != own_object(); map = map->l_next) {
        void *found = lookup_in(map, name);
        if (found && accel_object_of(found) == map)
            return found;
    }
    return NULL;
}

const struct accel_original *accel_resolve(uint32_t entry, uintptr_t ret)
{
    const char *name = accel_names[entry].symbol;
    bool global = false;
    void *wide = NULL;
    void *found = from_global_scope(name);
    if (found) {
        global = true;
        accel_keep((const void *)(ret - 1), found);
    } else if (!(found = from_caller_scope(name, ret))) {
        found = from_loaded_objects(entry, &wide);
        if (!found || wide) {
            void *extra = from_extra_libraries(name);
            if (extra) {
                found = extra;
                wide = NULL;
            }
        }
    }
    const struct accel_original *ilp64 = wide ? make_original(entry, wide, false, NULL) : NULL;
    const struct accel_original *original =
        found ? make_original(entry, found, global, ilp64) : NULL;
    dlerror(); /* what our look-ups have left there is not for the program */
    return original;
}
