/*
 * The cost model's curves: one for each routine, of each CPU library with its threads and of each device. From the
 * calibration where it has them; else by nominal rates, a probe of the CPU library, and what was learned since.
 * Thread-safe except for the start.
 */
#ifndef ACCEL_COST_H
#define ACCEL_COST_H

#include "dispatch/decide.h"
#include "dispatch/dispatch.h"
#include "gpu/gpu.h"

/* Once, before anything else; reads no file yet. learning: curves that no calibration has are refined by what is
 * measured; with settings->learn all are. The settings stay. */
void cost_start(const struct accel_settings *settings, int cores, bool learning, bool quiet);

/* Says that the calibration that the user has named is not there. Once. */
void cost_complain(void);

/* A device's curves, with its rates of copies and the times of first calls. They stay. NULL, here and below: those of a fast GPU. A
 * device that is not known is thought to be one: it is started to see. */
struct cost_curves;

/* Of a device that has been started, whose matrices get the algorithms of the calibration. NULL without memory. */
struct cost_curves *cost_curves_of(struct gpu_device *gpu);

/* Of one that is only known by name, for what it would do. NULL where there is neither a calibration of
 * such a GPU nor anything known of it. *memory_bytes: what it has, 0: not known. */
struct cost_curves *cost_curves_named(const char *name, int64_t *memory_bytes);

/* Sets the machine's curves and rates for a routine, called by way of this library with so many threads. They
 * stay as they are until cost_give_back(): whoever has them must do that soon, without a call of the program's. */
void cost_borrow(struct accel_machine *machine, struct cost_curves *device,
                 const struct accel_routine *routine, const struct dispatch_library *library,
                 int threads);
void cost_give_back(void);

/* Milliseconds that first calls take on the device beyond the calls themselves: a routine's, which loads its kernels, and
 * LAPACK's, which opens cuSOLVER besides. */
struct cost_first {
    double kernels_ms, solver_ms;
};
struct cost_first cost_first_calls(const struct cost_curves *device);

/* A call has been measured: alone on the CPU library's threads; on the device, with its copies. */
void cost_learn_cpu(const struct accel_call *call, const struct dispatch_library *library,
                    int threads, double ms);
void cost_learn_gpu(struct cost_curves *device, const struct accel_call *call, double ms);

/* Times products by the library, for some milliseconds, where no calibration knows it; once for each library and number of
 * threads. On a thread of the program, in a call of that library: it then is neither unloaded nor ended meanwhile, as it could be
 * under another thread; and forks are not safe while it computes. */
void cost_probe(const struct dispatch_library *library, int threads);

/* ACCEL_LEARN=1: writes what was learned to the calibration's file; from a destructor. */
void cost_end(struct cost_curves *device);

#endif
