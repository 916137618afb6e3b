#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/text/error_text.h"
#include "base/text/string_buffer.h"
#include "base/output/message.h"
#include "curves.h"
#include "ops/lapack/in_panels.h"
#include "ops/rules/lapack_rules.h"
#include "probe.h"

/* Returns the call's work if the curves of its routine may learn, or NULL. Part of a spectrum takes
 * a part of the time, which the model does not know. */
static const struct model_work *work_to_learn(struct cost_curves *p, struct problem *problem)
{
    const uint32_t index = (uint32_t)(problem->call->routine - accel_routines);
    curves_routine(p, index);
    return curves_learn(p, index) && !lapack_is_part(problem->call)
               ? problem_work(problem, p->device)
               : NULL;
}

static void learn(struct cost_curves *p, struct model_curve *curve, const struct model_work *work,
                  double ms)
{
    pthread_rwlock_wrlock(&curves_lock);
    model_learn(curve, work, ms);
    p->learned = true;
    pthread_rwlock_unlock(&curves_lock);
}

/* Whether a call tells the rate of a library as a whole: one of Level 3 that takes
 * a millisecond, so that little else takes part, and by several threads some more. */
static bool tells_library(const struct accel_call *call, int threads, double ms, double operations)
{
    return !accel_uses_solver(call->routine) && accel_is_blas(call->routine) &&
           ms >= (threads == 1 ? 1 : 5) && operations >= 0.5;
}

/* The estimate of a curve without measured calls is that of the library's rates. */
static void weigh_library(struct cost_curves *p, const struct accel_call *call,
                          const struct model_work *work, double ms)
{
    const uint32_t index = (uint32_t)(call->routine - accel_routines);
    double operations;
    if (p->rates_known || p->measured || atomic_load(&p->made[index]) != CURVE_NOMINAL)
        return;
    pthread_rwlock_wrlock(&curves_lock);
    const double nominal = model_terms_ms(&p->curve[index], work, &operations);
    const double times = tells_library(call, p->threads, nominal, operations)
                             ? slow_library_add(&p->slow, ms / nominal)
                             : 1;
    if (times != 1)
        curves_slow_down(p, times);
    if (times > 1)
        banner_slow(p->library->file, SLOW_LIBRARY_CALLS, times);
    pthread_rwlock_unlock(&curves_lock);
}

/* Returns the time to learn from. One above the estimate counts as far as the thread had a CPU. */
static double believed_ms(const struct model_curve *curve, const struct model_work *work,
                          const struct cost_time *took)
{
    if (took->sure_ms >= took->ms)
        return took->ms;
    pthread_rwlock_rdlock(&curves_lock);
    const double estimate = model_ms(curve, work);
    pthread_rwlock_unlock(&curves_lock);
    if (took->ms <= estimate)
        return took->ms;
    return took->sure_ms > estimate ? took->sure_ms : estimate;
}

void cost_learn_cpu(struct problem *problem, const struct dispatch_library *library, int threads,
                    const struct cost_time *took)
{
    struct cost_curves *const p = curves_of_cpu(library, threads);
    const struct model_work *work = work_to_learn(p, problem);
    if (!work)
        return;
    struct model_curve *const curve = &p->curve[problem->call->routine - accel_routines];
    weigh_library(p, problem->call, work, took->sure_ms);
    learn(p, curve, work, believed_ms(curve, work, took));
}

/* Returns the milliseconds that the schedule of a call says; negative: copies and kernels are
 * added. */
static double schedule_ms(struct cost_curves *p, struct problem *problem, int64_t memory_bytes)
{
    if (!problem_has_schedule(problem))
        return -1;
    const struct schedule_rates rates = cost_schedule_rates(p, problem, GPU_NATIVE);
    return problem->in_panels ? lapack_panels_ms(problem->call, &rates, memory_bytes)
                              : scheduled_ms(&problem->scheduled, &rates, memory_bytes, 0);
}

void cost_learn_gpu(struct cost_curves *p, struct problem *problem, int64_t memory_bytes, double ms)
{
    const uint32_t index = (uint32_t)(problem->call->routine - accel_routines);
    const struct model_work *work = work_to_learn(p, problem);
    if (!work)
        return;
    const double simulated = schedule_ms(p, problem, memory_bytes);
    if (simulated > 0) {
        const struct model_work time =
            model_work_of_time(work, simulated + p->curve[index].ms[MODEL_CALL]);
        learn(p, &p->schedule[index], &time, ms);
        return;
    }
    /* A curve is without the copies; a call faster than their estimate leaves a tenth. */
    const double left = ms - model_copies_ms(work, p->up_gbps, p->down_gbps);
    learn(p, &p->curve[index], work, left > ms / 10 ? left : ms / 10);
}

