#define _GNU_SOURCE
#include "libraries.h"
#include "ops/op.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "shim/elf/library.h"
#include "shim/elf/provider.h"
#include "shim/elf/real_linker.h"

/* ---- Opening ---- */

static const char *open_listed(struct libraries *library, const char *paths)
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

const char *libraries_open(struct libraries *library, const char *paths)
{
    static const char *const usual[] = {"libblas.so.3", "liblapack.so.3"};
    *library = (struct libraries){.count = 0};
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

const char *libraries_open_own(struct libraries *library, const char *path)
{
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    *library = (struct libraries){{handle}, handle ? 1 : 0, true};
    return handle ? NULL : dlerror();
}

/* ---- Finding ---- */

/* Looks in the named libraries before those that they are linked to: a libblas may be linked to a
 * library that has LAPACK, too, but programs get LAPACK from the library that they name. */
bool libraries_find(const struct libraries *library, const struct accel_routine *routine,
                    struct library_function *function)
{
    for (int own = 1; own >= (library->own ? 1 : 0); own--)
        for (int i = 0; i < library->count; i++) {
            function->address =
                accel_provider_find(library->handle[i], own, routine, &function->width);
            if (!function->address)
                continue;
            function->library = accel_library_at(function->address, accel_is_blas(routine));
            return true;
        }
    return false;
}

int library_threads(const struct library_function *function)
{
    return function->library->threads(function->library);
}

void library_set_threads(const struct library_function *function, int threads)
{
    void *handle = accel_real_handle(accel_object_of(function->address));
    void *found = handle ? accel_provider_threads(handle).set : NULL;
    void (*set)(int64_t);
    memcpy(&set, &found, sizeof set);
    if (found)
        set(threads); /* a function that takes 32 bits reads the lower half */
    if (handle)
        dlclose(handle);
}
