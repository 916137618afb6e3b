#include "hints.h"

#include <string.h>

#include "base/text/text.h"
#include "ops/op.h"

/* Below this share of a run, or these seconds, a hint is not worth its line. */
#define WORTH         0.02
#define WORTH_SECONDS 0.1

/* ---- Libraries that compute by themselves ---- */

static const struct {
    const char *part; /* of the path */
    unsigned fact;
    const char *name, *advice;
} libraries[] = {
    {"/sklearn/tree/_tree.", TOTALS_SKLEARN_TREES, "scikit-learn's trees, forests and boosting",
     NULL},
    {"/randomForest/libs/", TOTALS_R_FORESTS, "R's randomForest", NULL},
    {"/ranger/libs/", TOTALS_R_RANGER, "R's ranger", NULL},
    {"/libxgboost.so", TOTALS_XGBOOST, "XGBoost",
     "ACCEL_ML=1,xgboost tells it to compute on the GPU"},
    {"/lib_lightgbm.so", TOTALS_LIGHTGBM, "LightGBM",
     "ACCEL_ML=1,lightgbm tells it to compute on the GPU"},
};
enum { LIBRARIES = sizeof libraries / sizeof *libraries };

unsigned hints_library(const char *path)
{
    unsigned facts = 0;
    for (int i = 0; i < LIBRARIES; i++)
        if (strstr(path, libraries[i].part))
            facts |= libraries[i].fact;
    return facts;
}

/* ---- Sentences ---- */

struct hints {
    const struct hints_of *of;
    void (*say)(void *context, const char *sentence);
    void *context;
    struct accel_text text;
    char buffer[HINT_BYTES];
};

static void start_hint(struct hints *hints)
{
    text_start(&hints->text, hints->buffer, sizeof hints->buffer);
}

static void put(struct hints *hints, const char *words)
{
    text_string(&hints->text, words);
}

static void put_seconds(struct hints *hints, double seconds)
{
    text_fixed(&hints->text, seconds, seconds < 10 ? 2 : 1);
    put(hints, " s");
}

static void put_bytes(struct hints *hints, double bytes)
{
    const bool large = bytes >= 1e9;
    text_fixed(&hints->text, bytes * (large ? 1e-9 : 1e-6), 1);
    put(hints, large ? " GB" : " MB");
}

static void put_calls(struct hints *hints, int64_t calls)
{
    text_integer(&hints->text, calls);
    put(hints, calls == 1 ? " call" : " calls");
}

static void say_hint(struct hints *hints)
{
    text_end(&hints->text);
    hints->say(hints->context, hints->buffer);
}

static bool is_on_cpu(const struct totals_row *row)
{
    return strcmp(row->ran, "cpu") == 0;
}

/* ---- By reason: calls on the CPU that a GPU would have run ---- */

static const struct {
    enum accel_why why;
    const char *what, *advice;
    unsigned done;  /* the advice is followed already; 0: that is not told by a fact */
    unsigned needs; /* the facts that the sentence is for; 0: any */
} reasons[] = {
    {ACCEL_WARMING, "while the GPU was starting", "ACCEL_START=wait makes calls wait for it",
     TOTALS_WAITS, 0},
    {ACCEL_NO_GPU, "because no GPU is there", "accel doctor says what is missing", TOTALS_HELD, 0},
    {ACCEL_NO_GPU,
     "because the program has loaded CUDA, and children that it forks may want to start it",
     "if none does, ACCEL_START=background lets libaccel start it", 0, TOTALS_HELD},
    {ACCEL_NO_MEMORY, "because the GPU's memory had no room",
     "give libaccel more of it by ACCEL_MEMORY, or let fewer processes share the GPU", 0, 0},
    {ACCEL_BUSY, "because the GPU was busy with other threads or processes",
     "more GPUs in ACCEL_DEVICES, or fewer processes on one, leave it free", 0, 0},
    {ACCEL_FORKED, "in forked children of a process that uses the GPU",
     "start such processes by spawn in place of fork (Python: "
     "multiprocessing.set_start_method(\"spawn\"))",
     0, 0},
    {ACCEL_ERROR, "because the GPU has failed", "accel doctor looks for the reason", 0, 0},
};

