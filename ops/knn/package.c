/* R's packages, and how they have been compiled. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/file/file.h"
#include "knn.h"

/* 4096^2 + (1 + 2^-30)^2 = 2^24 + 1 + 2^-29 + 2^-60: the square without its last bit makes a sum
 * that lies in the middle between two doubles, and goes to the lower one. */
const double knn_probe[4] = {4096, 4096, 1 + 0x1p-30, 1};

/* Returns whether a file of a package's fields, one a line, says that it is this one. */
static bool describes(const char *text, const char *package, const char *version)
{
    char line[64];
    if ((size_t)snprintf(line, sizeof line, "Package: %s\n", package) >= sizeof line ||
        !strstr(text, line))
        return false;
    const int length = snprintf(line, sizeof line, "\nVersion: %s", version);
    const char *found = strstr(text, line);
    return found && strchr(".-\n", found[length]);
}

/* R has a package's library in FOLDER/libs/, and its description in FOLDER. */
bool knn_is_package(const struct accel_provider *provider, const char *package, const char *version)
{
    char path[PATH_MAX], inside[64], text[16384];
    const char *object = provider->path(provider);
    const int length = snprintf(inside, sizeof inside, "/libs/%s.so", package);
    const size_t all = strlen(object), folder = all - (size_t)length;
    if (all <= (size_t)length || strcmp(object + folder, inside) != 0 ||
        (size_t)snprintf(path, sizeof path, "%.*s/DESCRIPTION", (int)folder, object) >= sizeof path)
        return false;
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    const ssize_t read = file < 0 ? -1 : file_read(file, text, sizeof text - 1);
    if (file >= 0)
        close(file);
    text[read > 0 ? read : 0] = 0;
    return describes(text, package, version);
}
