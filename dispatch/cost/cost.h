/*
 * The cost model's curves: one for each routine, on each CPU library with its threads and on each
 * device. A curve is the calibration's, or else made of nominal rates, a probe of the CPU library,
 * and the calls measured since. Thread-safe except for the start.
 *
 * curves.h has them, loaded_calibration.h the calibration, device_curves.c what is known of a
 * device, learning.c what measured calls change.
 *
 * dispatch/cost/ estimates times: model, calibration, learning, how busy the machine is. It
 * includes what dispatch/ includes.
 */
#ifndef ACCEL_COST_H
#define ACCEL_COST_H

#include "cpu_library.h"
#include "dispatch/settings/settings.h"
#include "gpu/device/gpu.h"
#include "machine.h"
#include "problem.h"
#include "report/banner.h"

/* Call it once, before anything else; it reads no file yet. learning: measured calls refine the
 * curves that no calibration has, and with settings->learn all curves. quiet: says nothing about
 * the calibration. The settings stay. */
void cost_start(const struct accel_settings *settings, int cores, bool learning, bool quiet);

/* Says, once, that the calibration that the user has named is not there. */
void cost_complain(void);

/* The curves of a device, its rates of copies and the costs of first calls. They stay. NULL, as an
 * argument below: those of a fast GPU, for a device that has not been started: calls that would
 * gain on a fast GPU start it. */
struct cost_curves;

/* Returns the curves of a device that has been started, and chooses its svd algorithms and the
 * chunks of its copies by the calibration. NULL without memory. */
struct cost_curves *cost_curves_of(struct gpu_device *gpu);

/* Return where a device's figures come from, and those of a CPU library with this number of
 * threads. */
struct banner_figures cost_figures_of(const struct cost_curves *device);
struct banner_figures cost_figures_of_cpu(const struct dispatch_library *library, int threads);

/* Whether a calibration has the device. */
bool cost_is_measured(const struct cost_curves *device);

/* Returns the curves of a GPU known by its name alone, for accel estimate; and its memory, 0: not
 * known. NULL if it is neither in the calibration nor in the list of known GPUs. */
struct cost_curves *cost_curves_named(const char *name, int64_t *memory_bytes);

/* Sets the machine's curves and rates for a routine, in this library with this number of threads.
 * The curves do not change before cost_give_back(), which the same thread calls soon, and before
 * any code of the program runs. */
void cost_borrow(struct accel_machine *machine, struct cost_curves *device,
                 const struct accel_routine *routine, const struct dispatch_library *library,
                 int threads);
void cost_give_back(void);

/* Returns by how much the device's operations are faster in this precision than in native, greater
 * than 0: as calibrated; or else at least 1, by its attributes, or by the list of known GPUs. */
double cost_precision_gain(const struct cost_curves *device, enum gpu_precision precision);

/* The same of a call's operations. The gain is gemm's: a triangle's solution, for one, has steps
 * that no precision makes faster. */
double cost_call_gain(const struct cost_curves *device, const struct accel_call *call,
                      enum gpu_precision precision);

/* Returns 10^9 operations a second of large products of a type on the device, in native precision:
 * as calibrated, or nominal; 0: not known. */
double cost_product_gflops(struct cost_curves *device, enum accel_dtype dtype);

/* Milliseconds that first calls on the device take longer than later ones: kernels_ms the first of
 * a routine, which loads its kernels; solver_ms, in addition, the first of LAPACK, which opens
 * cuSOLVER; start_ms: CUDA's start, from nothing. */
struct cost_first {
    double kernels_ms, solver_ms, start_ms;
};
struct cost_first cost_first_calls(const struct cost_curves *device);

/* Returns the device's rates for the schedule of a call of Level 3, or of LAPACK in panels. Takes
 * the lock of cost_borrow(), so call it before. */
struct schedule_rates cost_schedule_rates(struct cost_curves *device, struct problem *problem,
                                          enum gpu_precision precision);

/* How long a call took on the CPU; and what of that the calling thread computed for certain, less
 * if others took its CPU (base/thread/spent.h). */
struct cost_time {
    double ms, sure_ms;
};

/* Learn from a call that took this long: on the CPU library, while no other call computed, unless
 * the library has one thread; on the device, with its copies. memory_bytes: the device's, as the
 * decision knows it. Of a call that a schedule divides, the time does not tell the kernels from the
 * copies, so it corrects the schedule's time as a whole, and not the routine's curve. */
void cost_learn_cpu(struct problem *problem, const struct dispatch_library *library, int threads,
                    const struct cost_time *took);
void cost_learn_gpu(struct cost_curves *device, struct problem *problem, int64_t memory_bytes,
                    double ms);

/* Times products by the library (probe.h) if no calibration has it, once for each library and
 * number of threads. Call it on the program's thread, in a call of that library: so the library is
 * not unloaded meanwhile, and no fork can happen while it computes. */
void cost_probe(const struct dispatch_library *library, int threads);

/* ACCEL_LEARN=1: writes the learned curves, of the CPU and of these devices, to the calibration's
 * file. Of devices of one name the first that has learned is written. count: at most COST_DEVICES.
 * Called from a destructor. */
enum { COST_DEVICES = 16 };
void cost_end(struct cost_curves *const *device, int count);

#endif
