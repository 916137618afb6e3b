#define _GNU_SOURCE
#include "commands.h"

#include <argp.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/thread/clock.h"
#include "base/thread/held_signals.h"
#include "base/output/output.h"
#include "complain.h"
#include "dispatch/settings/setting.h"
#include "preload.h"
#include "report/page.h"
#include "stand_by.h"

enum { SUMMARY_KEY = 0x100, TRACE_KEY, POLICY_KEY, REQUIRE_KEY, SHIM_KEY };

static const struct argp_option rows[] = {
    {"verbose", 'v', NULL, 0, "log each decision on stderr (ACCEL_LOG=1)", 0},
    {"trace", TRACE_KEY, "FILE", 0,
     "write a trace of the calls, for Perfetto or chrome://tracing (ACCEL_TRACE); an older FILE is "
     "removed",
     0},
    {"summary", SUMMARY_KEY, NULL, 0,
     "print a table of the calls of all processes after the program's end, whatever that is", 0},
    {"policy", POLICY_KEY, "auto|gpu|cpu", 0,
     "gpu: every supported call goes to the GPU; cpu: none does (ACCEL_POLICY)", 0},
    {"require-gpu", REQUIRE_KEY, NULL, 0,
     "end the program at a fallback to the CPU (ACCEL_REQUIRE=gpu)", 0},
    {"shim", SHIM_KEY, "PATH", 0, "libaccel.so (default: the one that belongs to this tool)", 0},
    {0}};

struct options {
    const char *shim;
    bool summary;
    char **program;
};

/* Sets the variable of a setting for the program. Ends this process if the value is none of the setting's. */
static void set(const char *name, const char *option, const char *value)
{
    const struct setting *setting = &setting_table[setting_named(name)];
    struct accel_settings unused = {.on = true};
    struct reading reading = {.settings = &unused, .program = ""};
    char words[100];
    if (setting->read(&reading, setting, value) != UNDERSTOOD)
        exit(complain(2, "accel run: --%s=%s: allowed is %s\n", option, value,
                      setting_words(setting->allowed, words, sizeof words)));
    if (setenv(name, value, 1) != 0)
        exit(complain(126, "accel run: %s: %s\n", name, strerror(errno)));
}

/* Removes a trace of an earlier run; one whose name has the process's number, host or rank is not known yet. */
static void remove_old(const char *trace)
{
    struct stat st;
    if (!strchr(trace, '%') && lstat(trace, &st) == 0 && S_ISREG(st.st_mode))
        unlink(trace);
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct options *options = state->input;
    switch (key) {
    case 'v':
        set("ACCEL_LOG", "verbose", "1");
        return 0;
    case SUMMARY_KEY:
        options->summary = true;
        return 0;
    case TRACE_KEY:
        set("ACCEL_TRACE", "trace", arg);
        remove_old(arg);
        return 0;
    case POLICY_KEY:
        set("ACCEL_POLICY", "policy", arg);
        return 0;
    case REQUIRE_KEY:
        set("ACCEL_REQUIRE", "require-gpu", "gpu");
        return 0;
    case SHIM_KEY:
        options->shim = arg;
        return 0;
    case ARGP_KEY_ARG:
        options->program = command_program(state);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

const struct argp run_argp = {
    .options = rows,
    .parser = parse,
    .args_doc = "[--] PROGRAM [ARGUMENT...]",
    .doc =
        "Runs a program with libaccel.so preloaded.\v"
        "The program takes this process's place: exit status and signals are its own. With "
        "--summary this process stays as the program's parent, passes signals on, and ends as the "
        "program has ended. The options override the variables that they name. LD_PRELOAD keeps "
        "what it has. If the program is not found, the exit status is 127, if it cannot be run, "
        "126."};

static int cannot_run(const struct options *options, int error)
{
    return complain(error == ENOENT ? 127 : 126, "accel run: %s: %s\n", options->program[0],
                    strerror(error));
}

/* ---- With a summary ---- */

/* The table is a file without a name: nothing is left of it, however this process ends. */
static struct totals *make_table(char path[64])
{
    const int fd = memfd_create("accel-summary", MFD_CLOEXEC);
    struct held_signals held; /* the limit on the size of files holds for this one, too */
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

static int run_and_sum_up(const struct options *options, const char *shim)
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
    const int error = preload_run(options->program, shim, name_table, path, &end);
    if (error)
        return cannot_run(options, error);
    const struct page page = {.program = options->program[0],
                              .seconds = 1e-3 * (accel_now_ms() - start_ms),
                              .json = settings.summary == ACCEL_SUMMARY_JSON ||
                                      settings.log == ACCEL_LOG_JSON,
                              .always = true,
                              .file = settings.log_file};
    page_write(&page, totals);
    return stand_by_end(end.status);
}

int run_command(int argc, char **argv)
{
    struct options options = {NULL, false, NULL};
    char shim[PATH_MAX];
    if (argp_parse(&run_argp, argc, argv, ARGP_IN_ORDER, NULL, &options) != 0)
        return 2;
    if (!options.program)
        return complain(2, "accel run: no program is given: accel run -- PROGRAM\n");
    const char *const wrong = preload_find(shim, options.shim);
    if (wrong)
        return preload_complain(126, "accel run", options.shim, shim, wrong);
    if (options.summary)
        return run_and_sum_up(&options, shim);
    if (!preload_set(shim, options.program[0]))
        return complain(126, "accel run: %s: %s\n", shim, strerror(errno));
    execvp(options.program[0], options.program);
    return cannot_run(&options, errno);
}
