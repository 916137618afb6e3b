/*
 * Loads libraries for a test program. If one cannot be loaded, the program ends with status 2.
 */
#ifndef ACCEL_TESTS_LOAD_H
#define ACCEL_TESTS_LOAD_H

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

static inline void *load(const char *path, int mode)
{
    void *library = dlopen(path, mode);
    if (!library) {
        printf("%s\n", dlerror());
        exit(2);
    }
    return library;
}

static inline void *load_from(const char *folder, const char *name, int mode)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return load(path, mode);
}

#endif
