#define _GNU_SOURCE
#include "outputs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tool/util/complain.h"
#include "base/file/file.h"

bool output_name(struct output *output, const char *text)
{
    const size_t length = strcspn(text, ":/");
    *output = (struct output){.name = text};
    if (text[length] != ':')
        return true;
    output->format = format_find(text, length);
    output->name = text + length + 1;
    return output->format ||
           complain(false,
                    "accel diff: --output %s: %.*s is no format; allowed: %s; a file of that name "
                    "is ./%s\n",
                    text, (int)length, text, format_list(), text);
}

static bool fault(const struct output *output, const char *what)
{
    return complain(false, "accel diff: --output %s: %s\n", output->name, what);
}

/* Finds the path from the root on, with the folder's own path if it is there already: then two
 * names of one file are seen. */
static bool find_path(struct output *output, char path[PATH_MAX])
{
    char folder[PATH_MAX], whole[PATH_MAX];
    const char *base;
    if (!file_folder(output->name, folder, &base))
        return fault(output, strerror(errno));
    if (!*base)
        return fault(output, "not the name of a file");
    if (!realpath(folder, whole)) {
        /* The program may make the folder. The path must hold from any working folder. */
        if (errno != ENOENT)
            return fault(output, strerror(errno));
        if (folder[0] == '/' || !getcwd(whole, sizeof whole))
            strcpy(whole, folder);
        else if (strlen(whole) + strlen(folder) + 2 <= sizeof whole)
            strcat(strcat(whole, "/"), folder);
        else
            return fault(output, strerror(ENAMETOOLONG));
    }
    /* Files that are set aside have longer names. */
    if (snprintf(path, PATH_MAX, "%s/%s", whole, base) >= PATH_MAX - 64)
        return fault(output, strerror(ENAMETOOLONG));
    return true;
}

/* Names a run's file `.NAME.accel-diff.PID.1`, in the same folder, so that to rename it is
 * enough. */
static void set_path_aside(struct output *output, enum run run)
{
    const char *path = output->path[RUN_SHIM], *base = strrchr(path, '/') + 1;
    snprintf(output->path[run], PATH_MAX, "%.*s.%s.accel-diff.%ld.%d", (int)(base - path), path,
             base, (long)getpid(), run + 1);
}

/* Renames, unless the new name is taken. */
static bool rename_new(const char *from, const char *to)
{
    if (renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE) == 0)
        return true;
    if (errno != EINVAL && errno != ENOSYS)
        return false;
    /* The file system cannot do both in one step. */
    return link(from, to) == 0 && unlink(from) == 0;
}

static bool set_aside_before(struct output *output)
{
    const char *path = output->path[RUN_SHIM];
    struct stat status;
    if (lstat(path, &status) != 0)
        return errno == ENOENT || errno == ENOTDIR || fault(output, strerror(errno));
    if (stat(path, &status) == 0 && !S_ISREG(status.st_mode))
        return fault(output, "not a regular file; allowed: one, or nothing yet");
    for (int i = 1; i < 100000; i++) {
        snprintf(output->before, sizeof output->before, "%.*s.~%d~", PATH_MAX - 32, path, i);
        if (rename_new(path, output->before))
            return true;
        if (errno != EEXIST)
            break;
    }
    output->before[0] = 0;
    return fault(output, strerror(errno));
}

bool outputs_open(struct output *outputs, int count)
{
    for (int i = 0; i < count; i++) {
        if (!find_path(&outputs[i], outputs[i].path[RUN_SHIM]))
            return false;
        set_path_aside(&outputs[i], RUN_PLAIN);
        set_path_aside(&outputs[i], RUN_THREADS);
        for (int j = 0; j < i; j++)
            if (strcmp(outputs[i].path[RUN_SHIM], outputs[j].path[RUN_SHIM]) == 0)
                return fault(&outputs[i], "named twice");
    }
    for (int i = 0; i < count; i++)
        if (!set_aside_before(&outputs[i])) {
            outputs_close(outputs, i, false);
            return false;
        }
    return true;
}

bool outputs_take(struct output *outputs, int count, enum run run)
{
    for (int i = 0; i < count; i++) {
        struct output *output = &outputs[i];
        const char *path = output->path[RUN_SHIM];
        struct stat status;
        output->written[run] = stat(path, &status) == 0;
        if (!output->written[run])
            continue;
        if (!S_ISREG(status.st_mode))
            return fault(output, "the program has not made a regular file");
        if (run != RUN_SHIM && rename(path, output->path[run]) != 0)
            return fault(output, strerror(errno));
    }
    return true;
}

static bool same_bytes(const char *first, const char *second)
{
    FILE *a = fopen(first, "re"), *b = fopen(second, "re");
    bool same = a && b;
    while (same) {
        char x[16384], y[16384];
        size_t n = fread(x, 1, sizeof x, a), m = fread(y, 1, sizeof y, b);
        same = n == m && memcmp(x, y, n) == 0 && !ferror(a) && !ferror(b);
        if (n == 0)
            break;
    }
    if (a)
        fclose(a);
    if (b)
        fclose(b);
    return same;
}

void outputs_close(struct output *outputs, int count, bool keep)
{
    for (int i = 0; i < count; i++) {
        struct output *output = &outputs[i];
        const char *path = output->path[RUN_SHIM];
        for (enum run run = RUN_PLAIN; run < RUN_SHIM; run++)
            if (output->written[run])
                unlink(output->path[run]);
        if (!output->before[0])
            continue;
        if (!keep || access(path, F_OK) != 0) {
            if (rename(output->before, path) != 0)
                complain(0, "accel diff: %s cannot be put back from %s: %s\n", output->name,
                         output->before, strerror(errno));
        } else if (same_bytes(output->before, path)) {
            unlink(output->before);
        } else
            complain(0, "accel diff: the former %s is kept as %s\n", output->name, output->before);
    }
}
