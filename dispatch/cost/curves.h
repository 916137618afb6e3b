/*
 * The curves behind cost.h: one for each routine, on each CPU library with its threads and on each
 * device. Only files of dispatch/cost/ include this. Thread-safe except for the start; a curve that
 * may change is read under curves_lock.
 */
#ifndef ACCEL_CURVES_H
#define ACCEL_CURVES_H

#include <pthread.h>
#include <stdatomic.h>

#include "calibration.h"
#include "cost.h"
#include "model.h"
#include "slow_library.h"

/* Of a CPU library with a number of threads, or of a device. A curve is made at its first use. */
struct cost_curves {
    char key[CALIBRATION_KEY_BYTES];
    bool device;
    bool measured; /* the calibration has a section for it: */
    struct calibration_section section;
    double threads_ratio; /* the section's threads / threads */
    bool learned;
    atomic_bool probed;
    atomic_bool rates_known;  /* by a calibration or a probe, of products in double precision */
    struct slow_library slow; /* of a CPU library whose rates are nominal */
    struct model_rates rates; /* for curves that the calibration lacks */
    /* of a device: */
    double up_gbps, down_gbps;
    struct short_columns short_up, short_down;
    double place_gbps; /* 0: its kernels do not reach the host's memory */
    bool one_memory;
    double gain[GPU_PRECISIONS]; /* in operations a second over native precision */
    /* Of solutions by a triangle of each type, by cuBLAS and by our own kernel, 0: not measured;
     * and schedule_rates.own_nrhs. */
    struct schedule_solving solving[ACCEL_DTYPES][2];
    int64_t own_nrhs[ACCEL_DTYPES];
    struct block_paces paces[ACCEL_DTYPES];
    struct cost_first first;
    double schedule_ratio; /* by how much calls took longer than their schedules say, calibrated */
    /* of a CPU library: */
    const struct dispatch_library *library; /* NULL: cpu_beyond */
    int threads;
    /* by routine: */
    _Atomic unsigned char *made;  /* enum curve_made */
    struct model_curve *schedule; /* of a device: see model_work_of_time() */
    struct model_curve curve[];
};

/* Calibrated curves change only with ACCEL_LEARN=1. */
enum curve_made { CURVE_NOT_MADE, CURVE_NOMINAL, CURVE_CALIBRATED };

/* Held for writing while curves are made or changed; for reading by a borrower of curves that may
 * change. */
extern pthread_rwlock_t curves_lock;

/* Take curves_lock for reading, and give it back if this thread has it so. */
void curves_hold(void);
void curves_let_go(void);

/* What cost_start() was given; written by it alone, before any other thread is there. */
extern struct cost_with {
    const struct accel_settings *settings;
    int cores;
    bool learning;
} cost_with;

/* Returns new curves, which nothing frees, none of them made; NULL without memory. */
struct cost_curves *curves_new(struct model_rates rates);

/* Returns the curves of a CPU library with this number of threads; NULL without memory. At most
 * CURVES_CPU_MOST pairs have their own. */
enum { CURVES_CPU_MOST = 64 };
struct cost_curves *curves_of_cpu(const struct dispatch_library *library, int threads);

/* Returns one of these, by a number from 0; NULL: there are no more. */
struct cost_curves *curves_of_cpu_at(int number);

/* Divides the rates of a CPU library's operations, and makes its nominal curves anew; calls that
 * were measured keep their times. Under curves_lock. */
void curves_slow_down(struct cost_curves *p, double times);

/* Makes a routine's curve anew. Under curves_lock. */
void curves_make(struct cost_curves *p, uint32_t index);

/* Returns a routine's curve, made if it was not; an empty one if p is NULL. Takes curves_lock. */
const struct model_curve *curves_routine(struct cost_curves *p, uint32_t index);

/* Returns whether measured calls change a routine's curve, which has been made; p may be NULL. */
bool curves_learn(const struct cost_curves *p, uint32_t index);

/* Returns whether calls of a routine may have simulated times, which measured ones correct. */
bool curves_are_simulated(const struct accel_routine *routine);

/* Returns the device's curves, or if it is NULL a fast GPU's. These are not the calibration's,
 * which may be another machine's, and must not keep the device from being started. NULL without
 * memory. */
struct cost_curves *curves_of_device(struct cost_curves *device);

/* Returns the value of the section, or `otherwise` if it has none. */
double curves_value_or(const struct cost_curves *p, const char *name, double otherwise);

#endif
