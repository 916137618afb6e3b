#define _GNU_SOURCE
#include "commands.h"

#include <dlfcn.h>
#include <errno.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/thread/clock.h"
#include "tool/util/complain.h"
#include "tool/util/device_config.h"
#include "cpu_ref/verify.h"
#include "dispatch/settings/complaints.h"
#include "dispatch/settings/settings.h"
#include "tool/log/log_file.h"
#include "ops/op.h"
#include "ops/rules/rules.h"
#include "call/shape.h"
#include "tool/util/stream.h"
#include "tool/util/terminal.h"
#include "tool/log/replayed_call.h"
#include "tool/measure/workload.h"

struct replay_options {
    const char *library;
    long long line; /* 0: not one alone */
    bool all;
};

static bool read_line(void *line, const char *text, const struct option_row *row)
{
    char *end;
    (void)row;
    errno = 0;
    const long long number = strtoll(text, &end, 10);
    *(long long *)line = number;
    return (!errno && !*end && end != text && number > 0) ||
           complain(false, "accel replay: --line=%s: allowed is the number of a line\n", text);
}

static const struct option_row rows[] = {
    {"line", 'n', "N", "run only the call of this line; the first line is 1",
     SETS(replay_options, read_line, line)},
    {"all", 'a', NULL, "run each line; otherwise, of equal calls the first",
     SETS(replay_options, option_flag, all)},
    {"library", 'l', "PATH[,PATH]",
     "the BLAS and LAPACK of the CPU (libblas.so.3,liblapack.so.3 as the dynamic linker finds "
     "them)",
     SETS(replay_options, option_text, library)},
    {0}};

/* ---- One call ---- */

struct replay {
    const struct replay_options *options;
    struct libraries libraries;
    struct gpu_device *device; /* NULL: there is none */
    struct workload_memory memory;
    void *seen; /* a tree (tsearch) of texts: the calls that have run */
    int run, wrong, left_out;
    int error; /* errno: what was printed could not be written */
};

/* What enters the result of the operands that a call overwrites, packed: for cpu_ref_verify(). */
struct before {
    void *copy[ACCEL_SPANS];
    bool whole; /* there was memory for all */
};

static void before_free(struct before *before)
{
    for (int i = 0; i < ACCEL_SPANS; i++)
        free(before->copy[i]);
}

static void *packed(const struct accel_span *x)
{
    const size_t column = (size_t)x->rows * accel_dtype_size(x->dtype);
    char *copy = malloc((size_t)accel_bytes(x) + 1);
    for (int64_t j = 0; copy && j < x->cols; j++)
        memcpy(copy + (size_t)j * column,
               (char *)x->ptr + (size_t)(j * x->ld) * accel_dtype_size(x->dtype), column);
    return copy;
}

static void before_take(struct before *before, const struct accel_call *call)
{
    *before = (struct before){.whole = true};
    for (int i = 0; i < ACCEL_SPANS; i++) {
        const struct accel_span *x = &call->span[i];
        if (!x->ptr || !(x->access & ACCEL_WRITE) || !accel_is_read(call, x) || accel_bytes(x) == 0)
            continue;
        before->copy[i] = packed(x);
        before->whole = before->whole && before->copy[i];
    }
}

/* Returns the error of a result over its bound; negative: not judged. */
static double verify_result(const struct workload *workload, const struct before *before)
{
    const struct accel_rules *rules = accel_rules_of(workload->call.op);
    struct accel_call call = workload->call;
    if (!before->whole || rules->rows) /* laswp's arguments do not tell the rows */
        return CPU_REF_NOT_JUDGED;
    if (rules->trim)
        rules->trim(&call);
    return cpu_ref_verify(&call, (const void *const *)before->copy, 1, 0);
}

/* One side's best time, and its result's error. */
struct side {
    double ms, error;
    char fault[100]; /* it could not run the call; empty: it could */
};

/* Runs a call some times on one side: run(), which returns the milliseconds, or says in *side what
 * is wrong. */
static void run_side(struct workload *workload, struct side *side, const struct before *before,
                     double (*run)(struct workload *, struct gpu_device *, struct side *),
                     struct gpu_device *device)
{
    const double start = accel_now_ms();
    struct timing timing = {.least = 2, .most = 3, .enough_ms = 1000};
    double ms;
    *side = (struct side){.error = CPU_REF_NOT_JUDGED};
    do {
        workload->filled = false;
        ms = run(workload, device, side);
        timing.spent_ms = accel_now_ms() - start - ms; /* to fill operands takes time, too */
    } while (timing_add(&timing, ms));
    side->ms = timing.best_ms;
    if (side->fault[0])
        return;
    workload_fill_inputs(workload); /* LAPACK may have used them as workspace */
    side->error = verify_result(workload, before);
}

