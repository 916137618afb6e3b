#define _GNU_SOURCE
#include "commands.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/thread/clock.h"
#include "tool/util/complain.h"
#include "tool/util/device_config.h"
#include "tool/measure/busy.h"
#include "dispatch/settings/complaints.h"
#include "dispatch/settings/settings.h"
#include "tool/measure/in_place.h"
#include "tool/measure/ml_bench.h"
#include "ops/op.h"
#include "ops/typical.h"
#include "tool/measure/program.h"
#include "tool/util/stream.h"
#include "tool/measure/calibrated.h"

/* ---- Options ---- */

struct calibrate_options {
    double seconds;
    size_t memory;
    const char *library, *output;
    char **program; /* NULL: none */
};

static const double least_seconds = 1, most_seconds = 3600;
static const double least_memory = 16 << 20, most_memory = 1ull << 40;

static const char doc[] =
    "Measures how long the CPU and the GPU take for each routine, and writes a file that libaccel "
    "decides by.\v"
    "With a program: first runs it to its end on the CPU, and measures the libraries that it and "
    "its children call, each with the number of threads that it had there. The program's stdout "
    "goes to stderr. If the program fails, the libraries that it has called until then are "
    "measured, and the exit status is 1; it is also 1 if a library cannot be opened again. The "
    "libraries share the time.\n"
    "\n"
    "The machine should have nothing else to do meanwhile. The libraries run with the threads that "
    "their own variables ask for (OPENBLAS_NUM_THREADS, OMP_NUM_THREADS ...): the file notes how "
    "many, and serves programs that have as many. Without a GPU, only the libraries are measured. "
    "CUDA is looked for first in ACCEL_CUDA_DIR.";

static bool refuse_value(const char *option, const char *value, const char *allowed)
{
    return complain(false, "accel: --%s=%s: allowed is %s\n", option, value, allowed);
}

/* Reads a plain decimal: strtod(3) alone would take exponents and words. */
static bool read_number(const char *text, double *number, char **end)
{
    *number = strtod(text, end);
    return *end != text && strspn(text, "0123456789.") == (size_t)(*end - text);
}

static bool read_seconds(void *seconds, const char *text, const struct option_row *row)
{
    char *end;
    double number;
    if (!read_number(text, &number, &end) || *end || number < least_seconds ||
        number > most_seconds)
        return refuse_value(row->name, text, "a number from 1 to 3600");
    *(double *)seconds = number;
    return true;
}

static bool read_memory(void *memory, const char *text, const struct option_row *row)
{
    static const char units[] = "KMG";
    char *end;
    double number;
    bool plain = read_number(text, &number, &end);
    const char *unit = *end ? strchr(units, *end) : NULL;
    for (const char *u = units; unit && u <= unit; u++)
        number *= 1024;
    if (!plain || (*end && (!unit || end[1])) || number < least_memory || number > most_memory)
        return refuse_value(row->name, text, "a size from 16M to 1024G, such as 512M or 2G");
    *(size_t *)memory = (size_t)number;
    return true;
}

static bool read_output(void *output, const char *text, const struct option_row *row)
{
    return *text ? option_text(output, text, row) : refuse_value(row->name, text, "a path");
}

static const struct option_row rows[] = {
    {"seconds", 's', "N", "time to spend (50); 1 to 3600",
     SETS(calibrate_options, read_seconds, seconds)},
    {"memory", 'm', "SIZE", "most memory for operands (512M); 16M to 1024G",
     SETS(calibrate_options, read_memory, memory)},
    {"library", 'l', "PATH[,PATH]",
     "the BLAS and LAPACK to measure (libblas.so.3,liblapack.so.3 as the dynamic linker finds "
     "them)",
     SETS(calibrate_options, option_text, library)},
    {"output", 'o', "PATH",
     "the file to write (ACCEL_MODEL, or accel/model in XDG_CACHE_HOME or ~/.cache); sections of "
     "other libraries and machines in it stay",
     SETS(calibrate_options, read_output, output)},
    {0}};

/* Takes the program. False if it has said what is wrong. */
static bool take_program(struct calibrate_options *options, const struct words *words)
{
    options->program = words->word;
    if (words->word && !words->quoted)
        return complain(false,
                        "accel: %s: calibrate takes options, and a program after --; see --help\n",
                        words->word[0]);
    if (words->word && options->library)
        return refuse_value("library", options->library, "a library without a program");
    return words->word || !words->quoted ||
           complain(false, "accel: no program is given after --; see --help\n");
}

