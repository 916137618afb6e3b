/*
 * gsl_linalg_QR_decomp(A, tau) of a matrix with at least as many rows as columns: R in the upper
 * triangle of A, below it the vectors of elementary reflectors I - tau v v', stored and signed as
 * LAPACK's. (With fewer rows, versions differ in the length of tau.)
 */
#include "cpu_ref/verify_test.h"
#include "gsl.h"

static bool parse_qr(struct accel_call *call, const struct accel_passed *passed)
{
    const struct gsl_matrix *a = (const struct gsl_matrix *)(uintptr_t)passed->gpr[0];
    const struct gsl_vector *tau = (const struct gsl_vector *)(uintptr_t)passed->gpr[1];
    return gsl_parse(call, a) && a->size1 >= a->size2 &&
           gsl_parse_vector(call, "tau", tau, a->size2);
}

static double flops_of_qr(const struct accel_call *call)
{
    const double m = (double)call->own.integer[GSL_SIZES];
    const double n = (double)call->own.integer[GSL_SIZES + 1];
    return 2 * n * n * (m - n / 3);
}

static void factor_by_geqrf(struct solver *s)
{
    gsl_factor(s, solver_library(s)->geqrf);
}

static enum gpu_status run_qr(struct gpu_work *work)
{
    return solver_run(work, factor_by_geqrf, NULL);
}

/* A = Q R. By columns, R^T is in the lower triangle, and the reflectors are in the rows. */
static void check_qr(struct test *t)
{
    const struct view a = test_input(t, ACCEL_a), all = test_result(t, ACCEL_a),
                      square = view_part(&all, 0, all.rows, 0, all.rows),
                      r = view_shaped(square, TRIANGULAR, 'L');
    const struct reflectors q = {.stored = all, .count = all.rows, .by_rows = true};
    if (!test_takes(t, &a))
        return;
    const double *x = test_random_vector(t, a.rows);
    double *y = test_times(t, &a, 'T', x), *z = test_new_vector(t, a.cols);
    apply(&r, 'T', x, z);
    reflectors_apply(t, &q, 'N', z);
    test_subtract(t, y, z, a.cols);
    test_judge(t, y, a.cols, view_norm(&a));
}

const struct accel_op op_gsl_qr = GSL_FUNCTION(0.15, 0.4, parse_qr, flops_of_qr, run_qr, check_qr);
