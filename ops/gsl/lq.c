/*
 * gsl_linalg_LQ_decomp(A, tau) of a matrix with at most as many rows as columns: A = L Q with L in
 * the lower triangle of A, right of it the vectors of elementary reflectors I - tau v v', stored
 * and signed as LAPACK's. By columns that is geqrf of the transpose.
 */
#include "cpu_ref/verify_test.h"
#include "gsl.h"

static bool parse_lq(struct accel_call *call, const struct accel_passed *passed)
{
    const struct gsl_matrix *a = (const struct gsl_matrix *)(uintptr_t)passed->gpr[0];
    const struct gsl_vector *tau = (const struct gsl_vector *)(uintptr_t)passed->gpr[1];
    return gsl_parse(call, a) && a->size1 <= a->size2 &&
           gsl_parse_vector(call, "tau", tau, a->size1);
}

static double flops_of_lq(const struct accel_call *call)
{
    const double m = (double)call->own.integer[GSL_SIZES];
    const double n = (double)call->own.integer[GSL_SIZES + 1];
    return 2 * m * m * (n - m / 3);
}

static void factor_transposed(struct solver *s)
{
    const struct accel_span *a = &s->call->span[ACCEL_a], *x = &s->call->span[ACCEL_x];
    struct array transposed = solver_upload(s, a, 0), tau = solver_vector(s, x->rows, x->dtype);
    solver_library(s)->geqrf(s, transposed, tau);
    solver_return(s, a, transposed, 0);
    solver_return(s, x, tau, 0);
}

static enum gpu_status run_lq(struct gpu_work *work)
{
    return solver_run(work, factor_transposed, NULL);
}

static void check_lq(struct test *t)
{
    const struct view a = test_input(t, ACCEL_a);
    if (test_takes(t, &a))
        check_geqrf(t);
}

const struct accel_op op_gsl_lq = GSL_FUNCTION(0.03, 0.4, parse_lq, flops_of_lq, run_lq, check_lq);
