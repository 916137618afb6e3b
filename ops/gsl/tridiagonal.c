/*
 * gsl_linalg_symmtd_decomp(A, tau), gsl_linalg_hermtd_decomp(A, tau): A = Q T Q' with a real
 * tridiagonal T in the diagonal and the first subdiagonal of A, below them the vectors of
 * elementary reflectors I - tau v v', stored and signed as LAPACK's ?sytrd has them. The functions
 * read and change the lower triangle alone. gsl_eigen_symm, _symmv, _herm and _hermv call them
 * (GSL, linalg/symmtd.c, linalg/hermtd.c, eigen/).
 */
#include "cpu_ref/verify_test.h"
#include "gsl.h"

static bool parse_tridiagonal(struct accel_call *call, const struct accel_passed *passed)
{
    const struct gsl_matrix *a = (const struct gsl_matrix *)(uintptr_t)passed->gpr[0];
    const struct gsl_vector *tau = (const struct gsl_vector *)(uintptr_t)passed->gpr[1];
    return gsl_parse(call, a) && a->size1 == a->size2 && a->size1 > 1 &&
           gsl_parse_vector(call, "tau", tau, a->size1 - 1);
}

static double flops_of_tridiagonal(const struct accel_call *call)
{
    const double n = (double)call->own.integer[GSL_SIZES];
    return n * n * n * 4 / 3 * (accel_is_complex(call->routine->dtype) ? 4 : 1);
}

/* The lower triangle by rows is the upper one by columns. Of complex numbers its adjoint is the
 * lower triangle of A's conjugate, and what is made of that, adjoint again, is that of A by rows;
 * tau stays conjugate. */
static void reduce(struct solver *s)
{
    const struct accel_span *a = &s->call->span[ACCEL_a], *x = &s->call->span[ACCEL_x];
    const int64_t n = a->rows;
    struct array by_rows = solver_upload_hermitian(s, a, 'U'), by_columns = solver_array(s, n, n),
                 tau = solver_vector(s, n, a->dtype), d = solver_reals(s, n),
                 e = solver_reals(s, n);
    solver_transpose(s, by_columns, by_rows);
    solver_library(s)->sytrd(s, 'L', by_columns, d, e, tau);
    solver_transpose(s, by_rows, by_columns);
    solver_return(s, a, by_rows, 'U');
    solver_return(s, x, solver_part(tau, 0, 0, n - 1, 1), 0);
}

/* The last reflector has one element. If that is real, LAPACK leaves it (tau = 0), and GSL changes
 * its sign (tau = 2): gsl_linalg_complex_householder_transform(). */
static void reflect_last(const struct accel_span *a, double *tau)
{
    const int64_t last = a->rows - 1;
    double *element = (double *)a->ptr + 2 * (last * a->ld + last - 1);
    if (tau[0] != 0 || tau[1] != 0 || element[0] == 0)
        return;
    element[0] = -element[0];
    tau[0] = 2;
}

static enum gpu_status run_tridiagonal(struct gpu_work *work)
{
    const struct accel_span *a = &work->call->span[ACCEL_a], *x = &work->call->span[ACCEL_x];
    const enum gpu_status status = solver_run(work, reduce, NULL);
    double *tau = x->ptr;
    if (status != GPU_OK || !accel_is_complex(a->dtype))
        return status;
    for (int64_t i = 0; i < x->rows; i++)
        tau[2 * i + 1] = -tau[2 * i + 1];
    reflect_last(a, &tau[2 * (x->rows - 1)]);
    return GPU_OK;
}

/* Element (row, col) of the call's matrix by columns; of complex ones the real part. */
static double real_of(const struct view *x, int64_t row, int64_t col)
{
    return ((const double *)x->ptr)[(row + col * x->ld) * parts_of(x->dtype)];
}

/* Returns T x. */
static double *times_tridiagonal(struct test *t, const struct view *all, const double *x)
{
    const int64_t n = all->rows, parts = t->parts;
    double *y = test_new_vector(t, n);
    for (int64_t i = 0; i < n; i++)
        for (int64_t part = 0; part < parts; part++)
            y[i * parts + part] = real_of(all, i, i) * x[i * parts + part];
    for (int64_t i = 0; i + 1 < n; i++)
        for (int64_t part = 0; part < parts; part++) {
            const double e = real_of(all, i, i + 1);
            y[i * parts + part] += e * x[(i + 1) * parts + part];
            y[(i + 1) * parts + part] += e * x[i * parts + part];
        }
    return y;
}

/* A = Q T Q'. The lower triangle by rows is the upper one of A' by columns; the reflectors are in
 * its rows. */
static void check_tridiagonal(struct test *t)
{
    const struct view all = test_result(t, ACCEL_a),
                      a = view_shaped(test_input(t, ACCEL_a), t->parts == 2 ? HERMITIAN : SYMMETRIC,
                                      'U');
    const struct reflectors q = {.stored = all, .count = all.rows - 1, .shift = 1, .by_rows = true};
    if (!test_takes(t, &a))
        return;
    double *x = test_random_vector(t, a.rows), *y = test_times(t, &a, 'T', x);
    reflectors_apply(t, &q, 'C', x);
    double *z = times_tridiagonal(t, &all, x);
    reflectors_apply(t, &q, 'N', z);
    test_subtract(t, y, z, a.rows);
    test_judge(t, y, a.rows, view_norm(&a));
}

const struct accel_op op_gsl_tridiagonal = GSL_FUNCTION(
    0.02, 0.05, parse_tridiagonal, flops_of_tridiagonal, run_tridiagonal, check_tridiagonal);
