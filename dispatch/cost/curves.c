#define _GNU_SOURCE
#include "curves.h"

#include <sys/mman.h>

#include "base/thread/forks.h"
#include "loaded_calibration.h"
#include "ops/names.h"
#include "ops/op.h"
#include "ops/typical.h"

struct cost_with cost_with;

pthread_rwlock_t curves_lock = PTHREAD_RWLOCK_INITIALIZER;
/* This thread holds it for reading. */
static _Thread_local bool holds __attribute__((tls_model("initial-exec")));

/* All pairs of library and threads beyond CURVES_CPU_MOST share nominal curves, which do not
 * learn. */
static struct cost_curves *cpu_curves[CURVES_CPU_MOST], *cpu_beyond;
static _Atomic int cpu_count;

struct cost_curves *curves_new(struct model_rates rates)
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

/* Finds the section of the library with the nearest number of threads; its rates are scaled by
 * threads_ratio. */
static void find_cpu_section(struct cost_curves *p)
{
    char prefix[CALIBRATION_KEY_BYTES];
    struct calibration rest = *loaded_calibration_open();
    struct calibration_section section;
    int threads;
    double best = 0;
    calibration_cpu_key(p->key, p->library->name, p->threads);
    calibration_cpu_prefix(prefix);
    p->threads_ratio = 1;
    while (rest.text && calibration_next_cpu(&rest, prefix, p->library->name, &threads, &section)) {
        double ratio = (double)threads / p->threads, away = ratio < 1 ? 1 / ratio : ratio;
        if (best > 0 && away >= best)
            continue;
        best = away;
        p->measured = true;
        p->section = section;
        p->threads_ratio = ratio;
    }
}

static void divide_rates(struct model_rates *rates, double times)
{
    for (int dtype = 0; dtype < ACCEL_DTYPES; dtype++)
        rates->gflops[dtype] /= times;
}

/* A curve that begins with a section's calls has rates of its own. */
void curves_slow_down(struct cost_curves *p, double times)
{
    divide_rates(&p->rates, times);
    for (uint32_t i = 0; i < accel_routine_count; i++) {
        if (atomic_load(&p->made[i]) != CURVE_NOMINAL)
            continue;
        if (p->curve[i].points == 0)
            curves_make(p, i);
        else if (!p->measured && accel_is_blas(&accel_routines[i]))
            model_slow_operations(&p->curve[i], times);
    }
}

/* Scales the rates, for routines that the section lacks, to the section's products in double
 * precision. False if it has none. */
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
    const double gflops =
        work.term[MODEL_OPERATION] * 1e3 / (p->threads_ratio * model_ms(&curve, &work));
    divide_rates(&p->rates, p->rates.gflops[ACCEL_FLOAT64] / gflops);
    p->rates_known = true;
    return true;
}

