#define _GNU_SOURCE
#include "commands.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tool/util/complain.h"
#include "tool/log/expect.h"
#include "tool/compare/junit.h"
#include "tool/compare/kept_runs.h"
#include "tool/compare/outputs.h"
#include "tool/process/preload.h"
#include "tool/compare/runs.h"
#include "tool/util/stream.h"

enum { SAME = JUNIT_PASSED, DIFFERS = JUNIT_FAILURE, FAILED = JUNIT_ERROR };
_Static_assert(SAME == 0 && DIFFERS == 1 && FAILED == 2, "the exit status");

struct diff_options {
    struct tolerances allowed;
    bool no_numbers;                    /* --allow-no-numbers */
    const struct format *stdout_format; /* NULL: stdout is not compared */
    struct output *outputs;
    int output_count;
    regex_t *ignored;
    int ignored_count;
    struct expectation *expectations;
    int expectation_count;
    int threads, show;
    const char *keep, *shim, *report; /* report: --junit */
    struct junit junit;
    char **program;
};

/* ---- Options ---- */

static const char doc[] =
    "Runs a program without libaccel, again with another number of BLAS threads, and with "
    "libaccel. Compares what it writes number by number.\v"
    "The two runs without libaccel give the noise floor: how much the program differs from itself. "
    "They may differ by rounding alone; if not, the program is not repeatable, and nothing can be "
    "said. A difference is rounding if any of these holds:\n"
    "  * --rtol, --atol or --ulp allows it\n"
    "  * reals differ by 1e-4 of the larger one at most, or by half of the digits of a type that "
    "has fewer\n"
    "  * numbers cancel: in text and JSON, they differ by 1.8e-12 at most; in arrays, half of the "
    "digits of the largest number are the same\n"
    "  * in text and JSON, they differ by one unit of the last digit, and four or more were "
    "printed\n"
    "Integers and text must be the same in both. --ignore leaves out lines that are not.\n"
    "\n"
    "If any of --rtol, --atol and --ulp is given, a number passes if one of them allows its "
    "difference. Without them it passes if any of these holds:\n"
    "  * half of the digits of its type are the same (1.5e-08 of a double, and in text)\n"
    "  * it differs by no more than --noise times its difference without libaccel\n"
    "  * in text and JSON: it differs by --noise times the largest relative difference up to 1e-4 "
    "without libaccel; or by one unit of the last digit, and four or more were printed\n"
    "  * in arrays (npy, mtx), relative to the largest number: it differs by --noise times the "
    "noise, or three quarters of the digits (1.8e-12) are the same\n"
    "Integers must be the same, unless an option allows more. Two NaNs are the same, so are 0 and "
    "-0; a NaN or an infinity never passes for anything else. Text between numbers must be the "
    "same, except for spaces beside a number.\n"
    "\n"
    "The ACCEL_... settings are for the run with libaccel; there ACCEL_START is `wait' unless it "
    "is set, and accel sets ACCEL_LOG. Each run gets the same stdin, which is first read to its "
    "end (not from a terminal); use `</dev/null' if stdin does not end. Each run must write its "
    "files anew: they are set aside after it, and those of the last run stay.\n"
    "\n"
    "Exit status: 0 if all passes, 1 if something differs or an expectation is not met, 2 if "
    "nothing can be said: wrong options, a program that fails without libaccel or is not "
    "repeatable, files that cannot be read, no number in any compared output (files of FORMAT "
    "bytes need none).";

static bool read_tolerance(void *value, const char *text, const struct option_row *row)
{
    char *end;
    const double number = strtod(text, &end);
    *(double *)value = number;
    return (end != text && !*end && isfinite(number) && number >= 0) ||
           complain(false, "accel diff: --%s %s: allowed: a number, 0 or more\n", row->name, text);
}

