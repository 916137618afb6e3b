/*
 * gsl_linalg_QR_decomp(A, tau) of a matrix with at least as many rows as columns: R in the upper triangle of A, below it the vectors of
 * elementary reflectors I - tau v v', stored and signed as LAPACK's. (With fewer rows, versions differ in the length of tau.)
 */
#include "gsl.h"

static bool parse(struct accel_call *call, const struct accel_passed *passed)
{
    const struct gsl_matrix *a = (const struct gsl_matrix *)(uintptr_t)passed->gpr[0];
    const struct gsl_vector *tau = (const struct gsl_vector *)(uintptr_t)passed->gpr[1];
    return gsl_parse(call, a) && a->size1 >= a->size2 &&
           gsl_parse_vector(call, "tau", tau, a->size2);
}

static double flops(const struct accel_call *call)
{
    const double m = (double)call->own.integer[GSL_SIZES];
    const double n = (double)call->own.integer[GSL_SIZES + 1];
    return 2 * n * n * (m - n / 3);
}

static void factor(struct solver *s)
{
    gsl_factor(s, solver_geqrf);
}

static enum gpu_status run(struct gpu_work *work)
{
    return solver_run(work, factor, NULL);
}

const struct accel_op op_gsl_qr = {GSL_FUNCTION(0.15, 0.4), .parse = parse, .flops = flops,
                                   .run = run};
