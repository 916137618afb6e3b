/*
 * gsl_linalg_symmtd_decomp(A, tau), gsl_linalg_hermtd_decomp(A, tau): A = Q T Q' with a real tridiagonal T in the diagonal and the first
 * subdiagonal of A, below them the vectors of elementary reflectors I - tau v v', stored and signed as LAPACK's ?sytrd has them. The
 * functions read and change the lower triangle alone. gsl_eigen_symm, _symmv, _herm and _hermv call them (GSL, linalg/symmtd.c,
 * linalg/hermtd.c, eigen/).
 */
#include "gsl.h"

static bool parse(struct accel_call *call, const struct accel_passed *passed)
{
    const struct gsl_matrix *a = (const struct gsl_matrix *)(uintptr_t)passed->gpr[0];
    const struct gsl_vector *tau = (const struct gsl_vector *)(uintptr_t)passed->gpr[1];
    return gsl_parse(call, a) && a->size1 == a->size2 && a->size1 > 1 &&
           gsl_parse_vector(call, "tau", tau, a->size1 - 1);
}

static double flops(const struct accel_call *call)
{
    const double n = (double)call->own.integer[GSL_SIZES];
    return n * n * n * 4 / 3 * (accel_is_complex(call->routine->dtype) ? 4 : 1);
}

/* The lower triangle by rows is the upper one by columns. Of complex numbers its adjoint is the lower triangle of A's conjugate, and what
 * is made of that, adjoint again, is that of A by rows; tau stays conjugate. */
static void reduce(struct solver *s)
{
    const struct accel_span *a = &s->call->span[ACCEL_a], *x = &s->call->span[ACCEL_x];
    const int64_t n = a->rows;
    struct array by_rows = solver_upload_hermitian(s, a, 'U'), by_columns = solver_array(s, n, n),
                 tau = solver_vector(s, n, a->dtype), d = solver_reals(s, n),
                 e = solver_reals(s, n);
    solver_transpose(s, by_columns, by_rows);
    solver_sytrd(s, 'L', by_columns, d, e, tau);
    solver_transpose(s, by_rows, by_columns);
    solver_return(s, a, by_rows, 'U');
    solver_return(s, x, solver_part(tau, 0, 0, n - 1, 1), 0);
}

/* The last reflector has one element. If that is real, LAPACK leaves it (tau = 0), and GSL changes its sign (tau = 2):
 * gsl_linalg_complex_householder_transform(). */
static void reflect_last(const struct accel_span *a, double *tau)
{
    const int64_t last = a->rows - 1;
    double *element = (double *)a->ptr + 2 * (last * a->ld + last - 1);
    if (tau[0] != 0 || tau[1] != 0 || element[0] == 0)
        return;
    element[0] = -element[0];
    tau[0] = 2;
}

static enum gpu_status run(struct gpu_work *work)
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

const struct accel_op op_gsl_tridiagonal = {GSL_FUNCTION(0.02, 0.05), .parse = parse,
                                            .flops = flops, .run = run};