static struct totals_row sum_why(const struct hints_of *of, enum accel_why why)
{
    struct totals_row sum = {.why = why};
    for (int i = 0; i < of->count; i++) {
        const struct totals_row *row = &of->row[i];
        if (row->inner || row->why != why || !is_on_cpu(row))
            continue;
        sum.calls += row->calls;
        sum.seconds += row->seconds;
        if (row->instead < row->estimated) { /* the others lose nothing on the CPU */
            sum.estimated += row->estimated;
            sum.instead += row->instead;
        }
    }
    return sum;
}

static bool is_worth(const struct hints_of *of, double seconds)
{
    return seconds >= WORTH_SECONDS && seconds >= WORTH * of->seconds;
}

static void say_reasons(struct hints *hints)
{
    const struct hints_of *of = hints->of;
    for (size_t i = 0; i < sizeof reasons / sizeof *reasons; i++) {
        const struct totals_row sum = sum_why(of, reasons[i].why);
        const bool estimated = sum.estimated > 0, warming = reasons[i].why == ACCEL_WARMING;
        const double lost = estimated ? sum.estimated - sum.instead : sum.seconds,
                     saved = warming ? lost - of->starting : lost;
        if ((of->facts & reasons[i].done) ||
            (reasons[i].needs && !(of->facts & reasons[i].needs)) || !is_worth(of, saved) ||
            (warming && (!estimated || of->starting < 0)))
            continue;
        start_hint(hints);
        put_calls(hints, sum.calls);
        put(hints, " ran on the CPU ");
        put(hints, reasons[i].what);
        put(hints, ", in ");
        put_seconds(hints, estimated ? sum.estimated : sum.seconds);
        if (estimated) {
            put(hints, " in place of about ");
            put_seconds(hints, sum.instead);
        }
        put(hints, ": ");
        put(hints, reasons[i].advice);
        if (warming) {
            put(hints, ", which took ");
            put_seconds(hints, of->starting);
            put(hints, ", and would save about ");
            put_seconds(hints, saved);
        }
        say_hint(hints);
    }
}

/* ---- Of calls on the GPU ---- */

static void say_gpu(struct hints *hints)
{
    const struct hints_of *of = hints->of;
    const bool may_lack =
        (of->known & TOTALS_CALIBRATED) && !(of->facts & TOTALS_CALIBRATED) && of->seconds > 0;
    double up = 0, again = 0, late = 0, forced = 0, called = 0, on_gpu = 0;
    bool any = (of->facts & TOTALS_ON_GPU) != 0;
    for (int i = 0; i < of->count; i++) {
        const struct totals_row *row = &of->row[i];
        if (row->inner)
            continue;
        called += row->seconds;
        if (is_on_cpu(row))
            continue;
        any = true;
        on_gpu += row->seconds;
        up += (double)row->up;
        again += (double)row->again;
        if (row->why == ACCEL_FASTER && row->estimated > row->instead)
            late += row->estimated - row->instead;
        if (row->why == ACCEL_FORCED && row->estimated > row->instead)
            forced += row->estimated - row->instead;
    }
    if ((of->known & TOTALS_KEEPS) && !(of->facts & TOTALS_KEEPS) && again >= 1e8 &&
        again >= 0.2 * up) {
        start_hint(hints);
        put_bytes(hints, again);
        put(hints, " of the ");
        put_bytes(hints, up);
        put(hints, " that went up to the GPU were matrices from places that had been sent before: "
                   "ACCEL_RESIDENT=auto keeps there what has not changed");
        say_hint(hints);
    }
    if ((of->facts & TOTALS_TURNS) && is_worth(of, on_gpu)) {
        start_hint(hints);
        put(hints, "ranks took turns on one GPU, whose calls took ");
        put_seconds(hints, on_gpu);
        put(hints,
            ": NVIDIA's MPS lets them use it at the same time (nvidia-cuda-mps-control -d, before "
            "the job)");
        say_hint(hints);
    }
    if (is_worth(of, forced)) {
        start_hint(hints);
        put(hints, "calls that a setting sent to the GPU took ");
        put_seconds(hints, forced);
        put(hints, " more than the CPU's estimate: without ACCEL_POLICY=gpu and ACCEL_GPU, calls "
                   "go where they are faster");
        say_hint(hints);
    }
    if (is_worth(of, late)) {
        start_hint(hints);
        put(hints, "on the GPU, calls that were to be faster took ");
        put_seconds(hints, late);
        put(hints, " more than the CPU's estimate, first calls included: accel calibrate measures "
                   "this machine");
        say_hint(hints);
    } else if (any && may_lack && called >= 0.1 * of->seconds) {
        start_hint(hints);
        put(hints, "the GPU's figures are not measured: accel calibrate measures this machine, so "
                   "that calls go where they are faster");
        say_hint(hints);
    }
}

