#define _GNU_SOURCE
#include "doctor_program.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/file/file.h"
#include "base/text/string_buffer.h"
#include "tool/process/elf_file.h"
#include "tool/process/elf_image.h"
#include "tool/util/find_program.h"
#include "tool/util/same_file.h"
#include "ops/op.h"
#include "tool/process/become.h"
#include "tool/process/preload.h"
#include "tool/measure/program.h"
#include "shim/elf/sizes.h"
#include "tool/process/watch.h"

#ifdef __aarch64__
#    define MACHINE "64-bit Arm"
#else
#    define MACHINE "64-bit x86"
#endif

/* ---- Whether it can be preloaded ---- */

/* Whether the kernel would tell the dynamic linker to take nothing from the environment:
 * AT_SECURE. */
static bool is_secure(const char *path)
{
    struct stat st;
    if (stat(path, &st) != 0)
        return false;
    return ((st.st_mode & S_ISUID) && st.st_uid != getuid()) ||
           ((st.st_mode & S_ISGID) && st.st_gid != getgid()) ||
           (getuid() != 0 && getxattr(path, "security.capability", NULL, 0) > 0);
}

/* By enum elf_other. */
static const char *const others[] = {
    "it is not for " MACHINE " and glibc: it is for another machine",
    "it is not for " MACHINE " and glibc: it has 32 bits",
    "it is not for " MACHINE
    " and glibc: it is linked to musl, whose linker could not load libaccel",
    "it is not for " MACHINE " and glibc: it is linked to another C library"};

/* Returns why a preload cannot reach a program, NULL if it can. */
static const char *obstacle(const char *path, struct elf_file *file)
{
    if (!elf_file_read(file, path))
        return "it cannot be read";
    if (is_secure(path))
        return "it is set-uid, set-gid or has capabilities: the dynamic linker takes no preload";
    if (file->kind == ELF_STATIC)
        return "it is linked statically: there is no dynamic linker that could preload";
    if (file->kind == ELF_OTHER)
        return others[file->other];
    return NULL;
}

static const char *mend(const char *path, const struct elf_file *file)
{
    return is_secure(path)            ? "run a copy without these rights"
           : access(path, R_OK) != 0  ? "let this user read it"
           : file->kind == ELF_STATIC ? "link it dynamically, to a shared BLAS"
           : file->other == ELF_MACHINE || file->other == ELF_32_BITS
               ? "build it for " MACHINE ", with a shared BLAS"
               : "build it with glibc, with a shared BLAS";
}

/* AddressSanitizer's runtime ends a program in which it is not the first library, unless it is told
 * not to look: libaccel does that (shim/elf/hooks.c), but not where the program has the function
 * itself. `accel run' sets the variable for the program that it starts. */
static void examine_asan(struct checks *checks, const char *path, const struct elf_file *file,
                         bool first)
{
    if (!*file->asan)
        return;
    if (file->asan_options && !first)
        checks_add(
            checks, CHECK_WARN, "preload", "set ASAN_OPTIONS=verify_asan_link_order=0",
            "%s has AddressSanitizer (%s), which wants to be the first library, and options of "
            "its own: without one more it does not start behind a preload",
            path, file->asan);
    else
        checks_add(
            checks, CHECK_OK, "preload", "",
            "%s has AddressSanitizer (%s), which wants to be the first library: %s tells it not "
            "to look",
            path, file->asan, file->asan_options ? "accel run" : "libaccel");
}

/* Adds the row of the program's file. A script is its interpreter; of `#!/usr/bin/env NAME`, what
 * env finds. False: the program need not be run. */
