#define _GNU_SOURCE
#include "commands.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "complain.h"
#include "dispatch/settings/complaints.h"
#include "dispatch/settings/settings.h"
#include "model_file.h"
#include "report_page.h"
#include "stream.h"

struct options {
    bool html;
    const char *output, *model;
    bool model_named;
    char **logs;
    int count;
};

enum { HTML_KEY = 0x100 };

static const struct argp_option rows[] = {
    {"html", HTML_KEY, NULL, 0, "one HTML page, which needs no network", 0},
    {"output", 'o', "FILE", 0, "write it to this file (default: stdout)", 0},
    {"model", 'm', "PATH", 0,
     "the calibration with the machine's ceilings (default: ACCEL_MODEL's)", 0},
    {0}};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct options *options = state->input;
    switch (key) {
    case HTML_KEY:
        options->html = true;
        return 0;
    case 'o':
        options->output = arg;
        return 0;
    case 'm':
        options->model = arg;
        options->model_named = true;
        return 0;
    case ARGP_KEY_ARGS:
        options->logs = state->argv + state->next;
        options->count = state->argc - state->next;
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

const struct argp report_argp = {
    .options = rows,
    .parser = parse,
    .args_doc = "LOG...",
    .doc = "Makes a page from logs that ACCEL_LOG=1 or json has written, of one process or of "
           "several: "
           "time by size, rates beside what the machine can do, a timeline, a table of routines.\v"
           "The log - is stdin. The timeline needs a log in JSON. The exit status is 1 if a log "
           "cannot be read or has no line of libaccel's, or if no log has a call; 2 for wrong "
           "options, if the calibration of --model cannot be read, or if the page cannot be "
           "written."};

/* Writes the page. Returns 0, or the errno. */
static int write_page(const struct report_page *page, const char *output)
{
    FILE *to = output ? fopen(output, "we") : stdout;
    if (!to)
        return errno;
    report_page_write(to, page);
    int error = stream_flush(to);
    if (output && fclose(to) != 0 && !error)
        error = errno;
    return error;
}

static int report(const struct options *options)
{
    struct log_counts counts;
    struct calibration file;
    struct ceilings ceilings;
    if (!model_file_open(&file, "accel report", options->model, options->model_named))
        return 2;
    struct log_seen *seen = log_seen_open();
    const int read =
        log_read_all("accel report", options->logs, options->count, log_seen_take, seen, &counts);
    ceilings_find(&ceilings, &file, *seen->gpu ? seen->gpu : NULL);
    log_sums_sort(&seen->sums);
    const struct report_page page = {.seen = seen,
                                     .counts = &counts,
                                     .ceilings = &ceilings,
                                     .model = file.text ? options->model : NULL,
                                     .paths = options->logs,
                                     .path_count = options->count};
    int status = read == options->count && counts.decisions > 0 ? 0 : 1;
    if (counts.decisions == 0)
        complain(0, "accel report: no call in %s, and no page is made\n",
                 options->count == 1 ? "the log" : "any of the logs");
    else if ((errno = write_page(&page, options->output)))
        status = complain(2, "accel report: %s: %s\n", options->output ? options->output : "stdout",
                          strerror(errno));
    calibration_close(&file);
    log_seen_close(seen);
    return status;
}

int report_command(int argc, char **argv)
{
    struct options options = {.html = false};
    struct accel_settings settings;
    if (argp_parse(&report_argp, argc, argv, 0, NULL, &options) != 0)
        return 2;
    if (!options.html)
        return complain(2, "accel report: no format is given; allowed: --html\n");
    if (options.count == 0)
        return complain(2, "accel report: no log is given: accel report --html LOG -o FILE\n");
    if (!options.output && isatty(STDOUT_FILENO))
        return complain(2, "accel report: a page is not for a terminal; name a file: -o FILE\n");
    settings_read_whole(&settings, NULL);
    complaints_say();
    if (!options.model)
        options.model = settings.model;
    return report(&options);
}
