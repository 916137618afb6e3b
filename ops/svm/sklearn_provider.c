/* Which scikit-learn it is: by the names that its objects define, and by the metadata of the package beside them. */
#include <dirent.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/forks.h"
#include "sklearn.h"

_Static_assert(sizeof(struct sklearn_node) == 16 && sizeof(struct sklearn_problem) == 32 &&
                   sizeof(struct sklearn_parameter) == 112 && sizeof(struct sklearn_model) == 200,
               "as sklearn/svm/src/libsvm/svm.h has them");

enum { OLDEST_MINOR = 3, NEWEST_MINOR = 9 };

/* Returns whether the name is that of scikit-learn's metadata, and then sets *known: a version with these structs. */
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

/* Returns whether the object is sklearn/svm/_libsvm* in a folder of packages, of which one is a known scikit-learn. */
static bool is_known(const char *path)
{
    static const char inside[] = "/sklearn/svm/_libsvm";
    const char *end = strstr(path, inside);
    char packages[PATH_MAX];
    if (!end || strchr(end + sizeof inside - 1, '/') ||
        (size_t)snprintf(packages, sizeof packages, "%.*s/.", (int)(end - path), path) >=
            sizeof packages)
        return false;
    return has_known_version(packages);
}

static bool recognize(const struct accel_provider *provider, struct sklearn *library)
{
    /* A dense node by its address, and the functions of BLAS: from 0.24 on. */
    if (!provider->symbol(provider, "_ZN3svm6Kernel3dotEPK8svm_nodeS3_P13BlasFunctions") ||
        !is_known(provider->path(provider)))
        return false;
    *library =
        (struct sklearn){.train = provider->function,
                         .csr = provider->function == provider->symbol(provider, "svm_csr_train"),
                         .lines = {.print = libsvm_print_of(provider, "mt_rand")}};
    void *set_seed = provider->symbol(provider, "set_seed");
    memcpy(&library->set_seed, &set_seed, sizeof set_seed);
    return set_seed && library->lines.print;
}

/* ---- All that this process has had ---- */

enum { LIBRARIES = 64 };
static struct sklearn libraries[LIBRARIES];
static int library_count;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
FORKS_LOCK(lock);

static bool is_same(const struct sklearn *a, const struct sklearn *b)
{
    return a->train == b->train && a->csr == b->csr && a->set_seed == b->set_seed &&
           a->lines.print == b->lines.print;
}

int sklearn_of(const struct accel_provider *provider)
{
    struct sklearn library;
    int i = LIBRARIES;
    pthread_mutex_lock(&lock); /* its print function is changed meanwhile */
    if (recognize(provider, &library)) {
        for (i = 0; i < library_count && !is_same(&libraries[i], &library); i++)
            ;
        if (i == library_count && i < LIBRARIES)
            libraries[library_count++] = library;
    }
    pthread_mutex_unlock(&lock);
    return i < LIBRARIES ? i + 1 : 0;
}

const struct sklearn *sklearn_numbered(int number)
{
    return &libraries[number - 1];
}