static bool read_count(void *value, const char *text, const struct option_row *row)
{
    char *end;
    errno = 0;
    const long n = strtol(text, &end, 10);
    *(int *)value = (int)n;
    return (end != text && !*end && !errno && n >= row->least && n <= 100000) ||
           complain(false, "accel diff: --%s %s: allowed: %d to 100000\n", row->name, text,
                    row->least);
}

/* Makes room for one more element of an array. Ends the process if memory runs out. */
static void *grow(void *array, int count, size_t size)
{
    void *more = realloc(array, ((size_t)count + 1) * size);
    if (!more)
        exit(complain(FAILED, "accel diff: %s\n", strerror(ENOMEM)));
    return more;
}

static bool add_output(void *all, const char *text, const struct option_row *row)
{
    struct diff_options *options = all;
    (void)row;
    options->outputs = grow(options->outputs, options->output_count, sizeof *options->outputs);
    return output_name(&options->outputs[options->output_count++], text);
}

static bool add_ignored(void *all, const char *text, const struct option_row *row)
{
    struct diff_options *options = all;
    char why[200];
    options->ignored = grow(options->ignored, options->ignored_count, sizeof *options->ignored);
    regex_t *expression = &options->ignored[options->ignored_count];
    int error = regcomp(expression, text, REG_EXTENDED | REG_NOSUB);
    (void)row;
    if (!error) {
        options->ignored_count++;
        return true;
    }
    regerror(error, NULL, why, sizeof why);
    return complain(false,
                    "accel diff: --ignore %s: %s; allowed: a POSIX extended regular expression\n",
                    text, why);
}

static bool add_expectation(void *all, const char *text, const struct option_row *row)
{
    struct diff_options *options = all;
    (void)row;
    options->expectations =
        grow(options->expectations, options->expectation_count, sizeof *options->expectations);
    return expect_parse(&options->expectations[options->expectation_count++], text);
}

static bool read_format(void *format, const char *text, const struct option_row *row)
{
    const struct format *found = format_find(text, strlen(text));
    *(const struct format **)format = found;
    return found || strcmp(text, "none") == 0 ||
           complain(false, "accel diff: --%s %s: allowed: %s, none\n", row->name, text,
                    format_list());
}

static const struct option_row rows[] = {
    {"output", 'o', "[FORMAT:]FILE",
     "compares a file that each run writes; FORMAT: text, csv, json, npy, mtx (Matrix Market), "
     "bytes (default: by its first bytes, then by its name). A name with a colon begins with a "
     "folder: ./a:b. May be given again",
     .read = add_output},
    {"stdout", 0, "FORMAT", "the format of stdout (default: text); none: not compared",
     SETS(diff_options, read_format, stdout_format)},
    {"ignore", 'i', "REGEX",
     "leaves out matching lines of text, and members of JSON with a matching path (.a.b[3]). POSIX "
     "extended. May be given again",
     .read = add_ignored},
    {"expect", 'e', "EXPECTATION",
     "expects decisions: 'SYMBOL on gpu|cpu OP N' or 'SYMBOL why REASON OP N', as in "
     "'*gemm* on gpu >= 1'. SYMBOL is a name that is called, or a glob; OP one of >= <= == != > <. "
     "May be given again",
     .read = add_expectation},
    {"rtol", 'r', "X", "allows a difference of X times the larger number",
     SETS(diff_options, read_tolerance, allowed.relative), .group = 1},
    {"atol", 'a', "X", "allows a difference of X",
     SETS(diff_options, read_tolerance, allowed.absolute), .group = 1},
    {"ulp", 'u', "N",
     "allows a difference of N units in the last place (of a double, in text; of an array's own "
     "type)",
     SETS(diff_options, read_tolerance, allowed.ulp), .group = 1},
    {"noise", 0, "X", "allows X times the noise floor (default: 10)",
     SETS(diff_options, read_tolerance, allowed.noise), .group = 1},
    {"allow-no-numbers", 0, NULL,
     "passes even if no compared output has a number; without it, that is status 2",
     SETS(diff_options, option_flag, no_numbers), .group = 1},
    {"threads", 't', "N",
     "BLAS threads of the second run (default: 1, or 2 if the first run has one)",
     SETS(diff_options, read_count, threads), .group = 2, .least = 1},
    {"show", 'n', "N", "prints the first N differences of each file (default: 5)",
     SETS(diff_options, read_count, show), .group = 2},
    {"keep", 'k', "FOLDER", "keeps what the runs have written, and the decisions",
     SETS(diff_options, option_text, keep), 2},
    {"junit", 0, "FILE",
     "also writes the result as JUnit's XML: a test case for each run, output and expectation",
     SETS(diff_options, option_text, report), .group = 2},
    {"shim", 0, "PATH", "libaccel.so (default: the one that belongs to this tool)",
     SETS(diff_options, option_text, shim), .group = 2},
    {0}};

