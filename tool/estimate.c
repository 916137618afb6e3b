#define _GNU_SOURCE
#include "commands.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "report/estimate.h"
#include "tool/util/complain.h"
#include "dispatch/cost/calibration.h"
#include "dispatch/settings/complaints.h"
#include "dispatch/cost/known_gpus.h"
#include "gpu/plan/nominal.h"
#include "ops/op.h"
#include "dispatch/settings/settings.h"
#include "base/thread/clock.h"
#include "gpu_names.h"
#include "base/file/file.h"
#include "tool/util/model_file.h"
#include "tool/process/become.h"
#include "tool/process/preload.h"
#include "tool/util/stream.h"

struct estimate_options {
    const char *gpu, *model, *shim;
    char **program;
    const unsigned char *precision; /* of struct accel_settings, by routine */
};

/* ---- Options ---- */

static const struct option_row rows[] = {
    {"gpu", 'g', "NAME",
     "the GPU, such as RTX4090: one that accel knows, or one of the calibration; list: prints all "
     "names, and runs nothing",
     SETS(estimate_options, option_text, gpu)},
    {"model", 'm', "PATH", "the calibration to use (default: ACCEL_MODEL's)",
     SETS(estimate_options, option_text, model)},
    {"shim", 0, "PATH", "libaccel.so (default: the one that belongs to this tool)",
     SETS(estimate_options, option_text, shim)},
    {0}};

/* "?" is for users; a shell leaves it as it is if no file has a name of one character. */
static bool is_list(const char *gpu)
{
    return strcmp(gpu, "list") == 0 || strcmp(gpu, "?") == 0;
}

static int list_gpus(const struct calibration *file)
{
    gpu_names_print(file);
    const int error = stream_flush(stdout);
    return error ? complain(2, "accel estimate: the list cannot be written: %s\n", strerror(error))
                 : 0;
}

/* ---- The program ---- */

struct estimate_run {
    const struct estimate_options *options;
    const char *folder;
};

static void set_environment(const void *context)
{
    const struct estimate_run *run = context;
    /* The GPU must be free to take any call. */
    setenv("ACCEL", "1", 1);
    setenv("ACCEL_POLICY", "auto", 1);
    setenv("ACCEL_DEVICES", "auto", 1);
    setenv("ACCEL_REQUIRE", "", 1);
    setenv("ACCEL_ESTIMATE", run->options->gpu, 1);
    setenv("ACCEL_ESTIMATE_DIR", run->folder, 1);
    if (run->options->model)
        setenv("ACCEL_MODEL", run->options->model, 1);
}

/* Sets *status to the program's exit status, as a shell has it. False if it cannot be started. */
static bool run_program(const struct estimate_options *options, const char *shim,
                        const char *folder, int *status)
{
    const struct estimate_run run = {options, folder};
    struct preload_end end = {0, 0};
    const int error = preload_run(options->program, shim, set_environment, &run, &end);
    if (error) {
        char command[200], text[BECOME_FAULT_BYTES];
        snprintf(command, sizeof command, "accel estimate --gpu=%s", options->gpu);
        *status =
            complain(error == ENOENT ? 127 : 126, "accel estimate: %s: %s\n", options->program[0],
                     become_fault(text, command, options->program[0], error));
        return false;
    }
    *status = WIFSIGNALED(end.status) ? 128 + WTERMSIG(end.status) : WEXITSTATUS(end.status);
    return true;
}

/* ---- Its counts ---- */

struct estimate_row {
    const char *name;
    struct estimate_sums sums;
};

struct table {
    struct estimate_row *row; /* one for each routine */
    int processes;
};

static void add_sums(struct estimate_sums *sum, const struct estimate_sums *one)
{
    sum->calls += one->calls;
    sum->gpu_calls += one->gpu_calls;
    sum->lost_calls += one->lost_calls;
    sum->cpu_ms += one->cpu_ms;
    sum->gpu_cpu_ms += one->gpu_cpu_ms;
    sum->est_gpu_ms += one->est_gpu_ms;
    sum->lost_ms += one->lost_ms;
    sum->saved_ms += one->saved_ms;
}

static bool make_table(struct table *table)
{
    table->processes = 0;
    table->row = calloc(accel_routine_count, sizeof *table->row);
    for (uint32_t i = 0; table->row && i < accel_routine_count; i++)
        table->row[i].name = accel_routines[i].name;
    return table->row;
}

