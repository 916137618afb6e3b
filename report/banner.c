#include "banner.h"

#include <string.h>

#include "base/thread/forks.h"
#include "base/host/program.h"
#include "base/host/version.h"
#include "base/memory/write_watch.h"

/* ---- What is known ---- */

static atomic_uint known; /* bits 1 << enum banner_part; constant behind each are: */
static struct banner_program program;
static struct {
    const char *path;
    int calls;
    double times;
} slow;
static const char *why_none;
static bool why_said;
static struct banner_figures figures[BANNER_GPUS];
static double start_ms[BANNER_GPUS];

static atomic_bool program_begun, slow_begun, none_begun;
static _Atomic(const struct gpu_info *) gpus[BANNER_GPUS];

static void know(unsigned part)
{
    atomic_fetch_or_explicit(&known, 1u << part, memory_order_release);
}

static void begin_anew(void)
{
    const unsigned none = atomic_load(&known) & 1u << BANNER_NO_GPU; /* holds for the child, too */
    atomic_store(&known, none);
    atomic_store(&none_begun, none);
    atomic_store(&program_begun, false);
    atomic_store(&slow_begun, false);
    for (int i = 0; i < BANNER_GPUS; i++)
        atomic_store(&gpus[i], NULL);
}
FORKS_CHILD(begin_anew);

bool banner_lacks_program(void)
{
    return !atomic_load_explicit(&program_begun, memory_order_relaxed);
}

void banner_program(const struct banner_program *of)
{
    if (atomic_exchange(&program_begun, true))
        return;
    program = *of;
    know(BANNER_PROGRAM);
}

void banner_slow(const char *path, int calls, double times)
{
    if (atomic_exchange(&slow_begun, true))
        return;
    slow.path = path;
    slow.calls = calls;
    slow.times = times;
    know(BANNER_SLOW);
}

void banner_gpu(const struct gpu_info *gpu, struct banner_figures of, double started_ms)
{
    for (unsigned n = 0; n < BANNER_GPUS; n++) {
        const unsigned i = ((unsigned)gpu->index + n) % BANNER_GPUS;
        const struct gpu_info *there = NULL;
        if (atomic_compare_exchange_strong(&gpus[i], &there, gpu)) {
            figures[i] = of;
            start_ms[i] = started_ms;
            know(BANNER_GPU + i);
            know(BANNER_DRIVER);
            return;
        }
        if (there == gpu)
            return;
    }
}

void banner_no_gpu(const char *why, bool said)
{
    if (atomic_exchange(&none_begun, true))
        return;
    why_none = why;
    why_said = said;
    know(BANNER_NO_GPU);
}

/* A call opens cuSOLVER, or begins to watch memory, and no function reports that; in the child of a
 * fork it is of no use. */
static unsigned known_now(void)
{
    const unsigned parts = atomic_load_explicit(&known, memory_order_acquire);
    const bool solver = parts >> BANNER_GPU && gpu_library(GPU_SOLVER);
    const bool untracked = parts >> BANNER_GPU && write_watch_why_not();
    return parts | (solver ? 1u << BANNER_SOLVER : 0) | (untracked ? 1u << BANNER_UNTRACKED : 0);
}

unsigned banner_news(atomic_uint *told)
{
    const unsigned parts = known_now();
    if (!(parts & ~atomic_load_explicit(told, memory_order_relaxed)))
        return 0;
    return parts & ~atomic_fetch_or(told, parts);
}

bool banner_is_said(enum banner_part part)
{
    return part == BANNER_NO_GPU && why_said;
}

/* ---- As a line of a log ---- */

static void put_path(struct report_line *line, const char *name, const char *path)
{
    if (path && *path)
        line_words(line, name, path);
}

static void put_figures(struct report_line *line, const struct banner_figures *of)
{
    struct accel_text text;
    char date[32];
    line_string(line, "figures", of->file ? "measured" : "nominal");
    if (!of->file)
        return;
    text_start(&text, date, sizeof date);
    text_date(&text, of->time);
    text_end(&text);
    line_words(line, "calibration", of->file);
    line_string(line, "calibrated", date);
}

