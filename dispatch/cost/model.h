/*
 * The cost model: how long a call takes, from what calls of its routine took. Pure functions of their arguments;
 * a curve that is being changed must not be read meanwhile.
 *
 * A call's time is a sum of four terms, none negative:
 *     what each call costs, whatever its size        (the launch)
 *     each step of the order of its matrix           (panels, which wait for each other)
 *     each element of its operands                   (memory; the ramp at small and skinny shapes)
 *     each operation                                 (the rate)
 * times a correction, which is what the measured calls nearest to it (by the logarithms of its sizes) took over
 * that sum, on the geometric mean. So a curve passes through what was measured, and goes on beyond it by the rates.
 */
#ifndef ACCEL_MODEL_H
#define ACCEL_MODEL_H

#include "ops/call.h"

enum model_term { MODEL_CALL, MODEL_STEP, MODEL_ELEMENT, MODEL_OPERATION, MODEL_TERMS };

/* m n k nrhs and the products of a batch */
enum { MODEL_SIZES = ACCEL_DIMENSIONS + 1, MODEL_POINTS = 32 };

/* What a call asks of a machine. */
struct model_work {
    double term[MODEL_TERMS]; /* 1, steps, 10^6 elements, 10^9 real operations */
    float place[MODEL_SIZES]; /* logarithms (base 2) of the sizes, 0 where there is none */
    double up_bytes,
        down_bytes; /* of operands in host memory that a device would need, and give back */
};

/* A call that was measured. */
struct model_point {
    float place[MODEL_SIZES];
    float log2_ratio; /* of what it took to the sum of the terms */
    float runs;       /* that went into it */
};

/* One routine on one side. */
struct model_curve {
    double ms[MODEL_TERMS]; /* milliseconds for one of each */
    bool device;            /* of a GPU, which small calls do not fill */
    int points;
    struct model_point point[MODEL_POINTS];
};

void model_work_of(const struct accel_call *call, struct model_work *work);

/* Milliseconds; without the copies of operands. */
double model_ms(const struct model_curve *curve, const struct model_work *work);

/* Milliseconds of the copies, at so many 10^9 bytes a second up and down. */
double model_copies_ms(const struct model_work *work, double up_gbps, double down_gbps);

/* What a point stands for: the milliseconds of a call of these terms. */
double model_point_ms(const struct model_curve *curve, const struct model_point *point,
                      const struct model_work *work);

/* Makes a curve from measured calls (count >= 1, the times positive): the terms that fit them best by their relative
 * errors, and the calls as points, of which at most MODEL_POINTS are kept. Where they are too few to tell the terms, those
 * stay that the curve has (nominal ones; all 0: none). */
void model_fit(struct model_curve *curve, const struct model_work *works, const double *ms,
               int count);

/* One more call has been measured. What is faster than was thought is believed at once, what is slower by and by. */
void model_learn(struct model_curve *curve, const struct model_work *work, double ms);

/* ---- Where nothing was measured ---- */

/* Rates of the whole process or device, in 10^9 a second. */
struct model_rates {
    double gflops[ACCEL_DTYPES]; /* real operations of a large product */
    double gbps;                 /* bytes of its own memory */
};

/* Of a CPU library. LAPACK reaches a share of a product's rate, that is nominal. */
void model_nominal_cpu(struct model_curve *curve, const struct accel_routine *routine,
                       const struct model_rates *rates);

/* Of a GPU; launch_ms: the least that a call costs. */
void model_nominal_gpu(struct model_curve *curve, const struct accel_routine *routine,
                       const struct model_rates *rates, double launch_ms);

#endif
