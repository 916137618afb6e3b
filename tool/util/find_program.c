#include "find_program.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

bool find_program(char path[PATH_MAX], const char *name)
{
    const char *list = getenv("PATH");
    if (strchr(name, '/'))
        return snprintf(path, PATH_MAX, "%s", name) < PATH_MAX && access(path, X_OK) == 0;
    for (const char *at = list ? list : "/bin:/usr/bin"; *at;) {
        const int length = (int)strcspn(at, ":");
        struct stat st;
        if (snprintf(path, PATH_MAX, "%.*s%s%s", length, at, length ? "/" : "", name) < PATH_MAX &&
            access(path, X_OK) == 0 && stat(path, &st) == 0 && S_ISREG(st.st_mode))
            return true;
        at += length + (at[length] == ':');
    }
    return false;
}
