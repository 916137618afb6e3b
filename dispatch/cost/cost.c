#define _GNU_SOURCE
#include "cost.h"

#include "curves.h"
#include "gpu/plan/scheduled.h"
#include "loaded_calibration.h"
#include "ops/lapack/in_panels.h"
#include "ops/op.h"
#include "call/shape.h"
#include "ops/typical.h"

void cost_start(const struct accel_settings *settings, int cores, bool learning, bool quiet)
{
    cost_with = (struct cost_with){settings, cores, learning};
    loaded_calibration_start(settings, quiet);
}

void cost_borrow(struct accel_machine *machine, struct cost_curves *device,
                 const struct accel_routine *routine, const struct dispatch_library *library,
                 int threads)
{
    uint32_t index = (uint32_t)(routine - accel_routines);
    struct cost_curves *cpu = curves_of_cpu(library, threads), *gpu = curves_of_device(device);
    machine->cpu_curve = curves_routine(cpu, index);
    machine->gpu_curve = curves_routine(gpu, index);
    if (gpu && curves_are_simulated(routine))
        machine->schedule_curve = &gpu->schedule[index];
    if (gpu) {
        machine->up_gbps = gpu->up_gbps;
        machine->down_gbps = gpu->down_gbps;
        machine->place_gbps = gpu->place_gbps;
        machine->one_memory = gpu->one_memory;
    }
    if (curves_learn(cpu, index) || curves_learn(gpu, index))
        curves_hold();
}

void cost_give_back(void)
{
    curves_let_go();
}

static bool is_calibrated(const struct cost_curves *device, uint32_t index)
{
    return atomic_load_explicit(&device->made[index], memory_order_relaxed) == CURVE_CALIBRATED;
}

/* Returns the calibrated milliseconds of a call's kernels, or nominal ones: not what was learned in
 * their place, so that the same call has the same schedule each time, and so the same result, bit
 * for bit. With ACCEL_LEARN=1 a calibration itself changes. *steps_ms: what of that the steps take;
 * or NULL. */
static double settled_ms(struct cost_curves *device, uint32_t index, const struct model_work *work,
                         double *steps_ms)
{
    struct model_curve nominal;
    const struct model_curve *curve = curves_routine(device, index);
    if (!is_calibrated(device, index)) {
        model_nominal_gpu(&nominal, &accel_routines[index], &device->rates);
        curve = &nominal;
    }
    pthread_rwlock_rdlock(&curves_lock);
    const double ms = model_ms(curve, work) - curve->ms[MODEL_CALL];
    const double steps = curve->ms[MODEL_STEP] * work->term[MODEL_STEP];
    const double all = steps + curve->ms[MODEL_ELEMENT] * work->term[MODEL_ELEMENT] +
                       curve->ms[MODEL_OPERATION] * work->term[MODEL_OPERATION];
    pthread_rwlock_unlock(&curves_lock);
    if (steps_ms)
        *steps_ms = all > 0 && ms > 0 ? ms * steps / all : 0;
    return ms;
}

/* The time of a smaller square says little of the rate of large kernels. */
#define TELLING_ORDER 768

/* Returns the problem whose time tells the rate of a call's kernels: of Level 3, one with the sizes
 * of the largest square that was measured in place of larger ones, made in *measured. Beyond it,
 * nothing tells operations from what else takes time: a curve may say there that they take none.
 * The kernels of a schedule are hardly larger. (A factorisation does become faster with its order,
 * up to the rate of products.) */
static struct problem *telling_problem(struct cost_curves *device, struct problem *problem,
                                       struct accel_call *measured, struct problem *of_measured)
{
    const struct accel_call *call = problem->call;
    const uint32_t index = (uint32_t)(call->routine - accel_routines);
    const struct model_curve *curve = curves_routine(device, index);
    const int64_t *sizes = accel_sizes(call);
    int64_t least[ACCEL_DIMENSIONS];
    unsigned has = 0;
    if (call->batch > 1 || !is_calibrated(device, index) || !problem->is_described)
        return problem;
    for (int i = 0; i < ACCEL_DIMENSIONS; i++)
        has |= accel_has_dimension(call->routine, i) ? 1u << i : 0;
    pthread_rwlock_rdlock(&curves_lock);
    const int64_t order = model_largest_square(curve, has);
    pthread_rwlock_unlock(&curves_lock);
    bool is_larger = false;
    for (int i = 0; i < ACCEL_DIMENSIONS; i++) {
        is_larger = is_larger || sizes[i] > order;
        least[i] = accel_min(sizes[i], order);
    }
    if (!is_larger || order < TELLING_ORDER)
        return problem;
    *measured = *call;
    shape_typical(measured, call->routine, least);
    problem_of(of_measured, measured);
    return of_measured;
}

