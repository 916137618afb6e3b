#define _GNU_SOURCE
#include "real_linker.h"

#include <dlfcn.h>
#include <link.h>
#include <string.h>

#include "base/thread/linker.h"
#include "gpu/device/exit_guard.h"
#include "objects.h"
#include "shim/arch/entry.h"

_Atomic(void *) accel_real_dlsym, accel_next_dlsym;

/* The linker's own r_debug: a program's copy of it, if there is one, is not up to date. */
static _Atomic(const struct r_debug *) linker_state;

/* The version of glibc's first names: that of the first glibc for an architecture (shlib-versions
 * in glibc's sysdeps). */
#ifdef __aarch64__
#    define BASELINE "GLIBC_2.17"
#else
#    define BASELINE "GLIBC_2.2.5"
#endif

/* RTLD_NEXT and dlsym's own version (dlclose's, too): glibc moved dlsym into libc.so.6 as
 * GLIBC_2.34; before that it is in libdl under the architecture's baseline. */
static const char *const dlsym_versions[] = {"GLIBC_2.34", BASELINE};

typedef void *(*dlsym_function)(void *, const char *);

/* _dl_find_object of glibc 2.35 and later, else NULL. dladdr also searches all of a library's
 * symbols: 0.15 ms in OpenBLAS. */
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
    return map || dladdr1(address, &info, (void **)&map, RTLD_DL_LINKMAP) ? map : NULL;
}

const struct link_map *accel_own_object(void)
{
    static _Atomic(const struct link_map *) own;
    const struct link_map *map = atomic_load_explicit(&own, memory_order_acquire);
    if (!map) {
        map = accel_object_of(&linker_state);
        atomic_store_explicit(&own, map, memory_order_release);
    }
    return map;
}

const void *accel_object_begin(const struct link_map *object)
{
    Dl_info info;
#ifdef DLFO_STRUCT_HAS_EH_DBASE
    void *function = atomic_load_explicit(&find_object, memory_order_acquire);
    int (*find)(void *, struct dl_find_object *);
    struct dl_find_object result;
    memcpy(&find, &function, sizeof find);
    if (find && find(object->l_ld, &result) == 0)
        return result.dlfo_link_map == object ? result.dlfo_map_start : NULL;
#endif
    return dladdr(object->l_ld, &info) ? info.dli_fbase : NULL;
}

bool accel_is_own(const void *address)
{
    return accel_object_of(address) == accel_own_object();
}

bool accel_real_maps(void)
{
    const struct r_debug *state = atomic_load_explicit(&linker_state, memory_order_acquire);
    return state && *(const volatile int *)&state->r_state != RT_CONSISTENT;
}

static void *lookup_with(void *function, void *handle, const char *name)
{
    dlsym_function lookup;
    memcpy(&lookup, &function, sizeof lookup);
    void *found = lookup(handle, name);
    /* `return lookup(...)` may become a tail jump: then the look-up would be our caller's. */
    __asm__ volatile("" : "+r"(found));
    return found;
}

/* Another preload's dlvsym asks our dlsym for the next one at its first call, which may be ours
 * below: until that has come back, the C library's own dlsym answers. */
static void ask_the_c_library(void)
{
    const struct link_map *map = accel_object_of((const void *)dladdr1);
    const void *real = map ? accel_object_function(map->l_addr, map->l_ld, "dlsym") : NULL;
    atomic_store_explicit(&accel_real_dlsym, (void *)(uintptr_t)real, memory_order_release);
    atomic_store_explicit(&accel_next_dlsym, (void *)(uintptr_t)real, memory_order_release);
}