static bool is_native(void)
{
    return strcmp(program.precision, "native") == 0;
}

static void put_program(struct report_line *line)
{
    line_string(line, "event", "start");
    line_string(line, "version", accel_version());
    if (*accel_commit())
        line_string(line, "commit", accel_commit());
    line_words(line, "program", program_name());
    if (program.cpu_path)
        line_words(line, "cpu_library", program.cpu_path);
    if (program.cpu_threads > 0) {
        line_integer(line, "cpu_threads", program.cpu_threads);
        if (program.cpu_kernels)
            line_string(line, "cpu_kernels", program.cpu_kernels);
        put_figures(line, &program.figures);
    }
    line_string(line, "precision", program.precision);
    line_words(line, "note",
               is_native() ? "results of a GPU differ from the CPU's in rounding"
                           : "results of a GPU differ from the CPU's in rounding; results are not "
                             "native: ACCEL_PRECISION");
}

static void put_slow(struct report_line *line)
{
    line_string(line, "event", "slow_library");
    put_path(line, "cpu_library", slow.path);
    line_integer(line, "calls", slow.calls);
    line_decimal(line, "times", slow.times);
}

static void put_gpu(struct report_line *line, int i)
{
    const struct gpu_info *gpu = atomic_load(&gpus[i]);
    const struct gpu_library_file *driver = gpu_library(GPU_DRIVER), *blas = gpu_library(GPU_BLAS);
    line_string(line, "event", "gpu");
    line_words(line, "gpu", gpu->name);
    line_string(line, "gpu_id", gpu->id);
    line_integer(line, "index", gpu->index);
    if (gpu->chosen)
        line_string(line, "chosen", gpu->chosen);
    if (gpu->remote && gpu->share > 1)
        line_integer(line, "devices", gpu->share);
    if (gpu->others > 0)
        line_integer(line, "others", gpu->others);
    line_decimal(line, "memory_mb", (double)gpu->memory_bytes * 1e-6);
    line_integer(line, "cuda", gpu->cuda_version);
    put_path(line, "driver_library", driver ? driver->path : NULL);
    line_integer(line, "cublas", gpu->cublas_version);
    put_path(line, "cublas_library", blas ? blas->path : NULL);
    line_integer(line, "sharers", gpu->sharers);
    line_integer(line, "mps", gpu->mps);
    line_decimal(line, "start_ms", start_ms[i]);
    put_figures(line, &figures[i]);
}

static void put_solver(struct report_line *line)
{
    const struct gpu_library_file *solver = gpu_library(GPU_SOLVER);
    line_string(line, "event", "solver");
    line_integer(line, "cusolver", solver->version);
    put_path(line, "cusolver_library", solver->path);
}

bool banner_put(struct report_line *line, enum banner_part part)
{
    switch (part) {
    case BANNER_PROGRAM:
        put_program(line);
        break;
    case BANNER_SLOW:
        put_slow(line);
        break;
    case BANNER_NO_GPU:
        line_string(line, "event", "no_gpu");
        line_words(line, "reason", why_none);
        break;
    case BANNER_DRIVER:
        return false;
    case BANNER_SOLVER:
        put_solver(line);
        break;
    case BANNER_UNTRACKED:
        line_string(line, "event", "untracked");
        line_words(line, "reason", write_watch_why_not());
        break;
    default:
        put_gpu(line, (int)(part - BANNER_GPU));
    }
    return true;
}

/* ---- For people ---- */

/* Begins a line; what it is about stands in a column. */
static void say_about(struct accel_text *text, const char *what)
{
    text_string(text, "accel: ");
    text_padded(text, what, -10);
}

