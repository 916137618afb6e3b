/* Small matrices on the host, for residuals that need no LAPACK. */
#include <math.h>
#include <string.h>
#include "test_solver.h"

const double complex gap = 77;

void make(enum type type, enum shape shape, int m, int n, double complex *x)
{
    for (int i = 0; i < AREA; i++)
        x[i] = gap;
    for (int j = 0; j < n; j++)
        for (int i = 0; i < m; i++) {
            double complex new = value(type);
            double complex old = i < j ? x[i * LD + j] : 0;
            if (shape != GENERAL && shape != DIAGONALLY_LARGE && i < j)
                new = shape == SYMMETRIC ? old : conj(old);
            if (i == j && (shape == HERMITIAN || shape == DEFINITE))
                new = creal(new);
            if (i == j && (shape == DEFINITE || shape == DIAGONALLY_LARGE))
                new += n;
            x[j * LD + i] = new;
        }
    if (shape == GENERAL || shape == DIAGONALLY_LARGE)
        return;
    for (int j = 0; j < n; j++)
        for (int i = 0; i < j; i++)
            x[j * LD + i] = shape == SYMMETRIC ? x[i * LD + j] : conj(x[i * LD + j]);
}

static double complex element(const double complex *x, cublasOperation_t op, int i, int j)
{
    double complex found = op == CUBLAS_OP_N ? x[j * LD + i] : x[i * LD + j];
    return op == CUBLAS_OP_C ? conj(found) : found;
}

void multiply(int m, int n, int k, cublasOperation_t ta, const double complex *a,
              cublasOperation_t tb, const double complex *b, double complex *c)
{
    for (int j = 0; j < n; j++)
        for (int i = 0; i < m; i++) {
            double complex sum = 0;
            for (int l = 0; l < k; l++)
                sum += element(a, ta, i, l) * element(b, tb, l, j);
            c[j * LD + i] = sum;
        }
}

void unit(int n, double complex *x)
{
    for (int j = 0; j < n; j++)
        for (int i = 0; i < n; i++)
            x[j * LD + i] = i == j;
}

void triangle(cublasFillMode_t uplo, cublasDiagType_t diag, int m, int n, const double complex *x,
              double complex *to)
{
    for (int j = 0; j < n; j++)
        for (int i = 0; i < m; i++) {
            bool inside = uplo == CUBLAS_FILL_MODE_LOWER ? i >= j : i <= j;
            to[j * LD + i] = i == j && diag == CUBLAS_DIAG_UNIT ? 1 : inside ? x[j * LD + i] : 0;
        }
}

void mirror(cublasFillMode_t uplo, bool hermitian, int n, double complex *x)
{
    for (int j = 0; j < n; j++)
        for (int i = 0; i < j; i++) {
            double complex *upper = &x[j * LD + i], *lower = &x[i * LD + j];
            double complex kept = uplo == CUBLAS_FILL_MODE_LOWER ? *lower : *upper;
            double complex other = hermitian ? conj(kept) : kept;
            *upper = uplo == CUBLAS_FILL_MODE_LOWER ? other : kept;
            *lower = uplo == CUBLAS_FILL_MODE_LOWER ? kept : other;
        }
}

bool close_to(enum type type, int m, int n, const double complex *x, const double complex *y)
{
    double bound = 2000 * rounding(type);
    for (int j = 0; j < n; j++)
        for (int i = 0; i < m; i++) {
            double complex want = y[j * LD + i];
            if (!(cabs(x[j * LD + i] - want) <= bound * (1 + cabs(want)))) {
                fprintf(stderr, "type %d, %d by %d: at %d, %d: %g%+gi, not %g%+gi\n", (int)type, m,
                        n, i, j, creal(x[j * LD + i]), cimag(x[j * LD + i]), creal(want),
                        cimag(want));
                return false;
            }
        }
    return true;
}

bool gap_is_whole(int m, int n, const double complex *x)
{
    for (int j = 0; j < LD; j++)
        for (int i = 0; i < LD; i++)
            if ((i >= m || j >= n) && x[j * LD + i] != gap)
                return false;
    return true;
}

bool other_is_gone(cublasFillMode_t uplo, int n, const double complex *x)
{
    for (int j = 0; j < n; j++)
        for (int i = 0; i < n; i++) {
            bool other = uplo == CUBLAS_FILL_MODE_LOWER ? i < j : i > j;
            if (isnan(creal(x[j * LD + i])) != other)
                return false;
        }
    return true;
}

bool all_is_gone(int m, int from, int n, const double complex *x)
{
    for (int j = from; j < n; j++)
        for (int i = 0; i < m; i++)
            if (!isnan(creal(x[j * LD + i])))
                return false;
    return true;
}