static double run_cpu(struct workload *workload, struct gpu_device *device, struct side *side)
{
    (void)device;
    const double ms = workload_cpu_ms(workload);
    if (ms < 0)
        snprintf(side->fault, sizeof side->fault, "it reports info = %lld",
                 (long long)(workload->call.blas.width == 64 ? workload->info
                                                             : (int32_t)workload->info));
    return ms;
}

static double run_gpu(struct workload *workload, struct gpu_device *device, struct side *side)
{
    static const char *const faults[] = {
        [GPU_NO_MEMORY] = "too little device memory",
        [GPU_UNSUPPORTED] = "the GPU leaves it to the CPU",
        [GPU_SHORT_ELSE] = "too little device memory",
    };
    struct gpu_host host;
    enum gpu_status status = GPU_UNSUPPORTED;
    const double ms = accel_call_is_supported(&workload->call)
                          ? workload_gpu_ms(workload, device, &host, &status)
                          : -1;
    if (ms < 0 && (size_t)status < sizeof faults / sizeof *faults && faults[status])
        strcpy(side->fault, faults[status]);
    else if (ms < 0)
        snprintf(side->fault, sizeof side->fault, "the GPU fails: %.60s", gpu_failure(device));
    return ms;
}

static bool report_side(const char *name, const struct side *side)
{
    printf("  %-8s ", name);
    if (side->fault[0])
        printf("%s\n", side->fault);
    else if (side->error < 0)
        printf("%12.4g ms   its result cannot be judged\n", side->ms);
    else
        printf("%12.4g ms   error %.2g of the bound%s\n", side->ms, side->error,
               side->error > 1 ? ": WRONG" : "");
    return !(side->error > 1);
}

/* ---- A line ---- */

/* Writes what tells a call from others: the line's fields but those of its process, its decision
 * and its times. */
static void describe_line(const struct log_line *line, char *text, size_t size)
{
    size_t length = 0;
    text[0] = 0;
    for (int i = 0; i < line->fields && length < size; i++) {
        const struct log_field *field = &line->field[i];
        if (strcmp(field->name, "ran") == 0)
            break;
        if (length > 0)
            length +=
                (size_t)snprintf(text + length, size - length, " %s=%s", field->name, field->value);
        else if (strcmp(field->name, "sym") == 0)
            length = (size_t)snprintf(text, size, "%s", field->value);
    }
}

static int compare_texts(const void *a, const void *b)
{
    return strcmp(a, b);
}

/* Whether a call like this has run before; notes it. */
static bool has_run_before(struct replay *replay, const char *text)
{
    if (tfind(text, &replay->seen, compare_texts))
        return true;
    char *copy = strdup(text);
    if (copy)
        tsearch(copy, &replay->seen, compare_texts);
    return false;
}

/* Returns why the CPU has no function, or NULL. */
static const char *find_function(const struct replay *replay, const struct replayed_call *told,
                                 struct library_function *function)
{
    char name[64];
    if (!libraries_find(&replay->libraries, told->call.routine, function))
        return "its library lacks the routine; --library names another one";
    if (told->abi != ACCEL_ABI_CBLAS)
        return NULL;
    snprintf(name, sizeof name, "cblas_%s", told->call.routine->name);
    function->address = NULL;
    for (int i = 0; i < replay->libraries.count && !function->address; i++)
        function->address = dlsym(replay->libraries.handle[i], name);
    return function->address ? NULL : "its library lacks the routine in row-major order";
}

static void report_line(const struct log_line *line)
{
    char ran[128], why[48];
    const double ms = log_number(line, "ms", -1), cpu = log_number(line, "est_cpu_ms", -1),
                 gpu = log_number(line, "est_gpu_ms", -1);
    printf("  %-8s ", "log");
    if (ms >= 0)
        printf("%12.4g ms   ", ms);
    printf("%s, %s", terminal_clean(ran, sizeof ran, log_string(line, "ran")),
           terminal_clean(why, sizeof why, log_string(line, "why")));
    if (cpu >= 0 && gpu >= 0)
        printf("; estimated: CPU %.4g ms, GPU %.4g ms", cpu, gpu);
    putchar('\n');
}