static void say_figures(struct accel_text *text, const struct banner_figures *of)
{
    text_string(text, of->file ? "figures of " : "nominal figures");
    if (!of->file)
        return;
    text_date(text, of->time);
    text_string(text, ", ");
    text_string(text, of->file);
}

static void say_program(struct accel_text *text)
{
    say_about(text, "libaccel");
    text_string(text, accel_version());
    if (*accel_commit()) {
        text_string(text, ", commit ");
        text_string(text, accel_commit());
    }
    text_string(text, "; a GPU's results differ from the CPU's in rounding\n");
    if (!is_native()) {
        say_about(text, "precision");
        text_string(text, program.precision);
        text_string(text, ": results are not native\n");
    }
    if (program.cpu_threads <= 0)
        return;
    say_about(text, "CPU");
    text_string(text, program.cpu_path && !*program.cpu_path ? "the program's own BLAS"
                      : program.cpu_path                     ? program.cpu_path
                                                             : "a library that is not known");
    text_string(text, ", ");
    text_integer(text, program.cpu_threads);
    text_string(text, program.cpu_threads == 1 ? " thread; " : " threads; ");
    say_figures(text, &program.figures);
    if (program.cpu_kernels && program.cpu_is_slow && !program.figures.file) {
        text_string(text, " for ");
        text_string(text, program.cpu_kernels);
        text_string(text, " kernels");
    }
    text_char(text, '\n');
}

static void say_slow(struct accel_text *text)
{
    say_about(text, "CPU");
    text_integer(text, slow.calls);
    text_string(text, " calls took ");
    text_decimal(text, slow.times);
    text_string(text, " times as long as the nominal figures say, which are corrected by that");
    if (slow.path && *slow.path) {
        text_string(text, ": ");
        text_string(text, slow.path);
    }
    text_char(text, '\n');
}

/* A version as its library writes it: 130100 is 13.1.0; without a patch, of CUDA, 13000 is 13.0. */
static void say_version(struct accel_text *text, int version, bool of_cuda)
{
    text_integer(text, version / (of_cuda ? 1000 : 10000));
    text_char(text, '.');
    text_integer(text, of_cuda ? version % 1000 / 10 : version / 100 % 100);
    if (of_cuda)
        return;
    text_char(text, '.');
    text_integer(text, version % 100);
}

static void say_library(struct accel_text *text, const char *what, enum gpu_library which)
{
    const struct gpu_library_file *library = gpu_library(which);
    if (!library)
        return;
    say_about(text, what);
    text_string(text, which == GPU_DRIVER ? "for CUDA " : "");
    say_version(text, library->version, which == GPU_DRIVER);
    text_string(text, *library->path ? ", " : "");
    text_string(text, library->path);
    text_char(text, '\n');
}

static void say_gpu(struct accel_text *text, int i)
{
    const struct gpu_info *gpu = atomic_load(&gpus[i]);
    say_about(text, "GPU");
    text_string(text, gpu->name);
    text_string(text, "; ");
    say_figures(text, &figures[i]);
    text_char(text, '\n');
}

void banner_say(struct accel_text *text, enum banner_part part)
{
    switch (part) {
    case BANNER_PROGRAM:
        say_program(text);
        break;
    case BANNER_SLOW:
        say_slow(text);
        break;
    case BANNER_NO_GPU:
        say_about(text, "no GPU");
        text_string(text, why_none);
        text_char(text, '\n');
        break;
    case BANNER_DRIVER:
        say_library(text, "driver", GPU_DRIVER);
        say_library(text, "cuBLAS", GPU_BLAS);
        break;
    case BANNER_SOLVER:
        say_library(text, "cuSOLVER", GPU_SOLVER);
        break;
    case BANNER_UNTRACKED:
        break;
    default:
        say_gpu(text, (int)(part - BANNER_GPU));
    }
}

void banner_say_unused(struct accel_text *text)
{
    say_about(text, "no GPU");
    text_string(text, "none was started, as no call was seen to gain enough by it\n");
}