void cost_probe(const struct dispatch_library *library, int threads)
{
    struct cost_curves *p = curves_of_cpu(library, threads);
    if (!cost_with.learning || !p || atomic_load_explicit(&p->probed, memory_order_relaxed) ||
        atomic_exchange(&p->probed, true))
        return;
    const double gflops = probe_gflops(library, threads);
    if (!(gflops > 0))
        return;
    pthread_rwlock_wrlock(&curves_lock);
    curves_slow_down(p, p->rates.gflops[ACCEL_FLOAT64] / gflops);
    p->rates_known = true;
    pthread_rwlock_unlock(&curves_lock);
}

/* ---- ACCEL_LEARN=1: back to the file ---- */

/* Writes a value as the section has it, if it does. */
static void put_again(struct string_buffer *body, const struct cost_curves *p, const char *name)
{
    const double value = curves_value_or(p, name, 0);
    if (value > 0)
        calibration_put_value(body, name, value);
}

/* Writes the whole section, with the unchanged curves. */
static bool compose(struct string_buffer *body, struct cost_curves *p)
{
    *body = (struct string_buffer){NULL, 0, 0, false};
    if (p->measured)
        calibration_put_measured(body, &p->section);
    if (p->device) {
        /* Nominal figures would count as measured ones. */
        static const char *const values[] = {"up_gbps",    "down_gbps", "piece_kb", "place_gbps",
                                             "kernels_ms", "solver_ms", "start_ms"};
        for (size_t i = 0; i < sizeof values / sizeof *values; i++)
            put_again(body, p, values[i]);
        const double ratio = p->schedule_ratio * model_ratio(p->schedule, accel_routine_count);
        if (ratio != 1)
            calibration_put_value(body, calibration_schedule_ratio, ratio);
    }
    if (p->device && p->measured) {
        for (int i = GPU_NATIVE + 1; i < GPU_PRECISIONS; i++)
            if (curves_value_or(p, calibration_gain_names[i], 0) > 0)
                calibration_put_value(body, calibration_gain_names[i], p->gain[i]);
        for (int i = 0; i < 2 * ACCEL_DTYPES; i++) {
            const struct calibration_solve_names names =
                calibration_solve_names((enum accel_dtype)(i / 2), i % 2);
            put_again(body, p, names.gbps);
            put_again(body, p, names.row_ms);
            put_again(body, p, names.nrhs);
        }
    }
    for (uint32_t i = 0; i < accel_routine_count; i++) {
        if (atomic_load(&p->made[i]) == CURVE_NOT_MADE)
            curves_make(p, i);
        calibration_put_curve(body, &accel_routines[i], &p->curve[i]);
    }
    return !body->failed && body->length > 0;
}

/* Whether there is something to keep. With another ratio of threads, points come from another
 * section. */
static bool has_learned(const struct cost_curves *p)
{
    return p && p->learned && !(p->threads_ratio > 0 && p->threads_ratio != 1);
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
    enum { MOST = CURVES_CPU_MOST + COST_DEVICES };
    const char *keys[MOST], *bodies[MOST];
    const struct calibration_section *seen[MOST];
    struct string_buffer body[MOST];
    int count = 0;
    if (!cost_with.settings || !cost_with.settings->learn ||
        pthread_rwlock_trywrlock(&curves_lock) != 0)
        return;
    const char *const path = cost_with.settings->model;
    int cpus = 0;
    while (curves_of_cpu_at(cpus))
        cpus++;
    for (int i = 0; i < cpus + devices; i++) {
        struct cost_curves *p = i < cpus ? curves_of_cpu_at(i) : device[i - cpus];
        if (!has_learned(p) || is_among(p->key, keys, count))
            continue;
        if (!path) {
            accel_message("what was learned is not kept: no file to write: ACCEL_MODEL, "
                          "XDG_CACHE_HOME and HOME name none");
            break;
        }
        if (compose(&body[count], p)) {
            keys[count] = p->key;
            seen[count] = p->measured ? &p->section : NULL;
            bodies[count] = body[count].text;
            count++;
        } else {
            free(body[count].text);
        }
    }
    /* What `accel calibrate` has written meanwhile is newer than what was learned from. */
    const char *wrong = count > 0 ? calibration_put(path, keys, bodies, seen, count, false) : NULL;
    if (wrong)
        accel_message("what was learned is not kept in %s: %s%s%s%s", path, wrong,
                      errno ? " (" : "", errno ? error_text(errno) : "", errno ? ")" : "");
    for (int i = 0; i < count; i++)
        free(body[i].text);
    pthread_rwlock_unlock(&curves_lock);
}