static const char *replay_call(struct replay *replay, const struct log_line *line,
                               const struct replayed_call *told, const char *text)
{
    struct workload workload = {.call = told->call, .abi = told->abi};
    struct library_function function;
    struct before before;
    struct side cpu = {.error = CPU_REF_NOT_JUDGED}, gpu;
    const char *missing = find_function(replay, told, &function);
    if (missing && !replay->device)
        return missing;
    if (!workload_place(&workload, &replay->memory, missing ? NULL : &function))
        return "its operands do not fit into half of this machine's memory";
    workload_fill(&workload);
    before_take(&before, &workload.call);
    if (missing)
        snprintf(cpu.fault, sizeof cpu.fault, "%s", missing);
    else
        run_side(&workload, &cpu, &before, run_cpu, NULL);
    if (replay->device)
        run_side(&workload, &gpu, &before, run_gpu, replay->device);
    before_free(&before);
    printf("%s:%lld: %s\n", line->path, (long long)line->number, text);
    report_line(line);
    bool right = report_side("cpu", &cpu);
    if (replay->device)
        right = report_side("gpu", &gpu) && right;
    if (told->assumed[0])
        printf("  assumed: %s\n", told->assumed);
    replay->wrong += !right;
    replay->run++;
    return NULL;
}

/* Keeps the first error. */
static void flush(struct replay *replay)
{
    const int error = stream_flush(stdout);
    if (!replay->error)
        replay->error = error;
}

static void replay_line(void *context, const struct log_line *line)
{
    struct replay *replay = context;
    const struct replay_options *options = replay->options;
    static struct replayed_call told;
    char text[1024], key[1200], shown[1024];
    if (line->event || (options->line && line->number != options->line))
        return;
    describe_line(line, text, sizeof text);
    const char *missing = replayed_call_read(&told, line);
    snprintf(key, sizeof key, "%s %s", missing ? log_string(line, "sym") : text,
             missing ? missing : "");
    if (!options->line && !options->all && has_run_before(replay, key))
        return;
    terminal_clean(shown, sizeof shown, text);
    if (!missing)
        missing = replay_call(replay, line, &told, shown);
    if (missing) {
        printf("%s:%lld: %s: not run: %s\n", line->path, (long long)line->number, shown, missing);
        replay->left_out++;
    }
    flush(replay);
}

/* ---- The command ---- */

static bool open_machine(struct replay *replay)
{
    struct accel_settings settings;
    char why[GPU_FAILURE_BYTES];
    const long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    settings_read_whole(&settings, NULL);
    complaints_say();
    const struct gpu_config config = device_config(&settings);
    const char *wrong = libraries_open(&replay->libraries, replay->options->library);
    if (wrong)
        return complain(false, "accel replay: %s\n", wrong);
    if (!workload_memory_open(&replay->memory, (size_t)pages / 2 * (size_t)page))
        return complain(false, "accel replay: %s\n", strerror(errno));
    replay->device = gpu_start(&config, why);
    if (!replay->device)
        complain(0, "accel replay: no GPU: %s\n", why);
    return true;
}

static int replay_log(const struct command *command, int argc, char **argv)
{
    struct replay_options options = {.line = 0};
    struct replay replay = {.options = &options};
    const struct words logs = options_read(command, argc, argv, &options);
    if (logs.count != 1)
        return complain(2, logs.count ? "accel replay: one log at a time\n"
                                      : "accel replay: no log is given: accel replay LOG\n");
    if (options.line && options.all)
        return complain(2, "accel replay: --line and --all: allowed is one of them\n");
    if (dlopen("libaccel.so", RTLD_NOLOAD | RTLD_LAZY))
        return complain(1,
                        "accel replay: libaccel is preloaded here: run this command without it\n");
    if (!open_machine(&replay))
        return 1;
    struct log_counts counts;
    const int read = log_read_all("accel replay", logs.word, 1, replay_line, &replay, &counts);
    tdestroy(replay.seen, free);
    workload_memory_close(&replay.memory);
    flush(&replay);
    if (replay.error)
        return complain(2, "accel replay: stdout: %s\n", strerror(replay.error));
    if (read == 1 && counts.decisions == 0)
        return complain(1, "accel replay: no call in the log\n");
    if (options.line && replay.run + replay.left_out == 0)
        return complain(1, "accel replay: %s: line %lld is no decision\n", logs.word[0],
                        options.line);
    return replay.run == 0 || replay.wrong > 0;
}

/* Returns 0 if all results are right, 1 if one is not, or no call could be run again, 2 for wrong
 * options. */
const struct command replay_command = {
    .name = "replay",
    .does = "run the calls of a log again, on the CPU and on the GPU, and compare",
    .options = rows,
    .arguments = "LOG",
    .doc =
        "Runs the calls of a log again, on the CPU and on the GPU, and compares.\v"
        "Each call runs with the routine, letters and sizes of its line, and with random numbers "
        "of the program's type that suit the routine, the same each time. It prints the time "
        "of the line, the best time on each side, and how far each result is from exact, "
        "as a part of the bound of ACCEL_VERIFY. What the line does not say it names. The exit "
        "status is 0 if all results are within the bound, 1 if one is not, or if no "
        "call could be run again, 2 for wrong options. LOG may be -, for stdin. Without a GPU, "
        "only the CPU runs calls.",
    .run = replay_log};
