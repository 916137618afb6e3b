#define _GNU_SOURCE
#include "cost.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/forks.h"
#include "base/grown.h"
#include "base/say.h"
#include "calibration.h"
#include "gpu/scheduled.h"
#include "known_gpus.h"
#include "ops/lapack/in_panels.h"
#include "ops/names.h"
#include "ops/op.h"
#include "ops/shape.h"
#include "probe.h"

/* Of a CPU library with a number of threads, or of a device. A curve is made at its first use. */
struct cost_curves {
    char key[CALIBRATION_KEY_BYTES];
    bool device;
    bool measured; /* the calibration has a section for it: */
    struct calibration_section section;
    double threads_ratio; /* the section's threads / threads */
    bool learned;
    atomic_bool probed;
    struct model_rates rates; /* for curves that the calibration lacks */
    /* of a device: */
    double up_gbps, down_gbps;
    double place_gbps; /* 0: its kernels do not reach the host's memory */
    bool one_memory;
    double gain[GPU_PRECISIONS]; /* in operations a second over native precision */
    struct cost_first first;
    double schedule_ratio; /* by how much calls took longer than their schedules say, calibrated */
    /* of a CPU library: */
    const struct dispatch_library *library; /* NULL: cpu_beyond */
    int threads;
    /* by routine: */
    _Atomic unsigned char *made;  /* enum made */
    struct model_curve *schedule; /* of a device: see model_work_of_time() */
    struct model_curve curve[];
};

/* Calibrated curves change only with ACCEL_LEARN=1. */
enum made { NOT_MADE, NOMINAL, CALIBRATED };

static const struct accel_settings *settings;
static int cores;
static bool learning, quiet;

/* Held for writing while curves are made or changed; for reading by a borrower of curves that may change. */
static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
/* This thread holds it for reading. */
static _Thread_local bool holds __attribute__((tls_model("initial-exec")));

static bool opened;
static struct calibration file; /* text is NULL: there is none */

/* At most so many pairs of library and threads have curves of their own; all further pairs share nominal ones, which do not learn. */
enum { CPU_MOST = 64 };
static struct cost_curves *cpu_curves[CPU_MOST], *cpu_beyond;
static _Atomic int cpu_count;
static struct cost_curves *_Atomic fast_gpu; /* see cost.h */

void cost_start(const struct accel_settings *with, int cores_there, bool learning_allowed,
                bool be_quiet)
{
    settings = with;
    cores = cores_there;
    learning = learning_allowed;
    quiet = be_quiet;
}

/* ---- The calibration ---- */

/* Says once that the calibration lacks a section: the file of another machine lacks all of them. Under the lock. */
static void say_foreign(const char *key)
{
    static bool said;
    if (said || quiet)
        return;
    said = true;
    accel_say("the calibration %s has nothing for %s: built-in figures are used; `accel calibrate` "
              "measures this machine",
              settings->model, key);
}

/* Once; not with ACCEL_LEARN=1, which makes the file at the end. */
static void say_missing(void)
{
    static atomic_bool said;
    if (!quiet && settings->model_given && !settings->learn && !atomic_exchange(&said, true))
        accel_say("no calibration at %s (ACCEL_MODEL); built-in figures are used (run `accel "
                  "calibrate`)",
                  settings->model);
}

/* Without a GPU the file is not opened, but the user's wrong path is still worth a message. */
void cost_complain(void)
{
    if (settings->model_given && access(settings->model, F_OK) != 0 &&
        (errno == ENOENT || errno == ENOTDIR))
        say_missing();
}

/* Opens the calibration at the first call, and says what is wrong with it. Under the lock. */
static void open_file(void)
{
    char key[CALIBRATION_KEY_BYTES];
    struct calibration_section section;
    if (opened)
        return;
    opened = true;
    if (!settings->model)
        return;
    const char *wrong = calibration_open(&file, settings->model);
    /* HOME stays another user's in programs that change the user: no complaint. */
    bool expected = wrong == calibration_closed && !settings->model_given;
    if (wrong == calibration_missing)
        say_missing();
    else if (wrong && !quiet && !expected)
        accel_say("the calibration %s is not used: %s", settings->model, wrong);
    if (!file.text)
        return;
    if (!calibration_has_sections(&file)) { /* nothing that was measured is lost */
        calibration_close(&file);
        if (!quiet && settings->log != ACCEL_LOG_OFF)
            accel_say("the calibration %s is empty; built-in figures are used (run `accel "
                      "calibrate`)",
                      settings->model);
        return;
    }
    calibration_cpu_prefix(key);
    if (!calibration_find(&file, key, true, &section))
        say_foreign(key + 1);
}

