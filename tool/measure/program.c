#define _GNU_SOURCE
#include "program.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tool/util/complain.h"
#include "base/file/file.h"
#include "tool/process/become.h"
#include "tool/process/preload.h"

/* ---- The program ---- */

void program_note_calls(const void *context)
{
    const char *file = context;
    setenv("ACCEL", "1", 1);
    setenv("ACCEL_CALLED", file, 1);
    /* No call is decided, so there is nothing to report. */
    setenv("ACCEL_LOG", "", 1);
    setenv("ACCEL_SUMMARY", "", 1);
    setenv("ACCEL_ESTIMATE", "", 1);
    dup2(STDERR_FILENO, STDOUT_FILENO); /* stdout is for the report */
}

/* ---- Its libraries ---- */

/* Adds a library, unless it is there with as many threads. False if there is no room. */
static bool add_called(struct program_library *list, int *count,
                       const struct program_library *library)
{
    for (int i = 0; i < *count; i++)
        if (list[i].threads == library->threads && strcmp(list[i].path, library->path) == 0)
            return true;
    if (*count == LIBRARIES_MAX)
        return false;
    list[(*count)++] = *library;
    return true;
}

static void note_hold(struct program_libraries *found, const char *path, bool held)
{
    int i = 0;
    while (i < found->helds && strcmp(found->held[i].path, path) != 0)
        i++;
    if (i == LIBRARIES_MAX || (i == found->helds && !held))
        return;
    if (i == found->helds)
        snprintf(found->held[found->helds++].path, sizeof found->held->path, "%s", path);
    found->held[i].released = !held;
}

/* The records are those of dispatch/census.h. */
static void take_record(struct program_libraries *found, const struct program_library *record)
{
    if (record->threads < 0)
        note_hold(found, record->path, record->width != 0);
    else if (record->width < 0)
        add_called(found->passed, &found->passed_on, record);
    else
        found->whole = add_called(found->one, &found->count, record) && found->whole;
}

bool program_read_calls(struct program_libraries *found, const char *path)
{
    struct program_library library;
    char *record = NULL;
    size_t size = 0;
    int at = 0;
    *found = (struct program_libraries){.whole = true};
    FILE *file = fopen(path, "re");
    while (file && getdelim(&record, &size, 0, file) > 0)
        if (sscanf(record, "%d %d %63s %n", &library.threads, &library.width, library.symbol,
                   &at) == 3) {
            snprintf(library.path, sizeof library.path, "%s", record + at);
            take_record(found, &library);
        }
    int error = errno;
    bool whole = file && feof(file);
    if (file)
        fclose(file);
    free(record);
    errno = error;
    return whole;
}

/* ---- Messages ---- */

/* Returns "ended with status 3"; NULL if the program has not failed. */
static const char *failure_of(int status, char text[100])
{
    if (status == 0)
        return NULL;
    if (WIFSIGNALED(status))
        snprintf(text, 100, "was ended by signal %d (%s)", WTERMSIG(status),
                 strsignal(WTERMSIG(status)));
    else
        snprintf(text, 100, "ended with status %d", WEXITSTATUS(status));
    return text;
}

/* Whether somebody wants all this to end: by a terminal's keys, or by a signal to this process. */
static bool is_interrupted(const struct preload_end *end)
{
    return end->asked || (WIFSIGNALED(end->status) &&
                          (WTERMSIG(end->status) == SIGINT || WTERMSIG(end->status) == SIGQUIT));
}

static bool verify_run(struct program_libraries *found, const char *program,
                       const struct preload_end *end)
{
    char text[100];
    const char *failure = failure_of(end->status, text);
    if (is_interrupted(end))
        return complain(false, "accel: %s was interrupted: nothing is measured\n", program);
    if (found->count == 0 && failure)
        return complain(false,
                        "accel: %s %s: it has called no BLAS or LAPACK, nothing is measured\n",
                        program, failure);
    if (found->count == 0)
        return complain(
            false, "accel: %s calls no BLAS or LAPACK that libaccel sees: nothing is measured\n",
            program);
    if (!found->whole)
        complain(0,
                 "accel: %s calls more than %d libraries, or with more numbers of threads: the "
                 "first %d are measured\n",
                 program, LIBRARIES_MAX, LIBRARIES_MAX);
    if (failure)
        complain(0, "accel: %s %s: the libraries that it has called until then are measured\n",
                 program, failure);
    found->whole = found->whole && !failure;
    return true;
}

bool program_run(struct program_libraries *found, char **program)
{
    char shim[PATH_MAX], file[PATH_MAX], text[BECOME_FAULT_BYTES];
    struct preload_end end = {0, 0};
    int fd;
    const char *const wrong = preload_find(shim, NULL);
    if (wrong == preload_missing)
        return complain(false, "accel: libaccel.so is not there: it belongs beside this tool\n");
    if (wrong)
        return complain(false, "accel: %s %s\n", shim, wrong);
    if (!file_temporary(file, "called") || (fd = mkostemp(file, O_CLOEXEC)) < 0)
        return complain(false,
                        "accel: no file for the libraries can be made in TMPDIR, or /tmp: %s; "
                        "nothing is measured\n",
                        strerror(errno));
    close(fd);
    complain(0, "accel: %s is run, to see which libraries it calls\n", program[0]);
    int error = preload_run(program, shim, program_note_calls, file, &end);
    bool read = !error && program_read_calls(found, file);
    int unread = errno;
    unlink(file);
    if (error)
        return complain(false, "accel: %s cannot be started: %s\n", program[0],
                        become_fault(text, "accel calibrate", program[0], error));
    if (!read)
        return complain(false, "accel: the file for the libraries cannot be read: %s\n",
                        strerror(unread));
    return verify_run(found, program[0], &end);
}
