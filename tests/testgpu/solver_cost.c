/*
 * What the routines cost: multiplications and additions of the type's numbers. The sources are
 * LAPACK Working Note 41, "Installation Guide for LAPACK", and for the iterations Golub and Van
 * Loan, Matrix Computations.
 */
#include "solver_cost.h"

static double cube(int64_t n)
{
    return (double)n * (double)n * (double)n;
}

static double with_vectors(const struct solver_call *x, double without, double more)
{
    return x->jobz == CUSOLVER_EIG_MODE_VECTOR ? without + more : without;
}

double operations_of_cholesky(const struct solver_call *x)
{
    return cube(x->n) / 3;
}

double operations_of_potri(const struct solver_call *x)
{
    return 2 * cube(x->n) / 3;
}

double operations_of_right_sides(const struct solver_call *x)
{
    return 2 * (double)x->n * (double)x->n * (double)x->k;
}

double operations_of_getrf(const struct solver_call *x)
{
    double m = (double)x->m, n = (double)x->n, least = (double)smaller(x->m, x->n);
    return 2 * least * (m * n - (m + n) * least / 2 + least * least / 3);
}

double operations_of_geqrf(const struct solver_call *x)
{
    double least = (double)smaller(x->m, x->n), most = (double)larger(x->m, x->n);
    return 2 * least * least * (most - least / 3);
}

double operations_of_orgqr(const struct solver_call *x)
{
    double m = (double)x->m, n = (double)x->n, k = (double)x->k;
    return 4 * k * (m * n - (m + n) * k / 2 + k * k / 3);
}

double operations_of_ormqr(const struct solver_call *x)
{
    bool left = x->side == CUBLAS_SIDE_LEFT;
    double order = (double)(left ? x->m : x->n), other = (double)(left ? x->n : x->m);
    double k = (double)x->k;
    return 2 * other * k * (2 * order - k);
}

double operations_of_sytrd(const struct solver_call *x)
{
    return 4 * cube(x->n) / 3;
}

double operations_of_syevd(const struct solver_call *x)
{
    return with_vectors(x, 4, 8) * cube(x->n) / 3;
}

double operations_of_sygvd(const struct solver_call *x)
{
    return with_vectors(x, 11, 8) * cube(x->n) / 3;
}

double operations_of_gesvd(const struct solver_call *x)
{
    double m = (double)x->m, n = (double)x->n;
    bool vectors = x->jobu != 'N' || x->jobvt != 'N';
    return n * n * (4 * m - 4 * n / 3 + (vectors ? 10 * m + 8 * n : 0));
}

/* Some six steps of a QR decomposition and products each, then syevd of the factor. */
double operations_of_gesvdp(const struct solver_call *x)
{
    double m = (double)x->m, n = (double)x->n;
    return 6 * 4 * m * n * n + operations_of_syevd(x) + 2 * m * n * n;
}

/* Some eight sweeps over all pairs of columns. */
double operations_of_gesvdj(const struct solver_call *x)
{
    double m = (double)x->m, n = (double)x->n;
    return 8 * with_vectors(x, 3, 1) * m * n * n;
}

double operations_of_geev(const struct solver_call *x)
{
    return with_vectors(x, 10, 15) * cube(x->n);
}

/* A reduction to a condensed form is a chain of kernels, two a column at least; the QR steps of a
 * matrix without symmetry are more of them. A factorisation waits for each panel of some 32
 * columns. */
static double launches_of(const struct solver_call *x, int64_t columns)
{
    double (*operations)(const struct solver_call *) = x->routine->operations;
    if (operations == NULL || operations == operations_of_right_sides)
        return 1;
    if (operations == operations_of_geev)
        return 4 * (double)columns;
    if (operations == operations_of_sytrd || operations == operations_of_syevd ||
        operations == operations_of_sygvd || operations == operations_of_gesvd)
        return 2 * (double)columns;
    /* A matrix that fits a multiprocessor's own memory is one kernel; the sweeps of another are one
     * for each two blocks. */
    if (operations == operations_of_gesvdj)
        return columns <= 32 ? 1 : 8 * (double)(columns / 32) * (double)(columns / 32);
    return 1 + (double)(columns / 32);
}

struct testgpu_cost cost_of(const struct solver_call *x)
{
    struct testgpu_cost cost = {.dimension = smallest_size(x->m, x->n, x->k),
                                .single = is_single(x->precision)};
    cost.launches = launches_of(x, cost.dimension);
    for (int i = 0; i < OPERANDS; i++)
        cost.bytes += matrix_elements_bytes(&x->at[i]);
    if (x->routine->operations != NULL)
        cost.operations = x->routine->operations(x) * real_operations(x->precision);
    return cost;
}