double cost_product_gflops(struct cost_curves *device, enum accel_dtype dtype)
{
    const struct accel_routine *product = accel_sample_of(ACCEL_SAMPLE_PRODUCT, dtype);
    struct accel_call call, measured;
    struct problem large, of_measured;
    if (!device || !product)
        return 0;
    shape_of_order(&call, product, 8192);
    problem_of(&large, &call);
    struct problem *telling = telling_problem(device, &large, &measured, &of_measured);
    const struct model_work *work = problem_work(telling, true);
    const double ms = settled_ms(device, (uint32_t)(product - accel_routines), work, NULL);
    const double shortest = shape_steps(telling->call), half = schedule_nominal.half;
    return ms > 0 ? work->term[MODEL_OPERATION] * 1e3 / ms * (shortest + half) / shortest : 0;
}

/* Returns the rate (schedule_rates.compute) by which a call's kernels take so many milliseconds. */
static double compute_of(struct problem *problem, const struct schedule_rates *rates, double ms)
{
    const struct schedule_call *scheduled = &problem->scheduled.call;
    if (problem->is_described)
        return scheduled->k > 0 ? schedule_compute(scheduled, rates, ms) : 0;
    const double shortest = shape_steps(problem->call), half = rates->half;
    return problem_work(problem, true)->term[MODEL_OPERATION] * 1e3 / ms *
           (shortest > 0 ? (shortest + half) / shortest : 1);
}

/* Of a call that is divided into blocks, all but the blocks on a diagonal are products; and no
 * factorisation is faster than those. */
static void limit_by_products(struct schedule_rates *rates, const struct problem *problem,
                              struct cost_curves *device, double gain)
{
    if (problem->is_described && (problem->scheduled.call.kind == SCHEDULE_PRODUCT ||
                                  problem->scheduled.call.kind == SCHEDULE_BATCH))
        return;
    const double gflops = gain * cost_product_gflops(device, problem->call->routine->dtype);
    if (gflops > 0 && (problem->is_described ? rates->compute < gflops : rates->compute > gflops))
        rates->compute = gflops;
}

struct schedule_rates cost_schedule_rates(struct cost_curves *device, struct problem *problem,
                                          enum gpu_precision precision)
{
    const struct accel_call *call = problem->call;
    struct cost_curves *const p = curves_of_device(device);
    const double gain = cost_call_gain(device, call, precision);
    struct schedule_rates rates = schedule_nominal;
    struct accel_call measured;
    struct problem of_measured;
    if (!p)
        return rates;
    struct problem *telling = telling_problem(p, problem, &measured, &of_measured);
    double steps_ms;
    double ms = settled_ms(p, (uint32_t)(call->routine - accel_routines),
                           problem_work(telling, true), &steps_ms);
    if (steps_ms > 0 && problem->in_panels && lapack_factors(call)) {
        rates.column_ms = steps_ms / shape_steps(telling->call);
        ms -= steps_ms;
    }
    if (precision == GPU_NATIVE && accel_product_kind(call) != GPU_NO_PRODUCTS)
        rates.paces = p->paces[call->routine->dtype];
    const double compute = gain * compute_of(telling, &rates, ms > 1e-6 ? ms : 1e-6);
    rates.up = p->up_gbps;
    rates.down = p->down_gbps;
    rates.short_up = p->short_up;
    rates.short_down = p->short_down;
    if (compute > 0)
        rates.compute = compute;
    if (call->op->cost->sample == ACCEL_SAMPLE_SOLVE)
        schedule_set_solving(&rates, p->solving[call->routine->dtype],
                             precision == GPU_NATIVE ? p->own_nrhs[call->routine->dtype] : 0);
    limit_by_products(&rates, problem, device, gain);
    return rates;
}

struct banner_figures cost_figures_of(const struct cost_curves *device)
{
    return cost_is_measured(device)
               ? (struct banner_figures){cost_with.settings->model, loaded_calibration()->time}
               : (struct banner_figures){NULL, 0};
}

struct banner_figures cost_figures_of_cpu(const struct dispatch_library *library, int threads)
{
    return cost_figures_of(curves_of_cpu(library, threads));
}