/* Under curves_lock; NULL without memory. */
static struct cost_curves *add_cpu(const struct dispatch_library *library, int threads)
{
    int count = atomic_load(&cpu_count);
    if (count == CURVES_CPU_MOST) {
        if (!cpu_beyond && (cpu_beyond = curves_new(model_cpu_rates(cost_with.cores))))
            atomic_store(&cpu_beyond->probed, true);
        return cpu_beyond;
    }
    struct cost_curves *p = curves_new(model_kernels_rates(
        library->kernels, threads < cost_with.cores ? threads : cost_with.cores));
    if (!p)
        return NULL;
    p->library = library;
    p->threads = threads;
    find_cpu_section(p);
    if (loaded_calibration()->text && !p->measured && cost_with.settings->log != ACCEL_LOG_OFF)
        loaded_calibration_lacks(p->key);
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

struct cost_curves *curves_of_cpu(const struct dispatch_library *library, int threads)
{
    struct cost_curves *p = find_cpu(library, threads);
    if (p)
        return p;
    pthread_rwlock_wrlock(&curves_lock);
    p = find_cpu(library, threads);
    if (!p)
        p = add_cpu(library, threads);
    pthread_rwlock_unlock(&curves_lock);
    return p;
}

struct cost_curves *curves_of_cpu_at(int number)
{
    return number < atomic_load(&cpu_count) ? cpu_curves[number] : NULL;
}

/* Of a function that is not BLAS, another library's times on this CPU will do: several programs
 * carry a copy of libsvm. Without any, leaves the curve as it is, and returns false. Under
 * curves_lock. */
static bool curve_of_another(const struct accel_routine *routine, struct model_curve *curve)
{
    char prefix[CALIBRATION_KEY_BYTES];
    struct calibration rest = *loaded_calibration();
    struct calibration_line header;
    struct calibration_section section;
    if (!rest.text || accel_is_blas(routine))
        return false;
    calibration_cpu_prefix(prefix);
    while (calibration_next_section(&rest, prefix, &header, &section))
        if (calibration_section_curve(&section, routine, curve))
            return true;
    return false;
}

/* A cross-validation is made of trainings, and those are measured. Under curves_lock. */
static void take_measured_rates(struct cost_curves *p, const struct accel_routine *routine,
                                struct model_curve *curve)
{
    const char *const name = accel_op_of(routine)->cost->measured_as;
    if (!name)
        return;
    const struct accel_routine *const measured =
        accel_name_routine((uint32_t)accel_name_find(name));
    struct model_curve its = *curve;
    if ((p->measured && calibration_section_curve(&p->section, measured, &its)) ||
        (!p->device && curve_of_another(measured, &its)))
        model_take_rates(curve, &its);
}

bool curves_are_simulated(const struct accel_routine *routine)
{
    const struct accel_gpu *gpu = accel_op_of(routine)->gpu;
    return gpu && (gpu->scheduled || gpu->in_panels);
}

void curves_make(struct cost_curves *p, uint32_t index)
{
    const struct accel_routine *routine = &accel_routines[index];
    struct model_curve *curve = &p->curve[index];
    enum curve_made made = CURVE_NOMINAL;
    if (p->device && curves_are_simulated(routine))
        p->schedule[index].ms[MODEL_CALL] = p->schedule_ratio;
    if (p->device)
        model_nominal_gpu(curve, routine, &p->rates);
    else
        model_nominal_cpu(curve, routine, &p->rates);
    if (p->measured && calibration_section_curve(&p->section, routine, curve)) {
        made = CURVE_CALIBRATED;
        if (!p->device && p->threads_ratio != 1 && accel_is_blas(routine)) {
            curve->ms[MODEL_STEP] *= p->threads_ratio;
            curve->ms[MODEL_ELEMENT] *= p->threads_ratio;
            curve->ms[MODEL_OPERATION] *= p->threads_ratio;
            made = CURVE_NOMINAL; /* a scaled curve is a guess: it may learn */
        }
    } else if (p->device || !curve_of_another(routine, curve)) {
        take_measured_rates(p, routine, curve);
    }
    atomic_store_explicit(&p->made[index], (unsigned char)made, memory_order_release);
}

bool curves_learn(const struct cost_curves *p, uint32_t index)
{
    if (!p || (!p->device && !p->library))
        return false;
    return cost_with.settings->learn ||
           (cost_with.learning &&
            atomic_load_explicit(&p->made[index], memory_order_relaxed) != CURVE_CALIBRATED);
}

const struct model_curve *curves_routine(struct cost_curves *p, uint32_t index)
{
    static const struct model_curve none; /* there is no memory */
    if (!p)
        return &none;
    if (atomic_load_explicit(&p->made[index], memory_order_acquire) == CURVE_NOT_MADE) {
        pthread_rwlock_wrlock(&curves_lock);
        if (atomic_load_explicit(&p->made[index], memory_order_relaxed) == CURVE_NOT_MADE)
            curves_make(p, index);
        pthread_rwlock_unlock(&curves_lock);
    }
    return &p->curve[index];
}

void curves_hold(void)
{
    pthread_rwlock_rdlock(&curves_lock);
    holds = true;
}

void curves_let_go(void)
{
    if (holds) {
        holds = false;
        pthread_rwlock_unlock(&curves_lock);
    }
}

/* In the child of a fork. */
static void free_lock(void)
{
    const pthread_rwlock_t made = PTHREAD_RWLOCK_INITIALIZER;
    if (!forks_is_same(&curves_lock, &made, sizeof made))
        curves_lock = made;
    holds = false;
}
FORKS_CHILD(free_lock);
