/*
 * A preload that stands in front of dlsym, as some do: by a function in C, which gets the real one by dlvsym.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

void *dlsym(void *handle, const char *name)
{
    static void *(*real)(void *, const char *);
    if (!real) {
        void *found = dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.34");
        if (!found)
            found = dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.2.5");
        if (!found)
            abort();
        memcpy(&real, &found, sizeof real);
    }
    void *found = real(handle, name);
    __asm__ volatile("" : "+r"(found)); /* no tail jump: the caller is this library */
    return found;
}