static bool examine_file(struct checks *checks, const char *name, struct elf_file *file,
                         char path[PATH_MAX])
{
    char script[PATH_MAX + 100] = "", text[BECOME_FAULT_BYTES];
    if (!find_program(path, name)) {
        const int error = errno;
        checks_add(checks, CHECK_FAIL, "program", "give its path, or one that is on the PATH",
                   "%s is not found, or cannot be run: %s", name,
                   become_fault(text, "accel doctor", name, error));
        return false;
    }
    const char *why = obstacle(path, file);
    for (int depth = 0; !why && file->kind == ELF_SCRIPT && depth < 4; depth++) {
        char *word = strtok(file->interpreter, " \t"), *next = strtok(NULL, " \t");
        char *base = word ? strrchr(word, '/') : NULL;
        const bool env = base && strcmp(base, "/env") == 0 && next && *next != '-';
        if (depth == 0)
            snprintf(script, sizeof script, "%s, a script for ", path);
        if (!word || !find_program(path, env ? next : word)) {
            checks_add(checks, CHECK_FAIL, "program", "", "%s%s, which is not found", script,
                       word ? word : "nothing");
            return false;
        }
        why = obstacle(path, file);
    }
    if (why)
        checks_add(checks, CHECK_FAIL, "program", mend(path, file), "%s%s: %s", script, path, why);
    else
        checks_add(checks, CHECK_OK, "program", "", "%s%s", script, path);
    if (!why && file->exported + file->hidden >= ELF_BLAS_NAMES)
        checks_add(checks, CHECK_WARN, "BLAS", "link it to a shared BLAS",
                   "%s has BLAS inside itself (%d names): a preload cannot reach calls of those",
                   path, file->exported + file->hidden);
    return !why;
}

/* ---- What it did ---- */

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* "sh, python3.11 (3)": the programs that libaccel was in, or was not. Returns the number of
 * processes. */
static int list(const struct watch *watch, bool reached, struct string_buffer *names)
{
    int processes = 0;
    for (int i = 0; i < watch->programs; i++) {
        const struct watch_program *program = &watch->program[i];
        char count[20] = "";
        if (program->reached != reached)
            continue;
        processes += program->processes;
        string_buffer_add_string(names, names->length ? ", " : "");
        string_buffer_add_string(names, base_name(program->path));
        if (program->processes > 1)
            snprintf(count, sizeof count, " (%d)", program->processes);
        string_buffer_add_string(names, count);
    }
    return processes;
}

static bool has_blas(const struct watch *watch, const char *path)
{
    for (int i = 0; i < watch->blases; i++)
        if (strcmp(watch->blas[i].by, path) == 0)
            return true;
    return false;
}

/* One that nothing reaches is worth advice if it is the program itself, or has BLAS. A static one
 * of which no name is left may have it, too, but mostly it is a tool, such as ldconfig. */
static void examine_unreached(struct checks *checks, const struct watch *watch,
                              const struct watch_program *program)
{
    struct elf_file file;
    const char *why = obstacle(program->path, &file);
    const bool computes = program->first || file.exported + file.hidden >= ELF_BLAS_NAMES ||
                          has_blas(watch, program->path);
    checks_add(checks,
               program->first                                ? CHECK_FAIL
               : why && file.kind == ELF_STATIC && !computes ? CHECK_OK
                                                             : CHECK_WARN,
               "preload",
               !why       ? "let it keep LD_PRELOAD"
               : computes ? mend(program->path, &file)
                          : "",
               "did not reach %s: %s%s", program->path,
               why ? why : "it was started without LD_PRELOAD",
               why && !computes ? "; no BLAS is seen in it" : "");
}

static void examine_one(struct checks *checks, const struct watch *watch,
                        const struct watch_program *program)
{
    struct elf_file file;
    if (!program->reached)
        examine_unreached(checks, watch, program);
    else if (elf_file_read_kind(&file, program->path))
        examine_asan(checks, program->path, &file, program->first);
}