static void read_process(struct table *table, const char *path)
{
    FILE *file = fopen(path, "re");
    struct estimate_sums one;
    uint32_t i = 0;
    if (!file)
        return;
    table->processes++;
    for (; i < accel_routine_count && fread(&one, sizeof one, 1, file) == 1; i++)
        add_sums(&table->row[i].sums, &one);
    if (i < accel_routine_count)
        complain(0, "accel estimate: %s is of another version of libaccel.so, or cut short\n",
                 path);
    fclose(file);
}

/* Reads the counts of each process, and removes the folder. */
static void read_folder(struct table *table, const char *folder)
{
    DIR *dir = opendir(folder);
    const struct dirent *entry;
    while (dir && (entry = readdir(dir))) {
        char path[PATH_MAX];
        if (entry->d_name[0] == '.' ||
            snprintf(path, sizeof path, "%s/%s", folder, entry->d_name) >= (int)sizeof path)
            continue;
        read_process(table, path);
        unlink(path);
    }
    if (dir)
        closedir(dir);
    rmdir(folder);
}

static int by_cpu_time(const void *a, const void *b)
{
    const struct estimate_row *x = a, *y = b;
    return (x->sums.cpu_ms < y->sums.cpu_ms) - (x->sums.cpu_ms > y->sums.cpu_ms);
}

static void print_row(const struct estimate_row *row)
{
    const struct estimate_sums *s = &row->sums;
    fprintf(stderr, "%-12s %10lld %10.3f %10lld %10.3f %10.3f %10.3f %10lld %10.3f\n", row->name,
            (long long)s->calls, s->cpu_ms * 1e-3, (long long)s->gpu_calls, s->gpu_cpu_ms * 1e-3,
            s->est_gpu_ms * 1e-3, (s->gpu_cpu_ms - s->est_gpu_ms) * 1e-3, (long long)s->lost_calls,
            s->lost_ms * 1e-3);
}

static bool has_calls(const struct table *table, const char *name)
{
    for (uint32_t i = 0; i < accel_routine_count; i++)
        if (strcmp(table->row[i].name, name) == 0)
            return table->row[i].sums.calls > 0;
    return false;
}

static void print_table(struct table *table, const struct estimate_options *options,
                        bool calibrated, double seconds)
{
    struct estimate_row sum = {.name = "all"};
    fprintf(stderr, "\naccel estimate: what a GPU (%s, %s figures) would have run, in seconds\n",
            options->gpu, calibrated ? "measured" : "built-in");
    if (table->processes == 0) {
        fprintf(stderr, "no call of BLAS or LAPACK was seen\n");
        return;
    }
    fprintf(stderr, "%-12s %10s %10s %10s %10s %10s %10s %10s %10s\n", "", "calls", "on the CPU",
            "GPU calls", "were", "would be", "saved", "not paid", "lost by");
    qsort(table->row, accel_routine_count, sizeof *table->row, by_cpu_time);
    for (uint32_t i = 0; i < accel_routine_count && table->row[i].sums.calls > 0; i++) {
        print_row(&table->row[i]);
        add_sums(&sum.sums, &table->row[i].sums);
    }
    print_row(&sum);
    double saved = (sum.sums.gpu_cpu_ms - sum.sums.est_gpu_ms) * 1e-3;
    fprintf(stderr,
            "%d process%s, %.3f s in all; %.3f s would be saved, %.3f s if CUDA were up when the "
            "program starts; if calls come one after the other\n",
            table->processes, table->processes == 1 ? "" : "es", seconds, sum.sums.saved_ms * 1e-3,
            saved);
}

/* Says what a precision as accurate as native would bring. measured: the GPU's section of the
 * calibration, or NULL. */
static void print_hints(const struct table *table, const struct estimate_options *options,
                        const struct calibration_section *measured)
{
    static const enum accel_dtype dtypes[] = {ACCEL_FLOAT64, ACCEL_FLOAT32};
    const struct known_gpu *whole = known_gpu_find(options->gpu);
    double gain[GPU_PRECISIONS];
    if (!whole)
        return;
    const struct known_gpu card = known_gpu_slice(whole, options->gpu);
    nominal_gains(gain, card.tflops, card.tensor[0], card.tensor[1], card.tensor[2]);
    for (int i = GPU_NATIVE + 1; measured && i < GPU_PRECISIONS; i++) {
        const double value = calibration_section_value(measured, calibration_gain_names[i]);
        gain[i] = value > 0 ? value : gain[i];
    }
    for (unsigned i = 0; i < sizeof dtypes / sizeof *dtypes; i++) {
        const bool in_double = accel_is_double(dtypes[i]);
        const enum gpu_precision proposed = gpu_precision_proposed(in_double);
        const struct accel_routine *routine = accel_sample_of(ACCEL_SAMPLE_PRODUCT, dtypes[i]);
        const double native = MODEL_REACH * card.tflops[in_double];
        if (gain[proposed] < GPU_PRECISION_WORTH ||
            options->precision[routine - accel_routines] != GPU_NATIVE ||
            !has_calls(table, routine->name))
            continue;
        fprintf(stderr,
                "accel: hint: %s on this card: native %.3g TF/s, %s %.3g; ACCEL_PRECISION=%s\n",
                routine->name, native, gpu_precision_names[proposed], native * gain[proposed],
                gpu_precision_names[proposed]);
    }
}

