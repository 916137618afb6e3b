/*
 * gsl_linalg_SV_decomp(A, V, S, work), of no fewer rows than columns: A = U diag(S) V^T; U replaces
 * A, V is not transposed, S does not increase, work has no meaning afterwards.
 * gsl_linalg_SV_decomp_mod(A, X, V, S, work) does the same with more workspace, X.
 */
#include "cpu_ref/verify_test.h"
#include "gsl.h"
#include "ops/lapack/svd_algorithm.h"

static bool parse_from(struct accel_call *call, const struct gsl_matrix *a, const uint64_t *rest)
{
    const struct gsl_matrix *v = (const struct gsl_matrix *)(uintptr_t)rest[0];
    const struct gsl_vector *values = (const struct gsl_vector *)(uintptr_t)rest[1],
                            *work = (const struct gsl_vector *)(uintptr_t)rest[2];
    if (!gsl_parse(call, a) || a->size1 < a->size2 || !v || !v->data || v->size1 != a->size2 ||
        v->size2 != a->size2 || v->tda > INT32_MAX || !values || !values->data ||
        values->size != a->size2 || values->stride != 1 || !work || work->size != a->size2)
        return false;
    call->span[ACCEL_b] = gsl_span(call, "V", v, ACCEL_WRITE);
    call->span[ACCEL_x] =
        accel_column("S", values->data, (int64_t)values->size, ACCEL_FLOAT64, ACCEL_WRITE);
    return true;
}

static bool parse_sv(struct accel_call *call, const struct accel_passed *passed)
{
    return parse_from(call, (const struct gsl_matrix *)(uintptr_t)passed->gpr[0], &passed->gpr[1]);
}

static bool parse_mod(struct accel_call *call, const struct accel_passed *passed)
{
    const struct gsl_matrix *a = (const struct gsl_matrix *)(uintptr_t)passed->gpr[0],
                            *x = (const struct gsl_matrix *)(uintptr_t)passed->gpr[1];
    return a && x && x->size1 == a->size2 && x->size2 == a->size2 &&
           parse_from(call, a, &passed->gpr[2]);
}

static double flops_of_sv(const struct accel_call *call)
{
    const double m = (double)call->own.integer[GSL_SIZES],
                 n = (double)call->own.integer[GSL_SIZES + 1];
    return 14 * m * n * n + 8 * n * n * n;
}

/* V by rows is V^T by columns. */
static void decompose(struct solver *s)
{
    const struct accel_span *a = &s->call->span[ACCEL_a];
    const int64_t m = a->cols, n = a->rows;
    struct array by_rows = solver_upload(s, a, 0), x = solver_array(s, m, n),
                 values = solver_reals(s, n), u = solver_array(s, m, n), vt = solver_array(s, n, n);
    solver_refuse_extremes(s);
    solver_transpose(s, x, by_rows);
    svd_of(s, 'S', 'S', x, values, u, vt);
    solver_transpose(s, by_rows, u);
    solver_return(s, a, by_rows, 0);
    solver_return(s, &s->call->span[ACCEL_b], vt, 0);
    solver_return(s, &s->call->span[ACCEL_x], values, 0);
}

static enum gpu_status run_sv(struct gpu_work *work)
{
    return solver_run(work, decompose, NULL);
}

/* A V = U S, and orthonormal columns; by columns, A has U^T and V has V^T. */
static void check_sv(struct test *t)
{
    const struct view a = test_input(t, ACCEL_a), ut = test_result(t, ACCEL_a),
                      vt = test_result(t, ACCEL_b);
    const double size = view_norm(&a), *r = test_random_vector(t, a.rows);
    if (!test_takes(t, &a))
        return;
    double *y = test_times(t, &a, 'T', test_times(t, &vt, 'T', r));
    const double *us = test_times_values(t, &t->call->span[ACCEL_x], r, a.rows, 1);
    test_subtract(t, y, test_times(t, &ut, 'T', us), a.cols);
    test_judge(t, y, a.cols, size);
    test_judge_rows(t, &ut);
    test_judge_rows(t, &vt);
    singular_judge_order(t, a.rows, size);
}

const struct accel_op op_gsl_sv = GSL_FUNCTION(0.02, 0.05, parse_sv, flops_of_sv, run_sv, check_sv);
const struct accel_op op_gsl_sv_mod =
    GSL_FUNCTION(0.02, 0.05, parse_mod, flops_of_sv, run_sv, check_sv);