static void examine_reach(struct checks *checks, const struct watch *watch)
{
    struct string_buffer names = {.length = 0};
    if (!watch->is_watched) {
        checks_add(checks, CHECK_WARN, "preload",
                   "allow ptrace here (docker run --cap-add=SYS_PTRACE)",
                   "the program and its children cannot be watched: ptrace is not permitted");
        return;
    }
    const int processes = list(watch, true, &names);
    if (processes > 0)
        checks_add(checks, CHECK_OK, "preload", "", "reached %d process%s: %s", processes,
                   processes == 1 ? "" : "es", names.text ? names.text : "");
    free(names.text);
    for (int i = 0; i < watch->programs; i++)
        examine_one(checks, watch, &watch->program[i]);
}

static bool is_excluded(const struct effective_config *config, const char *path)
{
    return setting_excludes(effective_config_shown(config, setting_named("ACCEL_EXCLUDE")),
                            base_name(path));
}

/* A shell or a launcher that is left alone is worth a word only if it has a BLAS itself. */
static void examine_excluded(struct checks *checks, const struct watch *watch,
                             const struct program_libraries *called,
                             const struct effective_config *config)
{
    for (int i = 0; i < watch->programs; i++) {
        const struct watch_program *program = &watch->program[i];
        if (program->reached && is_excluded(config, program->path) &&
            (!setting_excludes("default", base_name(program->path)) ||
             has_blas(watch, program->path)))
            checks_add(checks, called->count > 0 ? CHECK_WARN : CHECK_FAIL, "preload",
                       "set ACCEL_EXCLUDE to a list that does not name it",
                       "ACCEL_EXCLUDE=%s names %s: its calls are left alone",
                       effective_config_shown(config, setting_named("ACCEL_EXCLUDE")),
                       base_name(program->path));
    }
}

/* Whether the dynamic linker loads a library when it starts the program. */
static bool is_linked(const char *program, const char *library)
{
    char line[2 * PATH_MAX];
    int ends[2];
    bool found = false;
    struct elf_file file;
    if (!elf_file_read(&file, program) || file.kind != ELF_DYNAMIC || pipe2(ends, O_CLOEXEC) != 0)
        return false;
    const pid_t pid = fork();
    if (pid == 0) {
        setenv("LD_TRACE_LOADED_OBJECTS", "1", 1);
        dup2(ends[1], STDOUT_FILENO);
        execl(program, program, (char *)NULL);
        _exit(127);
    }
    close(ends[1]);
    FILE *lines = fdopen(ends[0], "r");
    while (lines && fgets(line, sizeof line, lines)) {
        char *path = strchr(line, '/'), *end = path ? strstr(path, " (") : NULL;
        if (end)
            *end = 0;
        found |= end && is_same_file(path, library);
    }
    if (lines)
        fclose(lines);
    else
        close(ends[0]);
    if (pid > 0)
        waitpid(pid, NULL, 0);
    return found;
}

/* Returns a library's record in a list, NULL if there is none. */
static const struct program_library *find_in(const struct program_library *list, int count,
                                             const char *path)
{
    for (int i = 0; i < count; i++)
        if (is_same_file(list[i].path, path))
            return &list[i];
    return NULL;
}

/* Returns the record of a library's calls, NULL if there is none. */
static const struct program_library *calls_of(const struct program_libraries *called,
                                              const char *path)
{
    return find_in(called->one, called->count, path);
}

/* Returns the bits of INTEGER of a library's first function of BLAS or LAPACK, by its code; 0 if
 * that does not tell. */
static int width_by_code(const struct accel_code *code)
{
    for (uint32_t i = 0; i < accel_blas_name_count; i++) {
        const struct accel_mangling *mangling = accel_name_mangling(i);
        const void *function =
            mangling->trusted ? accel_code_function(code, accel_names[i].symbol) : NULL;
        struct accel_sizes sizes = {.integer = mangling->width};
        if (function && !sizes.integer)
            accel_sizes_add(&sizes, code, i, function);
        if (function && sizes.integer)
            return sizes.integer;
    }
    return 0;
}

/* The same of a file: it may be linked to libraries that only its own program finds, and is not
 * loaded. */