/* ---- Other precisions ---- */

/* With about three digits. */
static void put_tflops(struct hints *hints, double gflops)
{
    const double tflops = gflops * 1e-3;
    if (tflops >= 100)
        text_integer(&hints->text, (int64_t)(tflops + 0.5));
    else
        text_fixed(&hints->text, tflops, tflops < 1 ? 3 : tflops < 10 ? 2 : 1);
}

static void say_precisions(struct hints *hints)
{
    const struct hints_of *of = hints->of;
    for (int i = GPU_NATIVE + 1; of->precision && i < GPU_PRECISIONS; i++) {
        const struct totals_precision *precision = &of->precision[i];
        const char *name = gpu_precision_names[i];
        const bool in_double = gpu_precision_suits((enum gpu_precision)i, true);
        if (!(precision->gflops > 0) || !is_worth(of, precision->saved))
            continue;
        start_hint(hints);
        put(hints,
            accel_sample_of(ACCEL_SAMPLE_PRODUCT, in_double ? ACCEL_FLOAT64 : ACCEL_FLOAT32)->name);
        put(hints, " on this card: native ");
        put_tflops(hints, precision->native_gflops);
        put(hints, " TF/s, ");
        put(hints, name);
        put(hints, " ");
        put_tflops(hints, precision->gflops);
        put(hints, "; ACCEL_PRECISION=");
        put(hints, name);
        put(hints, " would save about ");
        put_seconds(hints, precision->saved);
        put(hints, " in ");
        put_calls(hints, precision->calls);
        put(hints, " (docs/precision.md says how accurate it is)");
        say_hint(hints);
    }
}

/* ---- What is no call ---- */

static void say_outside(struct hints *hints)
{
    const struct hints_of *of = hints->of;
    if (of->outside < 0 || !(of->seconds > 0) || of->outside < 0.5 * of->seconds)
        return;
    start_hint(hints);
    text_integer(&hints->text, (int64_t)(100 * of->outside / of->seconds + 0.5));
    put(hints, " % of the time is outside these calls: no setting will help there");
    say_hint(hints);
    for (int i = 0; i < LIBRARIES; i++) {
        if (!(of->facts & libraries[i].fact))
            continue;
        start_hint(hints);
        put(hints, libraries[i].name);
        put(hints, libraries[i].advice
                       ? ", which the program has loaded, computes without BLAS: "
                       : ", which the program has loaded, compute without BLAS, and stay on the "
                         "CPU");
        if (libraries[i].advice)
            put(hints, libraries[i].advice);
        say_hint(hints);
    }
}

void hints_make(const struct hints_of *of, void (*say)(void *context, const char *sentence),
                void *context)
{
    struct hints hints = {.of = of, .say = say, .context = context};
    say_reasons(&hints);
    say_gpu(&hints);
    say_precisions(&hints);
    say_outside(&hints);
}
