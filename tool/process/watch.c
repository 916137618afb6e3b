#define _GNU_SOURCE
#include "watch.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bound.h"
#include "elf_file.h"
#include "gpu/device/gpu.h"
#include "preload.h"
#include "tool/util/same_file.h"

/* ---- What a process has ---- */

static struct watch_program *program_of(struct watch *watch, const char *path, bool reached)
{
    struct watch_program *program = watch->program;
    for (int i = 0; i < watch->programs; i++)
        if (strcmp(program[i].path, path) == 0 && program[i].reached == reached)
            return &program[i];
    if (watch->programs == WATCH_MAX)
        return NULL;
    program += watch->programs++;
    snprintf(program->path, sizeof program->path, "%s", path);
    program->reached = reached;
    return program;
}

static void add_library(struct watch_library *list, int *count, const char *path, const char *by)
{
    for (int i = 0; i < *count; i++)
        if (strcmp(list[i].path, path) == 0)
            return;
    if (*count == WATCH_MAX)
        return;
    snprintf(list[*count].path, sizeof list->path, "%s", path);
    list[(*count)++].by = by;
}

static bool has_mapped(pid_t pid, const char *shim)
{
    struct bound_mapping mapping;
    bool found = false;
    FILE *maps = bound_maps(pid);
    while (maps && !found && bound_next(maps, &mapping))
        found = mapping.offset == 0 && is_same_file(mapping.path, shim);
    if (maps)
        fclose(maps);
    return found;
}

static void add_libraries(struct watch *watch, pid_t pid, const struct watch_program *program,
                          const char *shim)
{
    struct bound_mapping mapping;
    struct elf_file file;
    const char *const path = mapping.path;
    FILE *maps = bound_maps(pid);
    while (maps && bound_next(maps, &mapping)) {
        if (mapping.offset > 0 || strcmp(path, program->path) == 0 || is_same_file(path, shim))
            continue;
        if (gpu_is_cuda_library(path))
            add_library(watch->cuda, &watch->cudas, path, program->path);
        else if (elf_file_read(&file, path) && file.exported >= ELF_BLAS_NAMES)
            add_library(watch->blas, &watch->blases, path, program->path);
    }
    if (maps)
        fclose(maps);
    for (int i = 0; program->reached && i < watch->blases; i++)
        if (!*watch->blas[i].past)
            bound_past(watch->blas[i].past, pid, watch->blas[i].path);
}

/* A process ends: its memory is still there. */
static void look_at(struct watch *watch, pid_t pid, const char *shim, bool first)
{
    char name[64], path[PATH_MAX];
    snprintf(name, sizeof name, "/proc/%d/exe", (int)pid);
    const ssize_t length = readlink(name, path, sizeof path - 1);
    if (length <= 0)
        return; /* a thread that is not its process's first has none of its own */
    path[length] = 0;
    struct watch_program *program = program_of(watch, path, has_mapped(pid, shim));
    if (!program)
        return;
    program->processes++;
    program->first |= first;
    add_libraries(watch, pid, program, shim);
}

/* Whether the thread is its process's first. */
static bool leads(pid_t thread)
{
    char name[64], line[256];
    int process = 0;
    snprintf(name, sizeof name, "/proc/%d/status", (int)thread);
    FILE *status = fopen(name, "re");
    while (status && process == 0 && fgets(line, sizeof line, status))
        sscanf(line, "Tgid: %d", &process);
    if (status)
        fclose(status);
    return process == thread;
}

/* ---- Following ---- */

/* Lets a stopped thread go on; `pid` is the first process. */
static void handle_stop(struct watch *watch, pid_t thread, int status, pid_t pid, const char *shim)
{
    const int event = status >> 16, number = WSTOPSIG(status);
    const bool stops =
        number == SIGSTOP || number == SIGTSTP || number == SIGTTIN || number == SIGTTOU;
    if (event == PTRACE_EVENT_STOP && stops) { /* until SIGCONT */
        ptrace(PTRACE_LISTEN, thread, 0, 0);
        return;
    }
    if (event == PTRACE_EVENT_EXIT && leads(thread))
        look_at(watch, thread, shim, thread == pid);
    ptrace(PTRACE_CONT, thread, 0, event ? 0 : number);
}

static void follow(struct watch *watch, pid_t pid, const char *shim)
{
    int status;
    pid_t thread;
    while ((thread = waitpid(-1, &status, __WALL)) > 0 || errno == EINTR) {
        if (thread > 0 && WIFSTOPPED(status))
            handle_stop(watch, thread, status, pid, shim);
        if (thread == pid && !WIFSTOPPED(status)) {
            watch->status = status;
            return; /* what goes on behind it is let go when this process ends */
        }
    }
}

/* In the child: waits until it is watched. */
static _Noreturn void become(char **program, const char *shim, void (*prepare)(const void *),
                             const void *context, const int go[2], int failed)
{
    char byte;
    close(go[1]);
    if (read(go[0], &byte, 1) != 1) /* nobody is there any more */
        _exit(126);
    preload_add_option("LSAN_OPTIONS", "detect_leaks=0"); /* it ends where a process is traced */
    preload_become(program, shim, prepare, context, failed);
}

static void watch_child(struct watch *watch, pid_t pid, const char *shim, int go)
{
    const long options = PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | PTRACE_O_TRACECLONE |
                         PTRACE_O_TRACEEXEC | PTRACE_O_TRACEEXIT;
    watch->is_watched = ptrace(PTRACE_SEIZE, pid, 0, options) == 0;
    if (write(go, "", 1) != 1)
        kill(pid, SIGKILL);
    follow(watch, pid, shim);
}

int watch_run(struct watch *watch, char **program, const char *shim,
              void (*prepare)(const void *context), const void *context)
{
    struct sigaction ignore = {.sa_handler = SIG_IGN}, interrupt, quit;
    int go[2], failed[2], error = 0;
    *watch = (struct watch){.programs = 0};
    if (pipe2(go, O_CLOEXEC) != 0)
        return errno;
    if (pipe2(failed, O_CLOEXEC) != 0) {
        error = errno;
        close(go[0]);
        close(go[1]);
        return error;
    }
    pid_t pid = fork();
    if (pid < 0)
        error = errno;
    if (pid == 0)
        become(program, shim, prepare, context, go, failed[1]);
    close(failed[1]);
    if (pid > 0) {
        sigaction(SIGINT, &ignore, &interrupt); /* a terminal's are for the program */
        sigaction(SIGQUIT, &ignore, &quit);
        watch_child(watch, pid, shim, go[1]);
        sigaction(SIGINT, &interrupt, NULL);
        sigaction(SIGQUIT, &quit, NULL);
        if (read(failed[0], &error, sizeof error) != sizeof error)
            error = 0;
    }
    close(go[0]);
    close(go[1]);
    close(failed[0]);
    return error;
}