static void free_options(struct diff_options *options)
{
    for (int i = 0; i < options->ignored_count; i++)
        regfree(&options->ignored[i]);
    free(options->ignored);
    free(options->outputs);
    free(options->expectations);
}

/* ---- The runs ---- */

/* Prints one line, even if arguments have newlines. */
static void print_program(char *const *program)
{
    printf("accel diff:");
    for (; *program; program++) {
        putchar(' ');
        for (const char *c = *program; *c; c++)
            putchar(*c == '\n' || *c == '\r' || *c == '\t' ? ' ' : *c);
    }
    putchar('\n');
}

static void print_run(const struct runs *runs, enum run run, int status)
{
    int threads = run == RUN_SHIM ? runs->threads[RUN_PLAIN] : runs->threads[run];
    printf("  %-16s  %d BLAS thread%s, %.2f s, exit status %d\n",
           run == RUN_SHIM ? "with libaccel" : "without libaccel", threads, threads == 1 ? "" : "s",
           runs->seconds[run], status);
}

static void print_decisions(const struct decision_counts *decisions)
{
    const char *before = " (";
    printf("  decisions         %lld on the GPU, %lld on the CPU", (long long)decisions->on_gpu,
           (long long)decisions->on_cpu);
    for (int i = 0; i < ACCEL_WHYS; i++)
        if (decisions->why[i]) {
            printf("%s%s %lld", before, accel_why_name((enum accel_why)i),
                   (long long)decisions->why[i]);
            before = ", ";
        }
    printf("%s", *before == ',' ? ")" : "");
    if (decisions->inner_on_gpu + decisions->inner_on_cpu > 0)
        printf("; inside these %lld more on the GPU, %lld on the CPU",
               (long long)decisions->inner_on_gpu, (long long)decisions->inner_on_cpu);
    printf("\n");
    if (decisions->on_gpu + decisions->inner_on_gpu == 0)
        printf("  nothing ran on the GPU: the comparison says nothing about its results\n");
}

static void report_run(struct diff_options *options, const struct runs *runs, enum run run,
                       int status)
{
    char message[40];
    snprintf(message, sizeof message, "exit status %d", status);
    junit_case(&options->junit, run_names[run], runs->seconds[run],
               status == 0       ? JUNIT_PASSED
               : run == RUN_SHIM ? JUNIT_FAILURE
                                 : JUNIT_ERROR,
               message, "");
}

/* Makes all runs. A failure with libaccel alone is a difference; after one without it nothing can
 * be said. */
static int run_program(struct diff_options *options, struct runs *runs)
{
    print_program(options->program);
    for (enum run run = 0; run < RUNS; run++) {
        if (isatty(STDERR_FILENO))
            complain(0, "accel diff: run %d of %d: %s\n", run + 1, RUNS, run_names[run]);
        int status = runs_program(runs, run);
        if (runs_signal() || status < 0)
            return FAILED;
        print_run(runs, run, status);
        report_run(options, runs, run, status);
        if (!outputs_take(options->outputs, options->output_count, run))
            return FAILED;
        if (status == 0)
            continue;
        if (run == RUN_SHIM) {
            printf("\nexit status: DIFFERS: 0, with libaccel %d\n", status);
            return DIFFERS;
        }
        return complain(FAILED, "accel diff: %s: %s ends with status %d; allowed: 0\n",
                        options->program[0], run_names[run], status);
    }
    return SAME;
}