void accel_real_init(void)
{
    static atomic_bool begun;
    if (atomic_load_explicit(&accel_next_dlsym, memory_order_acquire))
        return;
    if (atomic_exchange_explicit(&begun, true, memory_order_acq_rel)) {
        ask_the_c_library();
        return;
    }
    void *real = NULL;
    atomic_store_explicit(&linker_state, dlvsym(RTLD_NEXT, "_r_debug", BASELINE),
                          memory_order_release);
    atomic_store_explicit(&find_object, dlvsym(RTLD_NEXT, "_dl_find_object", "GLIBC_2.35"),
                          memory_order_release);
    for (size_t i = 0; !real && i < sizeof dlsym_versions / sizeof *dlsym_versions; i++)
        real = dlvsym(RTLD_NEXT, "dlsym", dlsym_versions[i]);
    atomic_store_explicit(&accel_real_dlsym, real, memory_order_release);
    void *next = lookup_with(real, RTLD_NEXT, "dlsym");
    atomic_store_explicit(&accel_next_dlsym, next ? next : real, memory_order_release);
}

void *accel_real_lookup(void *handle, const char *name)
{
    accel_real_init();
    return lookup_with(atomic_load_explicit(&accel_real_dlsym, memory_order_acquire), handle, name);
}

bool accel_next_lookup(void *handle, const char *name, void **found)
{
    void *next = atomic_load_explicit(&accel_next_dlsym, memory_order_acquire);
    if (next == atomic_load_explicit(&accel_real_dlsym, memory_order_acquire))
        return false;
    *found = lookup_with(next, handle, name);
    return true;
}

void *accel_real_next(_Atomic(void *) *known, const char *name)
{
    void *function = atomic_load_explicit(known, memory_order_acquire);
    if (!function) {
        function = accel_real_lookup(RTLD_NEXT, name);
        atomic_store_explicit(known, function, memory_order_release);
    }
    return function;
}

static int close_with(void *function, void *handle)
{
    int (*close_function)(void *);
    memcpy(&close_function, &function, sizeof close_function);
    exit_guard_before_close();
    int result = close_function(handle);
    exit_guard_after_close();
    return result;
}

int accel_real_dlclose(void *handle)
{
    static _Atomic(void *) real;
    void *function = atomic_load_explicit(&real, memory_order_acquire);
    for (size_t i = 0; !function && i < sizeof dlsym_versions / sizeof *dlsym_versions; i++)
        function = dlvsym(RTLD_NEXT, "dlclose", dlsym_versions[i]);
    atomic_store_explicit(&real, function, memory_order_release);
    return close_with(function, handle);
}

int accel_next_dlclose(void *handle)
{
    static _Atomic(void *) next;
    return close_with(accel_real_next(&next, "dlclose"), handle);
}

char *accel_real_dlerror(void)
{
    static _Atomic(void *) real;
    void *function = atomic_load_explicit(&real, memory_order_acquire);
    if (!function) {
        function = (void *)(uintptr_t)accel_objects_function("dlerror", accel_own_object()->l_ld);
        atomic_store_explicit(&real, function, memory_order_release);
    }
    char *(*error_function)(void);
    memcpy(&error_function, &function, sizeof error_function);
    return error_function ? error_function() : NULL;
}

/* Returns the namespace of an object (dlmopen), LM_ID_NEWLM if it cannot be told. */
static Lmid_t namespace_of(const struct link_map *object)
{
    Lmid_t space = LM_ID_NEWLM;
    /* glibc's handles are link maps. */
    if (dlinfo((void *)(uintptr_t)object, RTLD_DI_LMID, &space) != 0)
        return LM_ID_NEWLM;
    return space;
}

bool accel_is_in_our_namespace(const struct link_map *object)
{
    return namespace_of(object) == namespace_of(accel_own_object());
}

void *accel_real_handle(const struct link_map *object)
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

/* Looks up, and closes the handle (NULL: none). Call it within linker_enter(). */
static void *lookup_by(void *handle, const char *name)
{
    if (!handle)
        return NULL;
    void *found = accel_real_lookup(handle, name);
    accel_real_dlclose(handle);
    return found && !accel_is_own(found) ? found : NULL;
}

void *accel_real_lookup_in(const struct link_map *object, const char *name)
{
    linker_enter();
    void *found = lookup_by(accel_real_handle(object), name);
    linker_leave();
    return found;
}

void *accel_real_lookup_named(const char *name, const char *symbol)
{
    linker_enter();
    void *found = lookup_by(dlopen(name[0] ? name : NULL, RTLD_NOLOAD | RTLD_LAZY), symbol);
    linker_leave();
    return found;
}
