#include "kept_runs.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "tool/util/complain.h"

static const char *const run_folders[RUNS] = {"1-without", "2-threads", "3-with"};

static bool fault(const char *path)
{
    return complain(false, "accel diff: --keep: %s: %s\n", path, strerror(errno));
}

static const char *base_name(const struct output *output)
{
    return strrchr(output->path[RUN_SHIM], '/') + 1;
}

static bool make_path(char path[PATH_MAX], const char *folder, enum run run, const char *name)
{
    if (snprintf(path, PATH_MAX, "%s/%s/%s", folder, run_folders[run], name) < PATH_MAX)
        return true;
    errno = ENAMETOOLONG;
    return fault(folder);
}

static bool make_folder(const char *path)
{
    return mkdir(path, 0777) == 0 || errno == EEXIST || fault(path);
}

bool kept_runs_open(const char *folder, const struct output *outputs, int count)
{
    for (int i = 0; i < count; i++)
        for (int j = 0; j <= i; j++)
            if (strcmp(base_name(&outputs[i]), j < i ? base_name(&outputs[j]) : "stdout") == 0)
                return complain(
                    false, "accel diff: --keep: two files would be %s; allowed: each name once\n",
                    base_name(&outputs[i]));
    bool good = make_folder(folder);
    for (enum run run = 0; run < RUNS && good; run++) {
        char path[PATH_MAX];
        good = make_path(path, folder, run, "") && make_folder(path);
    }
    return good;
}

/* Copies a file, if there is one. */
static bool copy(const char *from, const char *folder, enum run run, const char *name)
{
    char path[PATH_MAX], buffer[65536];
    size_t n;
    if (!make_path(path, folder, run, name))
        return false;
    FILE *in = fopen(from, "re"), *out = in ? fopen(path, "we") : NULL;
    bool good = out, absent = !in && errno == ENOENT;
    while (good && (n = fread(buffer, 1, sizeof buffer, in)) > 0)
        good = fwrite(buffer, 1, n, out) == n;
    good = good && !ferror(in);
    if (out)
        good = fclose(out) == 0 && good;
    if (!good && !absent)
        fault(in ? path : from);
    if (in)
        fclose(in);
    return good || absent;
}

bool kept_runs_copy(const char *folder, const struct runs *runs, const struct output *outputs,
                    int count)
{
    bool good = copy(runs->decisions, folder, RUN_SHIM, "decisions.json");
    for (enum run run = 0; run < RUNS; run++) {
        good = copy(runs->output[run], folder, run, "stdout") && good;
        for (int i = 0; i < count; i++)
            if (outputs[i].written[run])
                good = copy(outputs[i].path[run], folder, run, base_name(&outputs[i])) && good;
    }
    return good;
}