/* ---- Comparing ---- */

static int worse(int a, int b)
{
    return a > b ? a : b;
}

/* Prints what a comparison has found, and adds it to the report. */
static void report_tally(struct diff_options *options, const struct tally *tally, const char *name,
                         const struct format *format, int result)
{
    char message[300], *text = NULL;
    size_t length;
    FILE *file = open_memstream(&text, &length);
    if (file)
        tally_print(file, tally, name, format->name);
    if (!file || fclose(file) != 0)
        exit(complain(FAILED, "accel diff: %s\n", strerror(ENOMEM)));
    fputs(text, stdout);
    const struct tally_sum *sum = result == FAILED ? &tally->noise : &tally->with;
    snprintf(message, sizeof message,
             "%s%lld of %lld numbers differ by more than allowed, %lld places in text or "
             "structure; largest difference: absolute %.3Lg, relative %.3Lg, %.3Lg ULP",
             result == FAILED ? "not repeatable without libaccel: " : "", (long long)sum->beyond,
             (long long)sum->numbers, (long long)sum->texts, sum->worst.absolute,
             sum->worst.relative, sum->worst.ulp);
    junit_case(&options->junit, name, 0, (enum junit_outcome)result, message, text);
    free(text);
}

/* Compares one output and prints the result. Adds the compared numbers to *numbers; files compared
 * as bytes count as one. */
static int compare_one(struct diff_options *options, const char *name, const char (*path)[PATH_MAX],
                       const struct format *format, int64_t *numbers)
{
    const struct compared compared = {.name = name,
                                      .path = {path[0], path[1], path[2]},
                                      .ignored = options->ignored,
                                      .ignored_count = (size_t)options->ignored_count};
    struct tally tally;
    tally_start(&tally, &options->allowed, options->show);
    bool good = compare_files(&tally, &compared, format);
    int result = !good || !tally_repeatable(&tally) ? FAILED
                 : tally_failed(&tally)             ? DIFFERS
                                                    : SAME;
    if (good)
        report_tally(options, &tally, name, format, result);
    else
        junit_case(&options->junit, name, 0, JUNIT_ERROR, "it cannot be read", "");
    *numbers += tally.with.numbers + !format_has_numbers(format);
    tally_free(&tally);
    return result;
}

static int compare_output(struct diff_options *options, const struct output *output,
                          int64_t *numbers)
{
    for (enum run run = 0; run < RUN_SHIM; run++)
        if (!output->written[run]) {
            complain(0, "accel diff: %s of %s: not written\n", output->name, run_names[run]);
            junit_case(&options->junit, output->name, 0, JUNIT_ERROR, "not written",
                       run_names[run]);
            return FAILED;
        }
    if (!output->written[RUN_SHIM]) {
        printf("\n%s: DIFFERS: not written with libaccel\n", output->name);
        junit_case(&options->junit, output->name, 0, JUNIT_FAILURE, "not written with libaccel",
                   "");
        return DIFFERS;
    }
    return compare_one(options, output->name, output->path,
                       output->format ? output->format
                                      : format_guess(output->name, output->path[RUN_PLAIN]),
                       numbers);
}

static int check_expectations(struct diff_options *options)
{
    int result = SAME;
    if (options->expectation_count)
        printf("\n");
    for (int i = 0; i < options->expectation_count; i++) {
        const struct expectation *e = &options->expectations[i];
        printf("expect %s: %s; %lld\n", e->text, expect_is_met(e) ? "ok" : "NOT MET",
               (long long)e->seen);
        char message[40];
        snprintf(message, sizeof message, "there were %lld", (long long)e->seen);
        junit_case(&options->junit, e->text, 0, expect_is_met(e) ? JUNIT_PASSED : JUNIT_FAILURE,
                   message, "");
        if (!expect_is_met(e))
            result = DIFFERS;
    }
    return result;
}

