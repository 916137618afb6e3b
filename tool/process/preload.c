#define _GNU_SOURCE
#include "preload.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file/file.h"
#include "tool/util/complain.h"
#include "become.h"
#include "elf_file.h"
#include "tool/util/find_program.h"
#include "supervise.h"

const char preload_missing[] = "is not there";

static bool find_shim(char path[PATH_MAX], const char *given)
{
    /* Beside the tool as it is built, or as it is installed, also below another prefix. */
    static const char *const places[] = {"libaccel.so", ACCEL_LIBDIR_FROM_BINDIR "/libaccel.so"};
    char own[PATH_MAX];
    if (given)
        return realpath(given, path) && access(path, R_OK) == 0;
    if (!file_program(own))
        return false;
    *strrchr(own, '/') = 0;
    for (size_t i = 0; i < sizeof places / sizeof *places; i++)
        if (snprintf(path, PATH_MAX, "%s/%s", own, places[i]) < PATH_MAX && access(path, R_OK) == 0)
            return true;
    return realpath(ACCEL_LIBDIR "/libaccel.so", path) && access(path, R_OK) == 0;
}

/* Whether the dynamic linker finds a library that it could load by this name, which may have the
 * linker's own variables. */
static bool can_load(const char *name)
{
    dlerror();
    void *const loaded = dlopen(name, RTLD_NOLOAD | RTLD_LAZY);
    if (loaded)
        dlclose(loaded);
    return loaded || !dlerror();
}

const char *preload_find(char path[PATH_MAX], const char *given)
{
    if (!find_shim(path, given))
        return preload_missing;
    if (strpbrk(path, " :"))
        return "has a blank or a colon in its path, which LD_PRELOAD does not take";
    return strchr(path, '$') && !can_load(path) ? "has a variable of the dynamic linker ($LIB) in "
                                                  "its path, which LD_PRELOAD replaces"
                                                : NULL;
}

int preload_complain(int status, const char *command, const char *given, const char *path,
                     const char *wrong)
{
    if (wrong == preload_missing)
        return complain(status, "%s: %s %s; name libaccel.so with --shim\n", command,
                        given ? given : "libaccel.so", wrong);
    return complain(status, "%s: %s %s\n", command, path, wrong);
}

/* Gets the name for LD_PRELOAD: one with $PLATFORM in it, if the linker finds the library by that.
 * Programs of musl, of 32 bits and of another machine then do not get what they cannot load
 * (packaging/preload/preload.mk). The second form is for an archive that takes no links, such as a
 * wheel: with it, musl's linker still finds nothing. */
static void name_of(char name[PATH_MAX], const char *shim)
{
    static const char *const forms[] = {"accel-preload/$PLATFORM", "accel-preload/$PLATFORM/../.."};
    const char *const slash = strrchr(shim, '/');
    for (size_t i = 0; slash && i < sizeof forms / sizeof *forms; i++)
        if (snprintf(name, PATH_MAX, "%.*s/%s%s", (int)(slash - shim), shim, forms[i], slash) <
                PATH_MAX &&
            can_load(name))
            return;
    snprintf(name, PATH_MAX, "%s", shim);
}

bool preload_add_option(const char *variable, const char *option)
{
    const char *given = getenv(variable);
    char *options = NULL;
    if (!given || !*given)
        return setenv(variable, option, 1) == 0;
    if (asprintf(&options, "%s:%s", given, option) < 0)
        return false;
    const bool set = setenv(variable, options, 1) == 0;
    free(options);
    return set;
}

/* The runtime wants to be the first library, unless it is told not to look. libaccel tells it so,
 * but a program's own function goes before libaccel's (shim/elf/hooks.c). */
static bool let_asan_start(const char *program)
{
    struct elf_file file;
    char path[PATH_MAX];
    return !find_program(path, program) || !elf_file_read_kind(&file, path) || !file.asan_options ||
           preload_add_option("ASAN_OPTIONS", "verify_asan_link_order=0");
}

bool preload_set(const char *shim, const char *program)
{
    char *preload = NULL, name[PATH_MAX];
    if (!let_asan_start(program))
        return false;
    preload_remove();
    const char *others = getenv("LD_PRELOAD");
    name_of(name, shim);
    if (!others || !*others)
        return setenv("LD_PRELOAD", name, 1) == 0;
    if (asprintf(&preload, "%s:%s", name, others) < 0)
        return false;
    bool set = setenv("LD_PRELOAD", preload, 1) == 0;
    free(preload);
    return set;
}

void preload_become(char **program, const char *shim, void (*prepare)(const void *),
                    const void *context, int pipe)
{
    if (preload_set(shim, program[0])) {
        prepare(context);
        errno = become_program(program);
    }
    int error = errno;
    ssize_t written = write(pipe, &error, sizeof error);
    _exit(written == sizeof error ? 127 : 126);
}

int preload_run(char **program, const char *shim, void (*prepare)(const void *context),
                const void *context, struct preload_end *end)
{
    struct supervised before;
    int ends[2], error = 0;
    if (pipe2(ends, O_CLOEXEC) != 0)
        return errno;
    supervise_begin(&before);
    pid_t pid = fork();
    if (pid < 0)
        error = errno;
    if (pid == 0) {
        supervise_child(&before);
        preload_become(program, shim, prepare, context, ends[1]);
    }
    close(ends[1]);
    if (pid > 0 && read(ends[0], &error, sizeof error) != sizeof error)
        error = 0;
    end->asked = supervise_wait(&before, pid, &end->status);
    close(ends[0]);
    return error;
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
