#define _GNU_SOURCE
#include "estimate.h"

#include <argp.h>
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "dispatch/known_gpus.h"
#include "dispatch/model_file.h"

struct options {
    const char *gpu, *model, *shim;
    char **program;
};

/* ---- Options ---- */

enum { SHIM_KEY = 0x100 };

static const struct argp_option rows[] = {
    {"gpu", 'g', "NAME", 0, "the GPU: one that accel knows, or that the calibration has", 0},
    {"model", 'm', "PATH", 0, "the calibration to use (default: ACCEL_MODEL's)", 0},
    {"shim", SHIM_KEY, "PATH", 0, "libaccel.so (default: the one that belongs to this tool)", 0},
    {0}};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct options *options = state->input;
    switch (key) {
    case 'g':
        options->gpu = arg;
        return 0;
    case 'm':
        options->model = arg;
        return 0;
    case SHIM_KEY:
        options->shim = arg;
        return 0;
    case ARGP_KEY_ARG:
        options->program = state->argv + state->next - 1;
        state->next = state->argc; /* what follows is the program's */
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static void list_gpus(void)
{
    const char *before = " ";
    for (const struct known_gpu *gpu = known_gpus; gpu->name; gpu++, before = ", ")
        fprintf(stderr, "%s%s", before, gpu->name);
    fputc('\n', stderr);
}

/* Whether a calibration has a GPU of exactly this name. */
static bool is_calibrated(const struct options *options)
{
    char prefix[MODEL_KEY_BYTES];
    struct model_file file;
    struct model_section section;
    if (!options->model || model_file_open(&file, options->model) != NULL)
        return false;
    model_gpu_prefix(prefix, options->gpu);
    bool has = model_file_find(&file, prefix, true, &section);
    model_file_close(&file);
    return has;
}

/* ---- The program ---- */

/* Beside this program as it is built, or in the lib folder of where it is installed. */
static bool find_shim(char path[PATH_MAX])
{
    static const char *const places[] = {"libaccel.so", "../lib/libaccel.so"};
    char own[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", own, sizeof own - 1);
    if (n <= 0)
        return false;
    own[n] = 0;
    *strrchr(own, '/') = 0;
    for (size_t i = 0; i < sizeof places / sizeof *places; i++)
        if (snprintf(path, PATH_MAX, "%s/%s", own, places[i]) < PATH_MAX && access(path, R_OK) == 0)
            return true;
    return false;
}

static void set_environment(const struct options *options, const char *shim, const char *folder)
{
    const char *others = getenv("LD_PRELOAD");
    char *preload = NULL;
    if (others && *others && asprintf(&preload, "%s:%s", shim, others) < 0)
        preload = NULL;
    setenv("LD_PRELOAD", preload ? preload : shim, 1);
    setenv("ACCEL", "1", 1);
    setenv("ACCEL_ESTIMATE", options->gpu, 1);
    setenv("ACCEL_ESTIMATE_DIR", folder, 1);
    if (options->model)
        setenv("ACCEL_MODEL", options->model, 1);
}

/* Runs the program to its end; what the terminal sends is for it alone. */
static int run_program(const struct options *options, const char *shim, const char *folder)
{
    int status = 0;
    pid_t pid = fork();
    if (pid < 0) {
        fprintf(stderr, "accel estimate: %s\n", strerror(errno));
        return 126;
    }
    if (pid == 0) {
        set_environment(options, shim, folder);
        execvp(options->program[0], options->program);
        fprintf(stderr, "accel estimate: %s: %s\n", options->program[0], strerror(errno));
        _exit(127);
    }
    signal(SIGINT, SIG_IGN);
    signal(SIGQUIT, SIG_IGN);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        continue;
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/* ---- What it has left ---- */

struct row {
    char name[32];
    int64_t calls, gpu_calls, lost_calls;
    double cpu_ms, gpu_cpu_ms, est_gpu_ms, lost_ms;
};

struct table {
    struct row *row;
    int rows;
    int processes;
};

static struct row *row_of(struct table *table, const char *name)
{
    for (int i = 0; i < table->rows; i++)
        if (strcmp(table->row[i].name, name) == 0)
            return &table->row[i];
    struct row *grown = realloc(table->row, (size_t)(table->rows + 1) * sizeof *grown);
    if (!grown)
        return NULL;
    table->row = grown;
    struct row *row = &grown[table->rows++];
    memset(row, 0, sizeof *row);
    snprintf(row->name, sizeof row->name, "%s", name);
    return row;
}

static void add(struct row *sum, const struct row *one)
{
    sum->calls += one->calls;
    sum->gpu_calls += one->gpu_calls;
    sum->lost_calls += one->lost_calls;
    sum->cpu_ms += one->cpu_ms;
    sum->gpu_cpu_ms += one->gpu_cpu_ms;
    sum->est_gpu_ms += one->est_gpu_ms;
    sum->lost_ms += one->lost_ms;
}

static void read_process(struct table *table, const char *path)
{
    FILE *file = fopen(path, "re");
    char line[256];
    if (!file)
        return;
    table->processes++;
    while (fgets(line, sizeof line, file)) {
        struct row one;
        long long calls, gpu_calls, lost_calls;
        if (sscanf(line, "%31s %lld %lf %lld %lf %lf %lld %lf", one.name, &calls, &one.cpu_ms,
                   &gpu_calls, &one.gpu_cpu_ms, &one.est_gpu_ms, &lost_calls, &one.lost_ms) != 8) {
            fprintf(stderr, "accel estimate: a process left a line cut short; it is not counted\n");
            continue;
        }
        one.calls = calls;
        one.gpu_calls = gpu_calls;
        one.lost_calls = lost_calls;
        struct row *row = row_of(table, one.name);
        if (row)
            add(row, &one);
    }
    fclose(file);
}

/* Reads what each process has left, and removes it. */
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
    const struct row *x = a, *y = b;
    return (x->cpu_ms < y->cpu_ms) - (x->cpu_ms > y->cpu_ms);
}

static void print_row(const struct row *r)
{
    fprintf(stderr, "%-12s %10lld %10.3f %10lld %10.3f %10.3f %10.3f %10lld %10.3f\n", r->name,
            (long long)r->calls, r->cpu_ms * 1e-3, (long long)r->gpu_calls, r->gpu_cpu_ms * 1e-3,
            r->est_gpu_ms * 1e-3, (r->gpu_cpu_ms - r->est_gpu_ms) * 1e-3, (long long)r->lost_calls,
            r->lost_ms * 1e-3);
}

static void print_table(struct table *table, const struct options *options, bool calibrated,
                        double seconds)
{
    struct row sum = {.name = "all"};
    fprintf(stderr, "\naccel estimate: what a GPU (%s, %s figures) would have run, in seconds\n",
            options->gpu, calibrated ? "measured" : "built-in");
    if (table->rows == 0) {
        fprintf(stderr, "no call of BLAS or LAPACK was seen\n");
        return;
    }
    fprintf(stderr, "%-12s %10s %10s %10s %10s %10s %10s %10s %10s\n", "", "calls", "on the CPU",
            "GPU calls", "were", "would be", "saved", "not paid", "lost by");
    qsort(table->row, (size_t)table->rows, sizeof *table->row, by_cpu_time);
    for (int i = 0; i < table->rows; i++) {
        print_row(&table->row[i]);
        add(&sum, &table->row[i]);
    }
    print_row(&sum);
    double saved = (sum.gpu_cpu_ms - sum.est_gpu_ms) * 1e-3;
    fprintf(stderr,
            "%d process%s, %.3f s in all; %.3f s less, less CUDA's start of 0.3 to 1 s, which the "
            "program does not wait for\n",
            table->processes, table->processes == 1 ? "" : "es", seconds, saved);
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

int estimate_command(int argc, char **argv)
{
    const struct argp argp = {
        .options = rows,
        .parser = parse,
        .args_doc = "-- PROGRAM [ARGUMENT...]",
        .doc =
            "Runs a program on the CPU, and tells on stderr what a GPU would have run of it, and "
            "the time that it would have saved."};
    struct options options = {.model = getenv("ACCEL_MODEL")};
    char shim[PATH_MAX], folder[PATH_MAX];
    const char *tmp = getenv("TMPDIR");
    if (argp_parse(&argp, argc, argv, ARGP_IN_ORDER, NULL, &options) != 0)
        return 2;
    if (!options.program) {
        fprintf(stderr,
                "accel estimate: no program is given: accel estimate --gpu NAME -- PROGRAM\n");
        return 2;
    }
    bool calibrated = options.gpu && is_calibrated(&options);
    if (!options.gpu || (!calibrated && !known_gpu_find(options.gpu))) {
        fprintf(stderr,
                "accel estimate: --gpu %s is not known; allowed: a GPU's name in the "
                "calibration, or one of:",
                options.gpu ? options.gpu : "(missing)");
        list_gpus();
        return 2;
    }
    if (options.shim ? snprintf(shim, sizeof shim, "%s", options.shim) >= (int)sizeof shim ||
                           access(shim, R_OK) != 0
                     : !find_shim(shim)) {
        fprintf(stderr, "accel estimate: libaccel.so is not there; --shim says where it is\n");
        return 2;
    }
    if (snprintf(folder, sizeof folder, "%s/accel-estimate-XXXXXX", tmp && *tmp ? tmp : "/tmp") >=
            (int)sizeof folder ||
        !mkdtemp(folder)) {
        fprintf(stderr, "accel estimate: a folder for the counts cannot be made: %s\n",
                strerror(errno));
        return 126;
    }
    struct table table = {NULL, 0, 0};
    double start = now();
    int status = run_program(&options, shim, folder);
    double seconds = now() - start;
    read_folder(&table, folder);
    if (status != 127)
        print_table(&table, &options, calibrated, seconds);
    free(table.row);
    return status;
}