static int width_of(const char *path)
{
    struct elf_image image;
    struct accel_code code;
    if (!elf_image_map(&image, path))
        return 0;
    const int width =
        accel_code_of_image(&code, image.begin, image.size) ? width_by_code(&code) : 0;
    elf_image_unmap(&image);
    return width;
}

/* How calls of a library came; NULL: none came. */
struct blas_calls {
    const struct program_library *taken;  /* those that libaccel can run */
    const struct program_library *passed; /* others */
};

static const char *blas_fix(const struct watch_library *library, const struct blas_calls *calls,
                            const struct program_libraries *called,
                            const struct effective_config *config)
{
    if (*library->past)
        return "such a library is opened with RTLD_DEEPBIND, or by dlmopen: let the program open "
               "it without";
    if (calls->taken)
        return "";
    if (calls->passed)
        return "its calls stay on the CPU (docs/limits.md)";
    if (called->count > 0)
        return "";
    if (is_excluded(config, library->by))
        return "see ACCEL_EXCLUDE above";
    return "see whether it is opened with RTLD_DEEPBIND, or calls itself alone";
}

static void examine_blas(struct checks *checks, const struct watch_library *library,
                         const struct program_libraries *called,
                         const struct effective_config *config)
{
    static const char ways[][80] = {"opened with dlopen", "linked"};
    const struct blas_calls calls = {calls_of(called, library->path),
                                     find_in(called->passed, called->passed_on, library->path)};
    const char *const fix = blas_fix(library, &calls, called, config);
    char bits[40] = "integers of unknown width", what[200], past[PATH_MAX + 40] = "";
    /* A library may have both widths, under names of two kinds: as it was called, it had one. */
    const int width = calls.taken && calls.taken->width ? calls.taken->width
                      : calls.passed                    ? 0
                                                        : width_of(library->path);
    if (width)
        snprintf(bits, sizeof bits, "%d-bit integers", width);
    if (calls.taken)
        snprintf(what, sizeof what, "called with %d thread%s, first %s", calls.taken->threads,
                 calls.taken->threads == 1 ? "" : "s", calls.taken->symbol);
    else if (calls.passed)
        snprintf(what, sizeof what, "called, first %s, and passed on: they cannot be told",
                 calls.passed->symbol);
    else
        snprintf(what, sizeof what, "no call of it came to libaccel");
    if (*library->past)
        snprintf(past, sizeof past, "; %s calls it past libaccel", library->past);
    checks_add(checks, *fix ? CHECK_WARN : CHECK_OK, "BLAS", fix, "%s, %s by %s, %s; %s%s",
               library->path, ways[is_linked(library->by, library->path)], base_name(library->by),
               bits, what, past);
}

/* OpenBLAS has tables of its threads on the caller's stack, some megabytes of them where it is
 * built for many (Debian's is for 128). A JVM's threads have 1 MB by default. */
static void examine_stack(struct checks *checks, const struct watch *watch,
                          const struct watch_library *library,
                          const struct program_libraries *called)
{
    const struct program_library *taken = calls_of(called, library->path);
    const bool died = WIFSIGNALED(watch->status) && WTERMSIG(watch->status) == SIGSEGV;
    if (strcmp(base_name(library->by), "java") != 0 || !strstr(library->path, "openblas") ||
        !(taken ? taken->threads > 1 : died))
        return;
    checks_add(checks, CHECK_WARN, "program",
               "set OPENBLAS_NUM_THREADS=1, or start java with a larger stack: -Xss4m",
               "where %s computes with several threads, it may need more of its caller's stack "
               "than a thread of the JVM has, and end it by signal 11, also without libaccel",
               library->path);
}

/* Libraries that were called and are none of BLAS; all of them if nothing was watched. */
static void examine_others(struct checks *checks, const struct watch *watch,
                           const struct program_libraries *called)
{
    for (int i = 0; i < called->count; i++) {
        bool shown = false;
        for (int j = 0; j < watch->blases; j++)
            shown |= calls_of(called, watch->blas[j].path) == &called->one[i];
        if (!shown)
            checks_add(checks, CHECK_OK, "calls", "", "%s, called with %d thread%s, first %s",
                       called->one[i].path, called->one[i].threads,
                       called->one[i].threads == 1 ? "" : "s", called->one[i].symbol);
    }
}