/* ---- The file ---- */

/* Finds the file's path as libaccel does in programs. */
static bool output_path(char path[PATH_MAX], const struct calibrate_options *options,
                        const struct accel_settings *settings)
{
    const char *model = options->output ? options->output : settings->model;
    return model && snprintf(path, PATH_MAX, "%s", model) < PATH_MAX;
}

/* A signal that ends this process waits until the file has its name: so no draft is left beside it.
 * Handlers do this, not a mask, as the libraries' threads have no mask of ours. */
static const int ending[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
enum { ENDING = sizeof ending / sizeof *ending };
static volatile sig_atomic_t asked;

static void note_signal(int number)
{
    asked = number;
}

static void hold_off(struct sigaction before[ENDING])
{
    struct sigaction action = {.sa_handler = note_signal, .sa_flags = SA_RESTART};
    sigemptyset(&action.sa_mask);
    for (int i = 0; i < ENDING; i++)
        if (sigaction(ending[i], NULL, &before[i]) == 0 && before[i].sa_handler != SIG_IGN)
            sigaction(ending[i], &action, NULL);
}

static void let_go(const struct sigaction before[ENDING])
{
    for (int i = 0; i < ENDING; i++)
        sigaction(ending[i], &before[i], NULL);
    if (asked)
        raise(asked);
}

/* Adds sections to the file. With none, only tries whether it can be written. Returns the exit
 * status. */
static int write_sections(const char *path, const struct sections *sections)
{
    const char *keys[SECTIONS_MAX], *bodies[SECTIONS_MAX];
    for (int i = 0; i < sections->count; i++) {
        keys[i] = sections->key[i];
        bodies[i] = sections->body[i];
    }
    struct sigaction before[ENDING];
    hold_off(before);
    const char *wrong = calibration_put(path, keys, bodies, NULL, sections->count, true);
    int error = errno;
    let_go(before);
    if (!wrong)
        return 0;
    return complain(1, "accel: %s: %s%s%s\n", path, wrong, error ? ": " : "",
                    error ? strerror(error) : "");
}

/* ---- The command ---- */

static void show_progress(const struct bench_plan *plan, const struct bench_track *track,
                          const struct bench_shape *shape)
{
    double spent = (bench_now() - plan->start) / (plan->deadline - plan->start);
    fprintf(stderr, "\r\033[K%3.0f %%  %s  %s %lld", fmin(100, 100 * spent),
            track->gpu ? "GPU" : "CPU", track->routine->name, (long long)shape->size[ACCEL_n]);
}

/* Warns if others use much of the machine. */
static bool warn_of(double others, int processors, const char *used)
{
    if (!busy_is_much(others, processors))
        return false;
    return complain(
        true,
        "accel: the machine is busy: other processes %s %.1f of %d processor%s; the times that are "
        "measured may be too long (calibrate again when it has nothing else to do)\n",
        used, others, processors, processors == 1 ? "" : "s");
}

/* Watches the machine for a moment, before a minute is spent. */
static bool warn_if_busy(void)
{
    const struct timespec moment = {.tv_nsec = 250000000};
    struct busy before, after;
    busy_read(&before);
    nanosleep(&moment, NULL);
    busy_read(&after);
    return warn_of(busy_others(&before, &after), after.processors, "use");
}

static void show_order(int64_t order)
{
    fprintf(stderr, "\r\033[K  0 %%  GPU  singular values %lld", (long long)order);
}

static const struct ml_bench *const ml_benches[] = {&ml_bench_svm, &ml_bench_linear};
enum { ML_BENCHES = sizeof ml_benches / sizeof *ml_benches };

/* Each library has its own plan; the first bench plan measures the GPU, too. */
struct measuring {
    char no_device[GPU_FAILURE_BYTES]; /* why there is no GPU */
    struct program_libraries program;  /* empty: no program was run */
    struct libraries library[LIBRARIES_MAX];
    /* If a program was run: how it called each library */
    struct program_library seen[LIBRARIES_MAX];
    struct bench_plan plan[LIBRARIES_MAX];
    int count;
    /* On the GPU; those that have no shapes were not measured */
    struct bench_track training[ML_BENCHES];
    bool whole; /* no library of the program is left out */
    struct sections sections;
};

/* Gives the library as many threads as the program had. Says how it is measured. */
static void set_threads(const struct bench_plan *plan, const struct program_library *seen)
{
    const struct bench_track *track = plan->track;
    while (track < plan->track + plan->tracks && track->gpu)
        track++;
    if (track == plan->track + plan->tracks) {
        complain(0, "accel: %s has none of the routines that are measured\n", seen->path);
        return;
    }
    if (library_threads(&track->function) != seen->threads)
        library_set_threads(&track->function, seen->threads);
    int threads = library_threads(&track->function);
    complain(0, "accel: %s is measured: called as %s, integers of %d bits, %d thread%s\n",
             seen->path, seen->symbol, track->function.width, threads, threads == 1 ? "" : "s");
    if (threads != seen->threads)
        complain(0, "accel: %s: the program had %d thread%s, which cannot be set here\n",
                 seen->path, seen->threads, seen->threads == 1 ? "" : "s");
}

/* The algorithms for singular values come first, as the routines are measured with them. They get
 * an eighth of the time. False if memory runs out. */
static bool run_bench_plan(struct measuring *measuring, int at)
{
    struct bench_plan *plan = &measuring->plan[at];
    bool terminal = isatty(STDERR_FILENO);
    plan->progress = terminal ? show_progress : NULL;
    if (!bench_plan_open(plan))
        return false;
    if (measuring->program.count > 0)
        set_threads(plan, &measuring->seen[at]);
    if (plan->gpu)
        svd_bench_run(&plan->svd, plan->device, &plan->memory,
                      plan->start + (plan->deadline - plan->start) / 8,
                      terminal ? show_order : NULL);
    bench_plan_run(plan);
    if (terminal)
        fputs("\r\033[K", stderr);
    /* There is room for all routines on both sides. */
    for (int i = 0; plan->gpu && i < ML_BENCHES; i++)
        if (measuring->training[i].shapes > 0)
            plan->track[plan->tracks++] = measuring->training[i];
    return sections_add(&measuring->sections, plan, plan->gpu ? gpu_info(plan->device) : NULL);
}

/* A twentieth of the time each, on each side, before the others' turn. False if memory runs out. */
static bool run_ml_benches(struct measuring *measuring, double seconds)
{
    const struct bench_plan *first = measuring->plan;
    bool run = true;
    for (int i = 0; run && i < ML_BENCHES; i++) {
        struct bench_plan plan;
        run = ml_bench_run(ml_benches[i], &plan, seconds / 20) &&
              sections_add(&measuring->sections, &plan, NULL);
        bench_plan_close(&plan);
        if (run && first->gpu)
            run = ml_bench_run_on(ml_benches[i], first->device, first->copies.up_gbps,
                                  first->copies.down_gbps, &measuring->training[i], seconds / 20);
    }
    return run;
}

/* All libraries share the time equally; the GPU gets the share of one. False if memory runs out. */
static bool run_bench_plans(struct measuring *measuring, double start, double seconds)
{
    struct bench_plan *plan = measuring->plan;
    const bool was_busy = warn_if_busy(), shared = plan->gpu && measuring->count > 1;
    const double share = seconds / (measuring->count + shared);
    struct busy before, after;
    busy_read(&before);
    for (int i = 0; i < measuring->count; i++) {
        plan[i].start = i == 0 ? start : bench_now();
        plan[i].deadline = plan[i].start + (i == 0 && shared ? 2 * share : share);
        if (!run_bench_plan(measuring, i))
            return false;
    }
    busy_read(&after);
    if (!was_busy)
        warn_of(busy_others(&before, &after), after.processors, "used");
    return true;
}

static int finish_calibration(struct measuring *measuring, const char *path)
{
    const struct bench_plan *plan = measuring->plan;
    if (measuring->sections.count == 0)
        return complain(1,
                        "accel: nothing was measured: the libraries have none of the routines\n");
    if (write_sections(path, &measuring->sections) != 0)
        return 1;
    calibrated_print(path, &measuring->sections, plan, measuring->count,
                     plan->gpu      ? NULL
                     : plan->device ? gpu_failure(plan->device)
                                    : measuring->no_device);
    if ((errno = stream_flush(stdout)))
        return complain(1, "accel: the report cannot be written: %s\n", strerror(errno));
    return measuring->whole ? 0 : 1;
}

/* Returns 0, or the exit status if nothing can be measured. */
static int open_libraries(struct measuring *measuring, const struct calibrate_options *options)
{
    const char *wrong;
    measuring->whole = true;
    if (!options->program) {
        measuring->count = 1;
        wrong = libraries_open(&measuring->library[0], options->library);
        if (!wrong)
            return 0;
        return complain(options->library ? 2 : 1, "accel: --library: %s\n", wrong);
    }
    const struct program_libraries *program = &measuring->program;
    if (!program_run(&measuring->program, options->program))
        return 1;
    measuring->whole = program->whole;
    for (int i = 0; i < program->count; i++) {
        wrong = libraries_open_own(&measuring->library[measuring->count], program->one[i].path);
        if (wrong) {
            complain(1, "accel: a library that the program calls cannot be opened again: %s\n",
                     wrong);
            measuring->whole = false;
        } else {
            measuring->seen[measuring->count++] = program->one[i];
        }
    }
    return measuring->count > 0 ? 0 : 1;
}

static void close_all(struct measuring *measuring)
{
    for (int i = 0; i < measuring->count; i++)
        bench_plan_close(&measuring->plan[i]);
    sections_free(&measuring->sections);
}

/* Each type gets a thirtieth of the time; one whose products take longer has none. Returns the
 * seconds that it took. */
static double measure_paces(struct bench_plan *plan, double seconds)
{
    const double start = bench_now();
    const double least_ms = 250, limit_ms = fmax(1e3 * seconds / 30, least_ms);
    for (int i = 0; i < ACCEL_DTYPES; i++) {
        const struct accel_routine *product =
            accel_sample_of(ACCEL_SAMPLE_PRODUCT, (enum accel_dtype)i);
        struct accel_call call;
        if (!product)
            continue;
        shape_of_order(&call, product, PACE_MOST);
        gpu_measure_paces(plan->device, &call, limit_ms, &plan->paces[i]);
    }
    return bench_now() - start;
}

static int calibrate(struct measuring *measuring, const struct calibrate_options *options,
                     const struct accel_settings *settings, double start, const char *path)
{
    struct workload_memory memory;
    struct gpu_config config = device_config(settings);
    config.memory_share = 0.8;
    config.memory_bytes = 0;
    struct bench_plan *first = measuring->plan;
    const double begin_ms = accel_now_ms();
    first->device = gpu_start(&config, measuring->no_device);
    first->start_ms = accel_now_ms() - begin_ms;
    first->gpu = first->device && gpu_measure_copies(first->device, &first->copies);
    if (!workload_memory_open(&memory, options->memory))
        return complain(1, "accel: --memory: %s\n", strerror(errno));
    if (first->gpu) {
        first->place_gbps = in_place_measure(first->device, &memory);
        first->first = first_calls_measure(first->device, &memory);
        first->gains = precisions_measure(first->device, &memory);
        first->solves = solve_bench_run(first->device, &memory);
        start += measure_paces(first, options->seconds); /* the bench plan has its whole time */
    }
    for (int i = 0; i < measuring->count; i++) {
        measuring->plan[i].library = &measuring->library[i];
        measuring->plan[i].memory = memory;
    }
    const bool usual = !options->program && !options->library;
    int status = (!usual || run_ml_benches(measuring, options->seconds)) &&
                         run_bench_plans(measuring, start, options->seconds)
                     ? finish_calibration(measuring, path)
                     : complain(1, "accel: no memory for the measurements\n");
    workload_memory_close(&memory);
    return status;
}

static int calibrate_machine(const struct command *command, int argc, char **argv)
{
    struct calibrate_options options = {.seconds = 50, .memory = 512 << 20};
    struct accel_settings settings;
    char path[PATH_MAX];
    struct measuring measuring = {.count = 0};
    const struct sections none = {.count = 0};
    double start = bench_now();
    const struct words words = options_read(command, argc, argv, &options);
    if (!take_program(&options, &words))
        return 2;
    settings_read_whole(&settings, NULL);
    complaints_say();
    if (!output_path(path, &options, &settings))
        return complain(
            1,
            "accel: no file to write: --output, ACCEL_MODEL, XDG_CACHE_HOME and HOME name none\n");
    /* A preloaded libaccel would be measured in place of the libraries. */
    if (dlopen("libaccel.so", RTLD_NOLOAD | RTLD_LAZY))
        return complain(1, "accel: libaccel is preloaded here: run this command without it\n");
    if (write_sections(path, &none) != 0)
        return 1;
    int status = open_libraries(&measuring, &options);
    if (options.program)
        start = bench_now();
    if (status == 0)
        status = calibrate(&measuring, &options, &settings, start, path);
    close_all(&measuring);
    return status;
}

const struct command calibrate_command = {
    .name = "calibrate",
    .does = "measure this machine's libraries and GPU, so that libaccel decides by them",
    .options = rows,
    .arguments = "[-- PROGRAM [ARGUMENT...]]",
    .doc = doc,
    .run = calibrate_machine};
