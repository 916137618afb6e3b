#define _GNU_SOURCE
#include "commands.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/thread/clock.h"
#include "base/thread/signal_mask.h"
#include "base/output/output.h"
#include "tool/util/complain.h"
#include "dispatch/settings/setting.h"
#include "tool/process/become.h"
#include "tool/process/preload.h"
#include "report/page.h"
#include "tool/process/supervise.h"
#include "tool/serve/start_server.h"

struct run_options {
    const char *shim;
    bool summary, serve;
};

/* Sets the variable of a setting for the program. Ends this process if the value is none of the
 * setting's. */
static void set(const char *name, const char *option, const char *value)
{
    const struct setting *setting = &setting_table[setting_named(name)];
    struct accel_settings unused = {.on = true};
    struct settings_reading reading = {.settings = &unused, .program = ""};
    char words[100];
    if (setting->read(&reading, setting, value) != UNDERSTOOD)
        exit(complain(2, "accel run: --%s=%s: allowed is %s\n", option, value,
                      setting_words(setting->allowed, words, sizeof words)));
    if (setenv(name, value, 1) != 0)
        exit(complain(126, "accel run: %s: %s\n", name, strerror(errno)));
}

/* Removes a trace of an earlier run; one whose name has the process's number, host or rank is not
 * known yet. */
static void remove_old(const char *trace)
{
    struct stat st;
    if (!strchr(trace, '%') && lstat(trace, &st) == 0 && S_ISREG(st.st_mode))
        unlink(trace);
}

static bool read_setting(void *unused, const char *text, const struct option_row *row)
{
    (void)unused;
    set(row->setting, row->name, row->argument ? text : row->value);
    return true;
}

static bool read_trace(void *unused, const char *text, const struct option_row *row)
{
    read_setting(unused, text, row);
    remove_old(text);
    return true;
}

static const struct option_row rows[] = {
    {"verbose", 'v', NULL, "log each decision on stderr (ACCEL_LOG=1)", .read = read_setting,
     .setting = "ACCEL_LOG", .value = "1"},
    {"trace", 0, "FILE",
     "write a trace of the calls, for Perfetto or chrome://tracing (ACCEL_TRACE); an older FILE is "
     "removed",
     .read = read_trace, .setting = "ACCEL_TRACE"},
    {"summary", 0, NULL,
     "print a table of the calls of all processes after the program's end, whatever that is",
     SETS(run_options, option_flag, summary)},
    {"policy", 0, "auto|gpu|cpu",
     "gpu: every supported call goes to the GPU; cpu: none does (ACCEL_POLICY)",
     .read = read_setting, .setting = "ACCEL_POLICY"},
    {"require-gpu", 0, NULL, "end the program at a fallback to the CPU (ACCEL_REQUIRE=gpu)",
     .read = read_setting, .setting = "ACCEL_REQUIRE", .value = "gpu"},
    {"serve", 0, NULL,
     "start `accel serve` in the background first, unless one is there; it stays behind the "
     "program's end",
     SETS(run_options, option_flag, serve)},
    {"shim", 0, "PATH", "libaccel.so (default: the one that belongs to this tool)",
     SETS(run_options, option_text, shim)},
    {0}};

static int cannot_run(const char *program, int error)
{
    char text[BECOME_FAULT_BYTES];
    return complain(error == ENOENT ? 127 : 126, "accel run: %s: %s\n", program,
                    become_fault(text, "accel run", program, error));
}

/* ---- With a summary ---- */

/* The table is a file without a name: nothing is left of it, however this process ends. */
static struct totals *make_table(char path[64])
{
    const int fd = memfd_create("accel-summary", MFD_CLOEXEC);
    struct signal_mask held; /* the limit on the size of files holds for this one, too */
    snprintf(path, 64, "/proc/%d/fd/%d", (int)getpid(), fd);
    signals_hold(&held);
    struct totals *totals = fd < 0 ? NULL : totals_make_in(fd);
    signals_release(&held, !totals);
    return totals;
}

static void name_table(const void *path)
{
    setenv("ACCEL_SUMMARY_TABLE", path, 1);
}

static int run_and_sum_up(char **program, const char *shim)
{
    struct accel_settings settings;
    char path[64];
    struct preload_end end = {0, 0};
    struct totals *totals = make_table(path);
    if (!totals)
        return complain(126, "accel run: there is no place for the summary: %s\n", strerror(errno));
    settings_read_whole(&settings, NULL);
    if (!settings.summary)
        set("ACCEL_SUMMARY", "summary", "1");
    output_start();
    const double start_ms = accel_now_ms();
    const int error = preload_run(program, shim, name_table, path, &end);
    if (error)
        return cannot_run(program[0], error);
    const struct page page = {.program = program[0],
                              .seconds = 1e-3 * (accel_now_ms() - start_ms),
                              .json = settings.summary == ACCEL_SUMMARY_JSON ||
                                      settings.log == ACCEL_LOG_JSON,
                              .always = true,
                              .file = settings.log_file};
    page_write(&page, totals);
    return supervise_end(end.status);
}

static int run_with_preload(const struct command *command, int argc, char **argv)
{
    struct run_options options = {NULL, false, false};
    char shim[PATH_MAX];
    char **const program = options_read(command, argc, argv, &options).word;
    if (!program)
        return complain(2, "accel run: no program is given: accel run -- PROGRAM\n");
    const char *const wrong = preload_find(shim, options.shim);
    if (wrong)
        return preload_complain(126, "accel run", options.shim, shim, wrong);
    if (options.serve)
        start_server("accel run");
    if (options.summary)
        return run_and_sum_up(program, shim);
    if (!preload_set(shim, program[0]))
        return complain(126, "accel run: %s: %s\n", shim, strerror(errno));
    return cannot_run(program[0], become_program(program));
}

/* Makes this process the program; with a summary, stands by it, and ends by the signal that has
 * ended it. Returns the program's exit status, or if that fails: 127 if there is no such program,
 * 126 if it cannot be run, 2 for wrong options. */
const struct command run_command = {
    .name = "run",
    .does = "run a program with libaccel",
    .options = rows,
    .arguments = "[--] PROGRAM [ARGUMENT...]",
    .in_order = true,
    .doc =
        "Runs a program with libaccel.so preloaded.\v"
        "The program takes this process's place: exit status and signals are its own. With "
        "--summary this process stays as the program's parent, passes signals on, and ends as the "
        "program has ended. The options override the variables that they name. LD_PRELOAD keeps "
        "what it has. If the program is not found, the exit status is 127, if it cannot be run, "
        "126.",
    .run = run_with_preload};
