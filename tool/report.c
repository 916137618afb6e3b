#define _GNU_SOURCE
#include "commands.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tool/util/complain.h"
#include "dispatch/settings/complaints.h"
#include "dispatch/settings/settings.h"
#include "tool/util/model_file.h"
#include "tool/util/same_file.h"
#include "tool/report/report_page.h"
#include "tool/util/stream.h"

struct report_options {
    bool html;
    const char *output, *model;
};

static bool read_html(void *options, const char *text, const struct option_row *row)
{
    struct report_options *const report = options;
    (void)row;
    report->html = true;
    report->output = text ? text : report->output;
    return true;
}

static const struct option_row rows[] = {
    {"html", 0, "FILE", "one HTML page, which needs no network; with =FILE, like -o FILE",
     .read = read_html, .optional = true},
    {"output", 'o', "FILE", "write it to this file (default: stdout)",
     SETS(report_options, option_text, output)},
    {"model", 'm', "PATH", "the calibration with the machine's ceilings (default: ACCEL_MODEL's)",
     SETS(report_options, option_text, model)},
    {0}};

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

static bool is_page_name(const char *name)
{
    const char *const dot = strrchr(name, '.');
    return dot && (strcasecmp(dot, ".html") == 0 || strcasecmp(dot, ".htm") == 0);
}

/* Returns what is wrong with one of the logs as the output is given, and sets *log to it; NULL if
 * nothing is. */
static const char *fault_of(const struct words *logs, const char *output, const char **log)
{
    struct stat page;
    const bool is_there = output && stat(output, &page) == 0 && S_ISREG(page.st_mode);
    for (int i = 0; i < logs->count; i++) {
        *log = logs->word[i];
        if (!output && is_page_name(*log))
            return "is a page's name, not a log's: accel report --html=FILE LOG";
        if (is_there && is_same_file(*log, output))
            return "is a log; allowed: another FILE for the page";
    }
    return NULL;
}

static int report(const struct report_options *options, const char *model, const struct words *logs)
{
    struct log_counts counts;
    struct calibration file;
    struct ceilings ceilings;
    if (!model_file_open(&file, "accel report", model, options->model))
        return 2;
    struct log_seen *seen = log_seen_open();
    const int read =
        log_read_all("accel report", logs->word, logs->count, log_seen_take, seen, &counts);
    ceilings_find(&ceilings, &file, *seen->gpu ? seen->gpu : NULL);
    log_sums_sort(&seen->sums);
    const struct report_page page = {.seen = seen,
                                     .counts = &counts,
                                     .ceilings = &ceilings,
                                     .model = file.text ? model : NULL,
                                     .paths = logs->word,
                                     .path_count = logs->count};
    int status = read == logs->count && counts.decisions > 0 ? 0 : 1;
    if (counts.decisions == 0)
        complain(0, "accel report: no call in %s, and no page is made\n",
                 logs->count == 1 ? "the log" : "any of the logs");
    else if ((errno = write_page(&page, options->output)))
        status = complain(2, "accel report: %s: %s\n", options->output ? options->output : "stdout",
                          strerror(errno));
    calibration_close(&file);
    log_seen_close(seen);
    return status;
}

static int report_logs(const struct command *command, int argc, char **argv)
{
    struct report_options options = {.html = false};
    struct accel_settings settings;
    const struct words logs = options_read(command, argc, argv, &options);
    if (!options.html)
        return complain(2, "accel report: no format is given; allowed: --html\n");
    if (logs.count == 0)
        return complain(2, "accel report: no log is given: accel report --html LOG -o FILE\n");
    const char *log, *const fault = fault_of(&logs, options.output, &log);
    if (fault)
        return complain(2, "accel report: %s %s; nothing is read or written\n", log, fault);
    if (!options.output && isatty(STDOUT_FILENO))
        return complain(2, "accel report: a page is not for a terminal; name a file: -o FILE\n");
    settings_read_whole(&settings, NULL);
    complaints_say();
    return report(&options, options.model ? options.model : settings.model, &logs);
}

/* Returns 0; 1 if a log cannot be read, or none has a call; 2 for wrong options, or if the page
 * cannot be written. */
const struct command report_command = {
    .name = "report",
    .does = "make a page of charts and tables from logs",
    .options = rows,
    .arguments = "LOG...",
    .doc = "Makes a page from logs that ACCEL_LOG=1 or json has written, of one process or of "
           "several: time by size, rates beside what the machine can do, a timeline, a table of "
           "routines.\v"
           "The log - is stdin. The timeline needs a log in JSON. The exit status is 1 if a log "
           "cannot be read or has no line of libaccel's, or if no log has a call; 2 for wrong "
           "options, if the calibration of --model cannot be read, or if the page cannot be "
           "written.",
    .run = report_logs};