static int compare_all(struct diff_options *options, const struct runs *runs)
{
    struct decision_counts decisions;
    if (!expect_count(&decisions, options->expectations, options->expectation_count,
                      runs->decisions))
        return FAILED;
    print_decisions(&decisions);
    int64_t numbers = 0;
    int result = SAME;
    if (options->stdout_format)
        result = compare_one(options, "stdout", runs->output, options->stdout_format, &numbers);
    for (int i = 0; i < options->output_count; i++)
        result = worse(result, compare_output(options, &options->outputs[i], &numbers));
    if (result == SAME && numbers == 0 && !options->no_numbers) {
        printf("\nno compared output has a number: see --output, or --allow-no-numbers if that is "
               "right\n");
        result = FAILED;
    }
    return worse(result, check_expectations(options));
}

static int run_and_compare(struct diff_options *options, struct runs *runs)
{
    if (options->keep && !kept_runs_open(options->keep, options->outputs, options->output_count))
        return FAILED;
    int result = run_program(options, runs);
    if (runs_signal())
        return FAILED;
    if (result == SAME)
        result = compare_all(options, runs);
    if (options->keep &&
        !kept_runs_copy(options->keep, runs, options->outputs, options->output_count))
        result = FAILED;
    printf("\naccel diff: %s\n", result == SAME      ? "the same, within what is allowed"
                                 : result == DIFFERS ? "DIFFERS"
                                                     : "nothing can be said");
    return result;
}

/* Writes what is printed. Returns `result`, or FAILED, which it has said why. */
static int write_report(int result)
{
    const int error = stream_flush(stdout);
    return error
               ? complain(FAILED, "accel diff: the report cannot be written: %s\n", strerror(error))
               : result;
}

static int diff(struct diff_options *options)
{
    char shim[PATH_MAX];
    const char *const wrong = preload_find(shim, options->shim);
    if (wrong)
        return preload_complain(FAILED, "accel diff", options->shim, shim, wrong);
    struct runs runs = {
        .program = options->program, .shim = shim, .threads = {0, options->threads}};
    int result = FAILED;
    if (!runs_open(&runs))
        return FAILED;
    if (!runs_signal() && outputs_open(options->outputs, options->output_count)) {
        result = run_and_compare(options, &runs);
        outputs_close(options->outputs, options->output_count, runs.made == RUNS && !runs_signal());
    }
    result = write_report(result);
    runs_close(&runs); /* a signal that has come meanwhile ends the process here */
    return result;
}

static int diff_program(const struct command *command, int argc, char **argv)
{
    struct diff_options options = {
        .allowed = {-1, -1, -1, 10}, .stdout_format = format_find("text", 4), .show = 5};
    int result = FAILED;
    options.program = options_read(command, argc, argv, &options).word;
    if (!options.program)
        complain(0, "accel diff: no program is given: accel diff [OPTION...] -- PROGRAM\n");
    else if (junit_open(&options.junit, options.report, options.program[0]))
        result = diff(&options);
    if (result == FAILED && options.junit.count[JUNIT_ERROR] == 0)
        junit_case(&options.junit, "the comparison", 0, JUNIT_ERROR, "nothing can be said",
                   "What accel diff writes to its stderr says why.");
    if (!junit_close(&options.junit))
        result = FAILED;
    free_options(&options);
    return result;
}

/* Returns 0 if all differences are allowed and every expectation is met, 1 if not, 2 if that cannot
 * be told: wrong options, a program that fails without libaccel, unreadable files. If a signal that
 * ends programs came, ends this process by it. */
const struct command diff_command = {
    .name = "diff",
    .does = "run a program with and without libaccel, and compare what it writes",
    .options = rows,
    .arguments = "-- PROGRAM [ARGUMENT...]",
    .in_order = true,
    .doc = doc,
    .run = diff_program};
