/*
 * The cost model: estimates a call's time from the times of measured calls of its routine. Pure
 * functions of their arguments; a curve that is being changed must not be read meanwhile.
 *
 * The estimate is a sum of four terms, none negative, for
 *     the call, whatever its size                    (the launch)
 *     each step of the order of its matrix           (panels, which wait for each other)
 *     each element of its operands                   (memory; the ramp at small and skinny shapes)
 *     each operation                                 (the rate)
 * times a correction: the geometric mean of (measured time / sum) over the measured calls; the
 * nearest by the logarithms of the sizes weigh most. So a curve passes through the measured calls,
 * and goes on beyond them by the rates.
 */
#ifndef ACCEL_MODEL_H
#define ACCEL_MODEL_H

#include "cpu_kernels.h"
#include "call/call.h"

enum model_term { MODEL_CALL, MODEL_STEP, MODEL_ELEMENT, MODEL_OPERATION, MODEL_TERMS };

/* m n k nrhs and the products of a batch */
enum { MODEL_SIZES = ACCEL_DIMENSIONS + 1, MODEL_POINTS = 32 };

/* The work of a call. */
struct model_work {
    double term[MODEL_TERMS];    /* 1, steps, 10^6 elements, 10^9 real operations */
    float place[MODEL_SIZES];    /* logarithms (base 2) of the sizes, 0 where there is none */
    double up_bytes, down_bytes; /* operands in host memory: a device reads and writes them */
};

/* A call that was measured. */
struct model_point {
    float place[MODEL_SIZES];
    float largest;    /* of place[], without the number of products */
    float log2_ratio; /* of its time to the sum of the terms */
    float last;       /* the same of its last run */
    float operations; /* the share of the operations in that sum */
    float runs;       /* calls that it is the mean of */
};

/* One routine on one CPU library or device. */
struct model_curve {
    double ms[MODEL_TERMS]; /* milliseconds for one unit of each term */
    bool device;            /* of a GPU, which small calls do not fill */
    int points;
    struct model_point point[MODEL_POINTS];
};

/* device: on a device, else on the CPU; the same for BLAS and LAPACK. */
void model_work_of(const struct accel_call *call, bool device, struct model_work *work);

/* Returns milliseconds, without the copies of operands. */
double model_ms(const struct model_curve *curve, const struct model_work *work);

/* Returns the work of a call whose time is known in another way, such as by simulation: for a curve
 * with ms[MODEL_CALL] = 1, which corrects these times by those of measured calls. */
struct model_work model_work_of_time(const struct model_work *work, double ms);

/* Returns milliseconds for the copies, at these 10^9 bytes a second up and down. */
double model_copies_ms(const struct model_work *work, double up_gbps, double down_gbps);

/* Returns the time of a measured call in milliseconds; `work` is its work. */
double model_point_ms(const struct model_curve *curve, const struct model_point *point,
                      const struct model_work *work);

/* Fits a curve to measured calls (count >= 1, the times positive): the terms with the least
 * relative errors, and the calls as points; the last MODEL_POINTS are kept. If the calls are too
 * few to tell the terms, the curve's own stay (nominal ones; all 0: none). */
void model_fit(struct model_curve *curve, const struct model_work *works, const double *ms,
               int count);

/* Returns the geometric mean of measured times over the sums of the terms, of all measured calls of
 * these curves; 1: there are none. */
double model_ratio(const struct model_curve *curves, uint32_t count);

/* Returns the order of the largest measured call whose sizes are about equal; 0: there is none.
 * sizes: bits 1 << enum accel_size of those that the routine has. */
int64_t model_largest_square(const struct model_curve *curve, unsigned sizes);

/* Takes the rates of a curve of another routine, whose elements and steps take as long. */
void model_take_rates(struct model_curve *curve, const struct model_curve *from);

/* Returns the sum of the terms, without the correction by measured calls; *operations: the share of
 * the operations in it. */
double model_terms_ms(const struct model_curve *curve, const struct model_work *work,
                      double *operations);

/* Makes operations take so many times as long where nothing was measured: measured calls keep their
 * times, and one whose first run took too long to be believed is believed as far. */
void model_slow_operations(struct model_curve *curve, double times);

/* Adds a measured call. A time below the estimate is believed at once, one above it step by
 * step. */
void model_learn(struct model_curve *curve, const struct model_work *work, double ms);

/* ---- Where nothing was measured ---- */

/* Rates of the whole process or device, in 10^9 a second. */
struct model_rates {
    double gflops[ACCEL_DTYPES]; /* real operations of a large product */
    double gbps;                 /* bytes of its own memory */
};

/* A call on the GPU costs at least this many milliseconds, nominally: three copies, a kernel and a
 * wait. */
#define MODEL_LAUNCH_MS 0.06
/* One thread stages from pageable memory at this many 10^9 bytes a second, nominally. */
#define MODEL_COPY_GBPS 10.0

/* Large products reach this share of a GPU's peaks, nominally. */
#define MODEL_REACH 0.7

/* Returns the nominal rates of a CPU for this many threads: 25 Gflop/s each in double precision, 50
 * in single (a core of about 3 GHz with 256-bit vectors at half its peak), 10 GB/s each up to
 * 200. */
struct model_rates model_cpu_rates(int threads);

/* Returns the same for a library with such kernels (docs/internals-cpu-library.md). */
struct model_rates model_kernels_rates(enum cpu_kernels kernels, int threads);

/* Return the rates of a GPU: from its peaks, 10^9 operations a second, [0] in single, [1] in double
 * precision; large products reach MODEL_REACH of them. And those of a fast GPU, for one whose peaks
 * are not known. */
struct model_rates model_rates_of_peaks(const double peak_gflops[2], double memory_gbps);
struct model_rates model_gpu_rates(void);

/* Makes the nominal curve of a CPU library. LAPACK reaches a nominal share of a product's rate. */
void model_nominal_cpu(struct model_curve *curve, const struct accel_routine *routine,
                       const struct model_rates *rates);

/* Makes the nominal curve of a GPU. */
void model_nominal_gpu(struct model_curve *curve, const struct accel_routine *routine,
                       const struct model_rates *rates);

#endif