/* ---- The command ---- */

/* Runs the program, which leaves its counts in a folder, and prints the table. Returns the exit
 * status. */
static int run_and_print(const struct estimate_options *options,
                         const struct calibration_section *measured)
{
    char shim[PATH_MAX], folder[PATH_MAX];
    struct table table;
    const char *const wrong = preload_find(shim, options->shim);
    if (wrong)
        return preload_complain(2, "accel estimate", options->shim, shim, wrong);
    if (!make_table(&table))
        return complain(126, "accel estimate: %s\n", strerror(errno));
    if (!file_temporary(folder, "estimate") || !mkdtemp(folder)) {
        complain(0,
                 "accel estimate: no folder for the counts can be made in TMPDIR, or /tmp: %s; "
                 "nothing is run\n",
                 strerror(errno));
        free(table.row);
        return 126;
    }
    const double start_ms = accel_now_ms();
    if (isatty(STDERR_FILENO))
        complain(0, "accel estimate: %s runs on the CPU; the table follows when it has ended\n",
                 options->program[0]);
    int status = 0;
    const bool ran = run_program(options, shim, folder, &status);
    double seconds = 1e-3 * (accel_now_ms() - start_ms);
    read_folder(&table, folder);
    if (ran) {
        print_table(&table, options, measured, seconds);
        print_hints(&table, options, measured);
    }
    free(table.row);
    return status;
}

static int estimate(struct estimate_options *options, const struct calibration *file)
{
    struct calibration_section section;
    char gpu[CALIBRATION_KEY_BYTES];
    if (!options->gpu)
        return complain(2, "accel estimate: no GPU is given: --gpu NAME; --gpu list prints them\n");
    if (is_list(options->gpu))
        return list_gpus(file);
    if (!options->program)
        return complain(
            2, "accel estimate: no program is given: accel estimate --gpu NAME -- PROGRAM\n");
    if (!gpu_name_find(gpu, options->gpu, file))
        return 2;
    options->gpu = gpu;
    return run_and_print(options, calibration_find_gpu(file, gpu, &section) ? &section : NULL);
}

static int estimate_program(const struct command *command, int argc, char **argv)
{
    struct accel_settings settings;
    struct estimate_options options = {.precision = settings.precision};
    struct calibration file;
    char model[PATH_MAX];
    options.program = options_read(command, argc, argv, &options).word;
    settings_read_whole(&settings, NULL);
    complaints_say();
    const bool named = options.model;
    if (!named)
        options.model = settings.model;
    if (options.model && realpath(options.model, model)) /* the program may change its folder */
        options.model = model;
    if (!model_file_open(&file, "accel estimate", options.model, named))
        return 2;
    /* The program would say that nothing is there, if it were told of a place that nobody has
     * named. */
    if (options.model && !named && !settings.model_given && access(options.model, F_OK) != 0)
        options.model = NULL;
    int status = estimate(&options, &file);
    calibration_close(&file);
    return status;
}

/* Returns the program's exit status; 128 and the number of the signal that ended it; 127 if it
 * cannot be started; 126 if its counts have no place; 2 for wrong options. */
const struct command estimate_command = {
    .name = "estimate",
    .does = "run a program on the CPU, and say which calls a GPU would have run",
    .options = rows,
    .arguments = "-- PROGRAM [ARGUMENT...]",
    .in_order = true,
    .doc = "Runs a program on the CPU, and prints on stderr which calls a GPU would have run, "
           "and the time that this would have saved.\v"
           "The exit status is the program's own; 128 and the signal's number if a signal has "
           "ended it; 127 if it is not found, 126 if it cannot be run or its calls cannot be "
           "counted; 2 for wrong options.",
    .run = estimate_program};