/* NULL without memory. */
static struct cost_curves *new_curves(struct model_rates rates)
{
    struct cost_curves *new;
    const size_t curves = sizeof *new + 2 * accel_routine_count * sizeof *new->curve;
    new = mmap(NULL, curves + accel_routine_count, PROT_READ | PROT_WRITE,
               MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (new == MAP_FAILED)
        return NULL;
    new->made = (_Atomic unsigned char *)new + curves;
    new->schedule = new->curve + accel_routine_count;
    new->rates = rates;
    return new;
}

/* Finds the section of the library with the nearest number of threads; its rates are scaled by threads_ratio. */
static void find_cpu_section(struct cost_curves *p)
{
    char prefix[CALIBRATION_KEY_BYTES];
    struct calibration rest = file;
    struct calibration_section section;
    int threads;
    double best = 0;
    calibration_cpu_key(p->key, p->library->name, p->threads);
    calibration_cpu_prefix(prefix);
    p->threads_ratio = 1;
    while (file.text && calibration_next_cpu(&rest, prefix, p->library->name, &threads, &section)) {
        double ratio = (double)threads / p->threads, away = ratio < 1 ? 1 / ratio : ratio;
        if (best > 0 && away >= best)
            continue;
        best = away;
        p->measured = true;
        p->section = section;
        p->threads_ratio = ratio;
    }
}

static void scale_rates(struct model_rates *rates, double gflops)
{
    double ratio = gflops / rates->gflops[ACCEL_FLOAT64];
    for (int dtype = 0; dtype < ACCEL_DTYPES; dtype++)
        rates->gflops[dtype] *= ratio;
}

/* Scales the rates, for routines that the section lacks, to the section's products in double precision. False if it has none. */
static bool rates_of_section(struct cost_curves *p)
{
    const struct accel_routine *routine = accel_sample_of(ACCEL_SAMPLE_PRODUCT, ACCEL_FLOAT64);
    struct model_curve curve;
    struct accel_call call;
    struct model_work work;
    if (!p->measured || !routine)
        return false;
    model_nominal_cpu(&curve, routine, &p->rates);
    if (!calibration_section_curve(&p->section, routine, &curve))
        return false;
    shape_of_order(&call, routine, 512);
    model_work_of(&call, false, &work);
    scale_rates(&p->rates,
                work.term[MODEL_OPERATION] * 1e3 / (p->threads_ratio * model_ms(&curve, &work)));
    return true;
}

/* Under the lock; NULL without memory. */
static struct cost_curves *add_cpu(const struct dispatch_library *library, int threads)
{
    int count = atomic_load(&cpu_count);
    open_file();
    if (count == CPU_MOST) {
        if (!cpu_beyond && (cpu_beyond = new_curves(model_cpu_rates(cores))))
            atomic_store(&cpu_beyond->probed, true);
        return cpu_beyond;
    }
    struct cost_curves *p = new_curves(model_cpu_rates(threads < cores ? threads : cores));
    if (!p)
        return NULL;
    p->library = library;
    p->threads = threads;
    find_cpu_section(p);
    if (file.text && !p->measured && settings->log != ACCEL_LOG_OFF)
        say_foreign(p->key);
    if (rates_of_section(p))
        atomic_store(&p->probed, true);
    cpu_curves[count] = p;
    atomic_store(&cpu_count, count + 1);
    return p;
}

static struct cost_curves *find_cpu(const struct dispatch_library *library, int threads)
{
    int count = atomic_load(&cpu_count);
    for (int i = 0; i < count; i++)
        if (cpu_curves[i]->library == library && cpu_curves[i]->threads == threads)
            return cpu_curves[i];
    return NULL;
}

static struct cost_curves *cpu_of(const struct dispatch_library *library, int threads)
{
    struct cost_curves *p = find_cpu(library, threads);
    if (p)
        return p;
    pthread_rwlock_wrlock(&lock);
    p = find_cpu(library, threads);
    if (!p)
        p = add_cpu(library, threads);
    pthread_rwlock_unlock(&lock);
    return p;
}

/* cuSOLVER is three libraries of more than 200 MB; opening them takes half a second, if they are in the page cache, to several. A
 * routine's first call loads its kernels (CUDA's lazy loading) from an open library, in some tens of milliseconds. */
static const struct cost_first nominal_first = {.kernels_ms = 50, .solver_ms = 500};

static struct cost_curves *new_device(struct model_rates rates)
{
    struct cost_curves *p = new_curves(rates);
    if (!p)
        return NULL;
    p->device = true;
    p->up_gbps = p->down_gbps = MODEL_COPY_GBPS;
    for (int i = 0; i < GPU_PRECISIONS; i++)
        p->gain[i] = 1;
    p->first = nominal_first;
    p->schedule_ratio = 1;
    return p;
}

/* Returns the device's curves, or a fast GPU's. These are not the calibration's, which may be another machine's, and must not keep
 * the device from being started. */
static struct cost_curves *device_of(struct cost_curves *device)
{
    struct cost_curves *p = device ? device : atomic_load(&fast_gpu);
    if (p)
        return p;
    pthread_rwlock_wrlock(&lock);
    p = atomic_load(&fast_gpu);
    if (!p)
        atomic_store(&fast_gpu, p = new_device(model_gpu_rates()));
    pthread_rwlock_unlock(&lock);
    return p;
}

/* ---- Curves ---- */

/* Of a function that is not BLAS, another library's times on this CPU will do: several programs carry a copy of libsvm. Without any,
 * leaves the curve as it is, and returns false. Under the lock. */
static bool curve_of_another(const struct accel_routine *routine, struct model_curve *curve)
{
    char prefix[CALIBRATION_KEY_BYTES];
    struct calibration rest = file;
    struct calibration_line header;
    struct calibration_section section;
    if (!file.text || accel_is_blas(routine))
        return false;
    calibration_cpu_prefix(prefix);
    while (calibration_next_section(&rest, prefix, &header, &section))
        if (calibration_section_curve(&section, routine, curve))
            return true;
    return false;
}

/* A cross-validation is made of trainings, and those are measured. Under the lock. */
static void take_measured_rates(struct cost_curves *p, const struct accel_routine *routine,
                                struct model_curve *curve)
{
    const char *const name = accel_op_of(routine)->measured_as;
    if (!name)
        return;
    const struct accel_routine *const measured =
        accel_name_routine((uint32_t)accel_name_find(name));
    struct model_curve its = *curve;
    if ((p->measured && calibration_section_curve(&p->section, measured, &its)) ||
        (!p->device && curve_of_another(measured, &its)))
        model_take_rates(curve, &its);
}

/* Returns whether calls of a routine may have simulated times, which measured ones correct. */
static bool is_simulated(const struct accel_routine *routine)
{
    const struct accel_op *op = accel_op_of(routine);
    return op->scheduled || op->in_panels;
}

/* Under the lock. */
static void make_curve(struct cost_curves *p, uint32_t index)
{
    const struct accel_routine *routine = &accel_routines[index];
    struct model_curve *curve = &p->curve[index];
    enum made made = NOMINAL;
    if (p->device && is_simulated(routine))
        p->schedule[index].ms[MODEL_CALL] = p->schedule_ratio;
    if (p->device)
        model_nominal_gpu(curve, routine, &p->rates);
    else
        model_nominal_cpu(curve, routine, &p->rates);
    if (p->measured && calibration_section_curve(&p->section, routine, curve)) {
        made = CALIBRATED;
        if (!p->device && p->threads_ratio != 1 && accel_is_blas(routine)) {
            curve->ms[MODEL_STEP] *= p->threads_ratio;
            curve->ms[MODEL_ELEMENT] *= p->threads_ratio;
            curve->ms[MODEL_OPERATION] *= p->threads_ratio;
            made = NOMINAL; /* a scaled curve is a guess: it may learn */
        }
    } else if (p->device || !curve_of_another(routine, curve)) {
        take_measured_rates(p, routine, curve);
    }
    atomic_store_explicit(&p->made[index], (unsigned char)made, memory_order_release);
}

static bool learns(const struct cost_curves *p, uint32_t index)
{
    if (!p || (!p->device && !p->library))
        return false;
    return settings->learn ||
           (learning && atomic_load_explicit(&p->made[index], memory_order_relaxed) != CALIBRATED);
}

/* Must not be called under the lock, which it takes. */
static const struct model_curve *curve_of(struct cost_curves *p, uint32_t index)
{
    static const struct model_curve none; /* there is no memory */
    if (!p)
        return &none;
    if (atomic_load_explicit(&p->made[index], memory_order_acquire) == NOT_MADE) {
        pthread_rwlock_wrlock(&lock);
        if (atomic_load_explicit(&p->made[index], memory_order_relaxed) == NOT_MADE)
            make_curve(p, index);
        pthread_rwlock_unlock(&lock);
    }
    return &p->curve[index];
}

void cost_borrow(struct accel_machine *machine, struct cost_curves *device,
                 const struct accel_routine *routine, const struct dispatch_library *library,
                 int threads)
{
    uint32_t index = (uint32_t)(routine - accel_routines);
    struct cost_curves *cpu = cpu_of(library, threads), *gpu = device_of(device);
    machine->cpu_curve = curve_of(cpu, index);
    machine->gpu_curve = curve_of(gpu, index);
    if (gpu && is_simulated(routine))
        machine->schedule_curve = &gpu->schedule[index];
    if (gpu) {
        machine->up_gbps = gpu->up_gbps;
        machine->down_gbps = gpu->down_gbps;
        machine->place_gbps = gpu->place_gbps;
        machine->one_memory = gpu->one_memory;
    }
    if (learns(cpu, index) || learns(gpu, index)) {
        pthread_rwlock_rdlock(&lock);
        holds = true;
    }
}

void cost_give_back(void)
{
    if (holds) {
        holds = false;
        pthread_rwlock_unlock(&lock);
    }
}

/* ---- Devices ---- */

struct cost_first cost_first_calls(const struct cost_curves *device)
{
    return device ? device->first : nominal_first;
}

double cost_precision_gain(const struct cost_curves *device, enum gpu_precision precision)
{
    return device ? device->gain[precision] : 1;
}

/* Returns the calibrated milliseconds of a call's kernels, or nominal ones: not what was learned in their place, so that the same call has
 * the same schedule each time, and so the same result, bit for bit. With ACCEL_LEARN=1 a calibration itself changes.
 * *steps_ms: what of that the steps take; or NULL. */
static double settled_ms(struct cost_curves *device, uint32_t index, const struct model_work *work,
                         double *steps_ms)
{
    struct model_curve nominal;
    const struct model_curve *curve = curve_of(device, index);
    if (atomic_load_explicit(&device->made[index], memory_order_relaxed) != CALIBRATED) {
        model_nominal_gpu(&nominal, &accel_routines[index], &device->rates);
        curve = &nominal;
    }
    pthread_rwlock_rdlock(&lock);
    const double ms = model_ms(curve, work) - curve->ms[MODEL_CALL];
    const double steps = curve->ms[MODEL_STEP] * work->term[MODEL_STEP];
    const double all = steps + curve->ms[MODEL_ELEMENT] * work->term[MODEL_ELEMENT] +
                       curve->ms[MODEL_OPERATION] * work->term[MODEL_OPERATION];
    pthread_rwlock_unlock(&lock);
    if (steps_ms)
        *steps_ms = all > 0 && ms > 0 ? ms * steps / all : 0;
    return ms;
}

double cost_product_gflops(struct cost_curves *device, enum accel_dtype dtype)
{
    const struct accel_routine *product = accel_sample_of(ACCEL_SAMPLE_PRODUCT, dtype);
    struct accel_call call;
    struct model_work work;
    if (!device || !product)
        return 0;
    shape_of_order(&call, product, 8192);
    model_work_of(&call, true, &work);
    const double ms = settled_ms(device, (uint32_t)(product - accel_routines), &work, NULL);
    return ms > 0 ? work.term[MODEL_OPERATION] * 1e3 / ms : 0;
}

/* Returns the rate (schedule_rates.compute) by which a call's kernels take so many milliseconds. */
static double compute_of(const struct accel_call *call, const struct model_work *work, double half,
                         double ms)
{
    struct scheduled scheduled;
    if (scheduled_describe(call, &scheduled))
        return scheduled.call.k > 0 ? schedule_compute(&scheduled.call, half, ms) : 0;
    const double shortest = shape_steps(call);
    return work->term[MODEL_OPERATION] * 1e3 / ms *
           (shortest > 0 ? (shortest + half) / shortest : 1);
}

struct schedule_rates cost_schedule_rates(struct cost_curves *device, const struct accel_call *call,
                                          double gain)
{
    struct cost_curves *const p = device_of(device);
    struct schedule_rates rates = schedule_nominal;
    struct model_work work;
    if (!p)
        return rates;
    model_work_of(call, true, &work);
    double steps_ms;
    double ms = settled_ms(p, (uint32_t)(call->routine - accel_routines), &work, &steps_ms);
    if (steps_ms > 0 && lapack_has_panels(call) && lapack_factors(call)) {
        rates.column_ms = steps_ms / shape_steps(call);
        ms -= steps_ms;
    }
    const double compute = gain * compute_of(call, &work, rates.half, ms > 1e-6 ? ms : 1e-6);
    rates.up = p->up_gbps;
    rates.down = p->down_gbps;
    if (compute > 0)
        rates.compute = compute;
    return rates;
}

/* Returns the section's value, or `otherwise` if it has none. */
static double value_or(const struct cost_curves *p, const char *name, double otherwise)
{
    double value = calibration_section_value(&p->section, name);
    return value > 0 ? value : otherwise;
}

/* Sets the rates of a device: the known GPU's, and over them the calibration's. */
static void set_rates(struct cost_curves *p, const struct known_gpu *known)
{
    if (known) {
        const double peaks[2] = {1e3 * known->tflops[0], 1e3 * known->tflops[1]};
        p->rates = model_rates_of_peaks(peaks, known->memory_gbps);
        p->up_gbps = known->up_gbps;
        p->down_gbps = known->down_gbps;
        nominal_gains(p->gain, peaks, 1e3 * known->tensor[0], 1e3 * known->tensor[1],
                      1e3 * known->tensor[2]);
    }
    if (p->measured) {
        p->up_gbps = value_or(p, "up_gbps", p->up_gbps);
        p->down_gbps = value_or(p, "down_gbps", p->down_gbps);
        if (p->place_gbps > 0)
            p->place_gbps = value_or(p, "place_gbps", p->place_gbps);
        p->first.kernels_ms = value_or(p, "kernels_ms", p->first.kernels_ms);
        p->first.solver_ms = value_or(p, "solver_ms", p->first.solver_ms);
        p->schedule_ratio = value_or(p, calibration_schedule_ratio, 1);
        for (int i = GPU_NATIVE + 1; i < GPU_PRECISIONS; i++)
            p->gain[i] = value_or(p, calibration_gain_names[i], p->gain[i]);
    }
}

static void choose_svd(struct gpu_device *gpu, const struct cost_curves *p)
{
    enum gpu_svd algorithm[GPU_SVD_OCTAVES];
    for (int i = 0; i < 2 * ACCEL_DTYPES; i++) {
        enum accel_dtype dtype = (enum accel_dtype)(i / 2);
        if (!calibration_section_svd(&p->section, dtype, i % 2, algorithm))
            continue;
        for (int octave = 0; octave < GPU_SVD_OCTAVES; octave++)
            gpu_svd_choose(gpu, dtype, i % 2, octave, algorithm[octave]);
    }
}

struct cost_curves *cost_curves_of(struct gpu_device *gpu)
{
    const struct gpu_info *info = gpu_info(gpu);
    struct cost_curves *p =
        new_device(model_rates_of_peaks(info->nominal.gflops, info->nominal.memory_gbps));
    if (!p)
        return NULL;
    p->up_gbps = p->down_gbps = info->nominal.copy_gbps;
    p->place_gbps = info->nominal.place_gbps;
    p->one_memory = info->integrated;
    memcpy(p->gain, info->nominal.gain, sizeof p->gain);
    pthread_rwlock_wrlock(&lock);
    open_file();
    calibration_gpu_key(p->key, info->name, info->cuda_version, info->cublas_version);
    p->measured = file.text && calibration_find(&file, p->key, false, &p->section);
    if (file.text && !p->measured)
        say_foreign(p->key);
    pthread_rwlock_unlock(&lock);
    if (p->measured) {
        choose_svd(gpu, p);
        gpu_set_piece(gpu, (int64_t)(1024 * value_or(p, "piece_kb", 0)));
    }
    set_rates(p, known_gpu_whole(info->name));
    return p;
}

bool cost_is_measured(const struct cost_curves *device)
{
    return device && device->measured;
}

struct banner_figures cost_figures_of(const struct cost_curves *device)
{
    return cost_is_measured(device) ? (struct banner_figures){settings->model, file.time}
                                    : (struct banner_figures){NULL, 0};
}

struct banner_figures cost_figures_of_cpu(const struct dispatch_library *library, int threads)
{
    return cost_figures_of(cpu_of(library, threads));
}

struct cost_curves *cost_curves_named(const char *name, int64_t *memory_bytes)
{
    const struct known_gpu *card = known_gpu_find(name);
    const struct known_gpu slice = card ? known_gpu_slice(card, name) : (struct known_gpu){0};
    struct cost_curves *p = new_device(model_gpu_rates());
    if (!p)
        return NULL;
    pthread_rwlock_wrlock(&lock);
    open_file();
    p->measured = file.text && calibration_find_gpu(&file, name, &p->section);
    pthread_rwlock_unlock(&lock);
    *memory_bytes = (int64_t)(slice.memory_gb * 1e9);
    p->place_gbps = card ? known_gpu_place_gbps(card) : 0;
    set_rates(p, card ? &slice : NULL);
    return p->measured || card ? p : NULL; /* without either, p stays mapped: once a process */
}

/* ---- Learning ---- */

/* Returns the call's work if the curves of its routine may learn. */
static bool work_to_learn(struct cost_curves *p, const struct accel_call *call,
                          struct model_work *work)
{
    const uint32_t index = (uint32_t)(call->routine - accel_routines);
    curve_of(p, index);
    if (!learns(p, index))
        return false;
    model_work_of(call, p->device, work);
    return true;
}

static void learn(struct cost_curves *p, struct model_curve *curve, const struct model_work *work,
                  double ms)
{
    pthread_rwlock_wrlock(&lock);
    model_learn(curve, work, ms);
    p->learned = true;
    pthread_rwlock_unlock(&lock);
}

void cost_learn_cpu(const struct accel_call *call, const struct dispatch_library *library,
                    int threads, double ms)
{
    struct cost_curves *const p = cpu_of(library, threads);
    struct model_work work;
    if (work_to_learn(p, call, &work))
        learn(p, &p->curve[call->routine - accel_routines], &work, ms);
}

/* Returns the milliseconds that the schedule of a call says; negative: copies and kernels are added. */
static double schedule_ms(struct cost_curves *p, const struct accel_call *call,
                          int64_t memory_bytes)
{
    struct scheduled scheduled;
    const bool panels = lapack_has_panels(call);
    if (!panels && !scheduled_is_divided(call, &scheduled))
        return -1;
    const struct schedule_rates rates = cost_schedule_rates(p, call, 1);
    return panels ? lapack_panels_ms(call, &rates, memory_bytes)
                  : scheduled_ms(call, &scheduled, &rates, memory_bytes, 0);
}

void cost_learn_gpu(struct cost_curves *p, const struct accel_call *call, int64_t memory_bytes,
                    double ms)
{
    const uint32_t index = (uint32_t)(call->routine - accel_routines);
    struct model_work work;
    if (!work_to_learn(p, call, &work))
        return;
    const double simulated = schedule_ms(p, call, memory_bytes);
    if (simulated > 0) {
        const struct model_work time =
            model_work_of_time(&work, simulated + p->curve[index].ms[MODEL_CALL]);
        learn(p, &p->schedule[index], &time, ms);
        return;
    }
    /* A curve is without the copies; a call faster than their estimate leaves a tenth. */
    const double left = ms - model_copies_ms(&work, p->up_gbps, p->down_gbps);
    learn(p, &p->curve[index], &work, left > ms / 10 ? left : ms / 10);
}

void cost_probe(const struct dispatch_library *library, int threads)
{
    struct cost_curves *p = cpu_of(library, threads);
    if (!learning || !p || atomic_load_explicit(&p->probed, memory_order_relaxed) ||
        atomic_exchange(&p->probed, true))
        return;
    const double gflops = probe_gflops(library, threads);
    if (!(gflops > 0))
        return;
    pthread_rwlock_wrlock(&lock);
    scale_rates(&p->rates, gflops);
    /* A curve that real calls have corrected meanwhile stays. */
    for (uint32_t i = 0; i < accel_routine_count; i++)
        if (atomic_load(&p->made[i]) == NOMINAL && p->curve[i].points == 0)
            make_curve(p, i);
    pthread_rwlock_unlock(&lock);
}

/* ---- ACCEL_LEARN=1: back to the file ---- */

/* Writes the whole section, with the unchanged curves. */
static bool compose(struct grown *body, struct cost_curves *p)
{
    *body = (struct grown){NULL, 0, 0, false};
    if (p->device) {
        calibration_put_value(body, "up_gbps", p->up_gbps);
        calibration_put_value(body, "down_gbps", p->down_gbps);
        if (p->measured)
            calibration_put_value(body, "piece_kb",
                                  value_or(p, "piece_kb", GPU_PIECE_USUAL / 1024));
        if (p->place_gbps > 0)
            calibration_put_value(body, "place_gbps", p->place_gbps);
        calibration_put_value(body, "kernels_ms", p->first.kernels_ms);
        calibration_put_value(body, "solver_ms", p->first.solver_ms);
        calibration_put_value(body, calibration_schedule_ratio,
                              p->schedule_ratio * model_ratio(p->schedule, accel_routine_count));
    }
    if (p->device && p->measured) {
        for (int i = GPU_NATIVE + 1; i < GPU_PRECISIONS; i++)
            if (value_or(p, calibration_gain_names[i], 0) > 0)
                calibration_put_value(body, calibration_gain_names[i], p->gain[i]);
        calibration_put_svd(body, &p->section);
    }
    for (uint32_t i = 0; i < accel_routine_count; i++) {
        if (atomic_load(&p->made[i]) == NOT_MADE)
            make_curve(p, i);
        calibration_put_curve(body, &accel_routines[i], &p->curve[i]);
    }
    return !body->failed && body->length > 0;
}

static bool is_among(const char *key, const char *const *keys, int count)
{
    for (int i = 0; i < count; i++)
        if (strcmp(key, keys[i]) == 0)
            return true;
    return false;
}

void cost_end(struct cost_curves *const *device, int devices)
{
    enum { MOST = CPU_MOST + COST_DEVICES };
    const char *keys[MOST], *bodies[MOST];
    struct grown body[MOST];
    int count = 0;
    if (!settings || !settings->learn || !settings->model || pthread_rwlock_trywrlock(&lock) != 0)
        return;
    const int cpus = atomic_load(&cpu_count);
    for (int i = 0; i < cpus + devices; i++) {
        struct cost_curves *p = i < cpus ? cpu_curves[i] : device[i - cpus];
        if (!p || !p->learned || is_among(p->key, keys, count))
            continue;
        if (p->threads_ratio > 0 && p->threads_ratio != 1)
            continue; /* its points come from another section */
        if (compose(&body[count], p)) {
            keys[count] = p->key;
            bodies[count] = body[count].text;
            count++;
        } else {
            free(body[count].text);
        }
    }
    const char *wrong =
        count > 0 ? calibration_put(settings->model, keys, bodies, count, false) : NULL;
    if (wrong)
        accel_say("what was learned is not kept in %s: %s (%s)", settings->model, wrong,
                  strerrordesc_np(errno));
    for (int i = 0; i < count; i++)
        free(body[i].text);
    pthread_rwlock_unlock(&lock);
}

/* In the child of a fork. */
static void free_lock(void)
{
    pthread_rwlock_init(&lock, NULL);
    holds = false;
}
FORKS_CHILD(free_lock);
