#define _GNU_SOURCE
#include "preload.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool preload_find(char path[PATH_MAX], const char *given)
{
    /* Beside the tool, or where both have been moved to, or where make install puts it. */
    static const char *const places[] = {"libaccel.so", "../lib/libaccel.so"};
    char own[PATH_MAX];
    if (given)
        return realpath(given, path) && access(path, R_OK) == 0;
    ssize_t n = readlink("/proc/self/exe", own, sizeof own - 1);
    if (n <= 0)
        return false;
    own[n] = 0;
    *strrchr(own, '/') = 0;
    for (size_t i = 0; i < sizeof places / sizeof *places; i++)
        if (snprintf(path, PATH_MAX, "%s/%s", own, places[i]) < PATH_MAX && access(path, R_OK) == 0)
            return true;
    return realpath(ACCEL_LIBDIR "/libaccel.so", path) && access(path, R_OK) == 0;
}

bool preload_set(const char *shim)
{
    const char *others = getenv("LD_PRELOAD");
    char *preload = NULL;
    if (!others || !*others)
        return setenv("LD_PRELOAD", shim, 1) == 0;
    if (asprintf(&preload, "%s:%s", shim, others) < 0)
        return false;
    bool set = setenv("LD_PRELOAD", preload, 1) == 0;
    free(preload);
    return set;
}

void preload_remove(void)
{
    const char *given = getenv("LD_PRELOAD");
    char *copy = given ? strdup(given) : NULL, *kept = given ? calloc(1, strlen(given) + 1) : NULL;
    if (copy && kept) {
        for (char *item = strtok(copy, ": "); item; item = strtok(NULL, ": ")) {
            const char *slash = strrchr(item, '/');
            if (strcmp(slash ? slash + 1 : item, "libaccel.so") == 0)
                continue;
            if (*kept)
                strcat(kept, ":");
            strcat(kept, item);
        }
        if (*kept)
            setenv("LD_PRELOAD", kept, 1);
        else
            unsetenv("LD_PRELOAD");
    }
    free(copy);
    free(kept);
}
