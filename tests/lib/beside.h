/*
 * The libraries that lie beside a unit test's program, in the folder of what the tests have built.
 */
#ifndef BESIDE_H
#define BESIDE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static inline void path_beside(const char *name, char path[PATH_MAX])
{
    char self[PATH_MAX];
    assert_non_null(realpath("/proc/self/exe", self));
    *strrchr(self, '/') = 0;
    assert_true(snprintf(path, PATH_MAX, "%s/%s", self, name) < PATH_MAX);
}

/* Returns a handle, which the caller closes; fails the test if there is no such library. */
static inline void *open_beside(const char *name)
{
    char path[PATH_MAX];
    path_beside(name, path);
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        fail_msg("%s", dlerror());
    return library;
}

#endif
