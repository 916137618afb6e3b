#include "sklearn_version.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OLDEST_MINOR = 3, NEWEST_MINOR = 9 };

/* Returns whether the name is that of scikit-learn's metadata, and then sets *known: a version with
 * these structs. */
static bool is_metadata(const char *name, bool *known)
{
    static const char package[] = "scikit_learn-", folder[] = ".dist-info";
    const size_t length = strlen(name);
    if (strncmp(name, package, sizeof package - 1) != 0 || length < sizeof folder ||
        strcmp(name + length - (sizeof folder - 1), folder) != 0)
        return false;
    char *after;
    const long major = strtol(name + sizeof package - 1, &after, 10);
    const long minor = *after == '.' ? strtol(after + 1, NULL, 10) : -1;
    *known = major == 1 && minor >= OLDEST_MINOR && minor <= NEWEST_MINOR;
    return true;
}

/* An installation that went wrong has left the metadata of two versions: both must be known. */
static bool has_known_version(const char *packages)
{
    DIR *folder = opendir(packages);
    bool found = false, known = true;
    for (const struct dirent *entry; folder && known && (entry = readdir(folder));)
        found |= is_metadata(entry->d_name, &known);
    if (folder)
        closedir(folder);
    return found && known;
}

bool sklearn_is_known(const struct accel_provider *provider, const char *object)
{
    char packages[PATH_MAX], inside[64];
    const char *path = provider->path(provider);
    const int length = snprintf(inside, sizeof inside, "/sklearn/svm/%s", object);
    const char *end = strstr(path, inside);
    return end && !strchr(end + length, '/') &&
           (size_t)snprintf(packages, sizeof packages, "%.*s/.", (int)(end - path), path) <
               sizeof packages &&
           has_known_version(packages);
}
