#define _GNU_SOURCE
#include "cost.h"

#include "curves.h"
#include "gpu/scheduled.h"
#include "in_use.h"
#include "ops/lapack/in_panels.h"
#include "ops/op.h"
#include "ops/shape.h"

void cost_start(const struct accel_settings *settings, int cores, bool learning, bool quiet)
{
    cost_with = (struct cost_with){settings, cores, learning};
    in_use_start(settings, quiet);
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

/* Returns the calibrated milliseconds of a call's kernels, or nominal ones: not what was learned in their place, so that the same call has
 * the same schedule each time, and so the same result, bit for bit. With ACCEL_LEARN=1 a calibration itself changes.
 * *steps_ms: what of that the steps take; or NULL. */
static double settled_ms(struct cost_curves *device, uint32_t index, const struct model_work *work,
                         double *steps_ms)
{
    struct model_curve nominal;
    const struct model_curve *curve = curves_routine(device, index);
    if (atomic_load_explicit(&device->made[index], memory_order_relaxed) != CURVE_CALIBRATED) {
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

/* A triangle is solved by many small kernels, which take as long for 50 columns as for 800: an H200 takes 0.3 ms for 640 to 800 rows (cuBLAS 13.1).
 * All else of the call are products. */
#define SOLVED_ROW_MS 0.0004

static bool is_solved(const struct accel_call *call)
{
    struct scheduled scheduled;
    return scheduled_describe(call, &scheduled) && scheduled.call.kind == SCHEDULE_SOLVE;
}

struct schedule_rates cost_schedule_rates(struct cost_curves *device, const struct accel_call *call,
                                          double gain)
{
    struct cost_curves *const p = curves_of_device(device);
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
    if (is_solved(call)) {
        const double gflops = gain * cost_product_gflops(device, call->routine->dtype);
        rates.compute = gflops > rates.compute ? gflops : rates.compute;
        rates.column_ms = SOLVED_ROW_MS;
    }
    return rates;
}

struct banner_figures cost_figures_of(const struct cost_curves *device)
{
    return cost_is_measured(device)
               ? (struct banner_figures){cost_with.settings->model, in_use()->time}
               : (struct banner_figures){NULL, 0};
}

struct banner_figures cost_figures_of_cpu(const struct dispatch_library *library, int threads)
{
    return cost_figures_of(curves_of_cpu(library, threads));
}
