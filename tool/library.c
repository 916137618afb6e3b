#define _GNU_SOURCE
#include "library.h"

#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shim/elf/provider.h"

/* ---- Opening ---- */

static const char *open_listed(struct library *library, const char *paths)
{
    static char failure[PATH_MAX + 256];
    char path[PATH_MAX];
    while (*paths) {
        size_t length = strcspn(paths, ",");
        if (library->count == LIBRARIES_MAX || length == 0 || length >= sizeof path) {
            snprintf(failure, sizeof failure, "%.80s: one to %d paths, separated by commas", paths,
                     LIBRARIES_MAX);
            return failure;
        }
        memcpy(path, paths, length);
        path[length] = 0;
        void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
        if (!handle) {
            snprintf(failure, sizeof failure, "%s", dlerror());
            return failure;
        }
        library->handle[library->count++] = handle;
        paths += length + (paths[length] == ',');
    }
    return library->count > 0 ? NULL : "no path is given";
}

const char *library_open(struct library *library, const char *paths)
{
    static const char *const usual[] = {"libblas.so.3", "liblapack.so.3"};
    *library = (struct library){.count = 0};
    if (paths)
        return open_listed(library, paths);
    for (size_t i = 0; i < sizeof usual / sizeof *usual; i++) {
        void *handle = dlopen(usual[i], RTLD_NOW | RTLD_LOCAL);
        if (handle)
            library->handle[library->count++] = handle;
    }
    return library->count > 0 ? NULL
                              : "the dynamic linker finds neither libblas.so.3 nor liblapack.so.3; "
                                "name a library with --library";
}

const char *library_open_own(struct library *library, const char *path)
{
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    *library = (struct library){{handle}, handle ? 1 : 0, true};
    return handle ? NULL : dlerror();
}

/* ---- Finding ---- */

static const struct link_map *object_of(const void *address)
{
    Dl_info info;
    struct link_map *map = NULL;
    return dladdr1(address, &info, (void **)&map, RTLD_DL_LINKMAP) ? map : NULL;
}

static const struct link_map *object_of_handle(void *handle)
{
    struct link_map *map = NULL;
    return dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0 ? map : NULL;
}

static int width_of(void *handle, const struct accel_mangling *mangling)
{
    if (mangling->width)
        return mangling->width;
    void *isamax = dlsym(handle, mangling->probe);
    if (!isamax)
        isamax = dlsym(handle, "isamax_");
    return isamax ? accel_provider_width(isamax, ACCEL_ABI_FORTRAN) : 0;
}

/* own: in the very object of the handle, not in one that it is linked to. */
static bool find_in(void *handle, bool own, const struct accel_routine *routine,
                    struct library_function *function)
{
    const uint32_t manglings = accel_mangling_count;
    const uint32_t first = (uint32_t)(routine - accel_routines) * manglings;
    for (uint32_t entry = first; entry < first + manglings; entry++) {
        const struct accel_mangling *mangling = accel_name_mangling(entry);
        const struct accel_name *name = &accel_names[entry];
        void *found = mangling->abi == ACCEL_ABI_FORTRAN ? dlsym(handle, name->symbol) : NULL;
        if (!found || (own && object_of(found) != object_of_handle(handle)))
            continue;
        void *sibling = mangling->trusted ? found : dlsym(handle, name->sibling);
        if (!sibling || object_of(sibling) != object_of(found))
            continue;
        *function = (struct library_function){found, width_of(handle, mangling)};
        if (function->width)
            return true;
    }
    return false;
}

/* A libblas may be linked to a library that has LAPACK as well: programs get it from where they name it. */
bool library_find(const struct library *library, const struct accel_routine *routine,
                  struct library_function *function)
{
    for (int own = 1; own >= (library->own ? 1 : 0); own--)
        for (int i = 0; i < library->count; i++)
            if (find_in(library->handle[i], own, routine, function))
                return true;
    return false;
}

/* ---- What it is ---- */

const void *library_object(const void *function)
{
    return object_of(function);
}

void library_name(char name[ACCEL_PROVIDER_NAME_BYTES], const void *function)
{
    const struct link_map *object = object_of(function);
    if (object)
        accel_provider_name(name, object->l_name);
    else
        strcpy(name, "unknown");
}

/* A handle of the object that a function lies in, NULL: there is none. */
static void *handle_of(const void *function)
{
    const struct link_map *object = object_of(function);
    return object ? dlopen(object->l_name, RTLD_NOLOAD | RTLD_LAZY) : NULL;
}

/* By those functions which are looked at first, so that what is set is what is then asked. */
static const struct accel_thread_functions *thread_functions(void *handle)
{
    const struct accel_thread_functions *names = accel_thread_functions;
    while (names->get && !dlsym(handle, names->get))
        names++;
    return names->get ? names : NULL;
}

int library_threads(const void *function)
{
    void *handle = handle_of(function);
    const struct accel_thread_functions *names = handle ? thread_functions(handle) : NULL;
    void *found = names ? dlsym(handle, names->get) : NULL;
    int (*threads)(void);
    memcpy(&threads, &found, sizeof threads);
    int count = found ? threads() : 1;
    if (handle)
        dlclose(handle);
    return count > 0 ? count : 1;
}

void library_set_threads(const void *function, int threads)
{
    void *handle = handle_of(function);
    const struct accel_thread_functions *names = handle ? thread_functions(handle) : NULL;
    void *found = names ? dlsym(handle, names->set) : NULL;
    void (*set)(int64_t);
    memcpy(&set, &found, sizeof set);
    if (found)
        set(threads); /* whose lower half is the number, where the function takes 32 bits */
    if (handle)
        dlclose(handle);
}