/* Programs whose forked children may want to start CUDA themselves, so that libaccel does not. */
static void examine_holds(struct checks *checks, const struct program_libraries *called)
{
    for (int i = 0; i < called->helds; i++) {
        const struct program_held *held = &called->held[i];
        checks_add(checks, held->released ? CHECK_OK : CHECK_WARN, "CUDA",
                   held->released ? "" : "set ACCEL_START=background, if no child of it uses CUDA",
                   held->released
                       ? "%s has loaded CUDA: its calls stay on the CPU until it starts CUDA itself"
                       : "%s has loaded CUDA and not started it: its calls stay on the CPU, as "
                         "children that it forks may use CUDA",
                   base_name(held->path));
    }
}

static void examine_end(struct checks *checks, int status)
{
    if (WIFSIGNALED(status))
        checks_add(checks, CHECK_WARN, "program", "run it without libaccel",
                   "was ended by signal %d (%s)", WTERMSIG(status), strsignal(WTERMSIG(status)));
    else if (WEXITSTATUS(status) != 0)
        checks_add(checks, CHECK_WARN, "program", "run it without libaccel", "ended with status %d",
                   WEXITSTATUS(status));
}

static void examine_run(struct checks *checks, const struct watch *watch,
                        const struct program_libraries *called,
                        const struct effective_config *config)
{
    examine_end(checks, watch->status);
    examine_reach(checks, watch);
    examine_excluded(checks, watch, called, config);
    for (int i = 0; i < watch->blases; i++)
        examine_blas(checks, &watch->blas[i], called, config);
    for (int i = 0; i < watch->blases; i++)
        examine_stack(checks, watch, &watch->blas[i], called);
    examine_others(checks, watch, called);
    if (called->count == 0)
        checks_add(checks, CHECK_FAIL, "calls",
                   watch->blases ? "see the rows of BLAS above" : "give it work that calls BLAS",
                   called->passed_on ? "no call of BLAS or LAPACK came that libaccel can run"
                                     : "no call of BLAS or LAPACK came to libaccel");
    for (int i = 0; i < watch->cudas; i++)
        checks_add(checks, CHECK_OK, "CUDA", "", "%s has its own: %s", base_name(watch->cuda[i].by),
                   watch->cuda[i].path);
    examine_holds(checks, called);
}

static void run_and_examine(struct checks *checks, char **program, const char *shim,
                            const struct effective_config *config)
{
    static struct watch watch;
    static struct program_libraries called;
    char file[PATH_MAX], text[BECOME_FAULT_BYTES];
    int fd;
    if (!file_temporary(file, "called") || (fd = mkostemp(file, O_CLOEXEC)) < 0) {
        checks_add(checks, CHECK_WARN, "program", "set TMPDIR to a folder that can be written",
                   "it is not run: a file for its calls cannot be made: %s", strerror(errno));
        return;
    }
    close(fd);
    const int error = watch_run(&watch, program, shim, program_note_calls, file);
    const bool read = !error && program_read_calls(&called, file);
    const int unread = errno;
    unlink(file);
    if (error)
        checks_add(checks, CHECK_FAIL, "program", "", "%s cannot be started: %s", program[0],
                   become_fault(text, "accel doctor", program[0], error));
    else if (!read)
        checks_add(checks, CHECK_WARN, "program", "", "the file of its calls cannot be read: %s",
                   strerror(unread));
    else
        examine_run(checks, &watch, &called, config);
}

void doctor_program(struct checks *checks, char **program, const struct effective_config *config)
{
    struct elf_file file;
    char path[PATH_MAX], shim[PATH_MAX];
    if (examine_file(checks, program[0], &file, path) && !preload_find(shim, NULL))
        run_and_examine(checks, program, shim, config);
}
