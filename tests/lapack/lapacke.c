/*
 * LAPACK through its C interface, as a library has it under `prefix` LAPACKE_dgesv `suffix`: what it returns, in both
 * layouts, and that the results are right. Arguments: library, prefix, suffix. -DTEST_ILP64: 64-bit integers.
 */
#include <complex.h>
#include <dlfcn.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef TEST_ILP64
typedef int64_t lapack_int;
#else
typedef int32_t lapack_int;
#endif
typedef double complex zcomplex;

enum { ROW_MAJOR = 101, COL_MAJOR = 102, N = 24, LD = N + 3, NRHS = 5 };

static void *library;
static const char *prefix, *suffix;
static int wrong;

/* The function LAPACKE_`name`. */
static void *find(const char *name)
{
    char symbol[80];
    snprintf(symbol, sizeof symbol, "%s%s%s", prefix, name, suffix);
    void *function = dlsym(library, symbol);
    if (!function) {
        printf("%s has no %s\n", prefix, symbol);
        exit(2);
    }
    return function;
}

#define FIND(name, ...)                                                                            \
    lapack_int (*name)(__VA_ARGS__);                                                               \
    void *at_##name = find(#name);                                                                 \
    memcpy(&name, &at_##name, sizeof name)

static void expect(int holds, const char *what, double value)
{
    printf("%s %s %g\n", holds ? "right" : "wrong", what, value);
    wrong += !holds;
}

static double uniform(void)
{
    static uint64_t state = 88172645463325252u;
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (double)(state >> 11) / 9007199254740992.0 - 0.5;
}

static size_t at(int layout, int i, int j)
{
    return layout == ROW_MAJOR ? (size_t)i * LD + (size_t)j : (size_t)j * LD + (size_t)i;
}

/* ---- Ax = b ---- */

static void solve(int layout)
{
    FIND(dgesv, int, lapack_int, lapack_int, double *, lapack_int, lapack_int *, double *,
         lapack_int);
    static double a[N * LD], lu[N * LD], b[N * LD], x[N * LD];
    lapack_int ipiv[N + 1];
    double worst = 0;
    ipiv[N] = 77;
    for (int i = 0; i < N * LD; i++) {
        lu[i] = a[i] = uniform();
        x[i] = b[i] = uniform();
    }
    lapack_int info = dgesv(layout, N, NRHS, lu, LD, ipiv, x, LD);
    for (int i = 0; i < N; i++)
        for (int j = 0; j < NRHS; j++) {
            double sum = -b[at(layout, i, j)];
            for (int k = 0; k < N; k++)
                sum += a[at(layout, i, k)] * x[at(layout, k, j)];
            worst = fmax(worst, fabs(sum));
        }
    expect(info == 0 && worst < 1e-10, layout == ROW_MAJOR ? "dgesv, rows" : "dgesv, columns",
           worst);
    expect(ipiv[N] == 77, "pivots behind the last", (double)ipiv[N]);
    expect(lu[N] == a[N], "what lies between two columns or rows", lu[N] - a[N]);
}

static void singular_and_nan(void)
{
    FIND(dgetrf, int, lapack_int, lapack_int, double *, lapack_int, lapack_int *);
    FIND(dpotrf, int, char, lapack_int, double *, lapack_int);
    static double a[N * LD];
    lapack_int ipiv[N];
    for (int i = 0; i < N * LD; i++)
        a[i] = uniform();
    for (int i = 0; i < N; i++)
        a[at(COL_MAJOR, i, 6)] = 0;
    lapack_int info = dgetrf(COL_MAJOR, N, N, a, LD, ipiv);
    expect(info == 7, "dgetrf of a singular matrix", (double)info);
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++)
            a[at(COL_MAJOR, i, j)] = i == j ? (i == 3 ? -1 : 2) : 0;
    info = dpotrf(COL_MAJOR, 'u', N, a, LD);
    expect(info == 4, "dpotrf of an indefinite matrix", (double)info);
    a[0] = (double)NAN;
    info = dpotrf(COL_MAJOR, 'L', N, a, LD);
    expect(info != 0, "dpotrf of a NaN", (double)info);
    info = dpotrf(COL_MAJOR, 'x', N, a, LD);
    expect(info < 0, "dpotrf with a wrong uplo", (double)info);
    info = dpotrf(7, 'L', N, a, LD);
    expect(info < 0, "dpotrf with a wrong layout", (double)info);
}

/* ---- Eigenvalues: real scalars in registers, counts by address ---- */

static void range_of_eigenvalues(void)
{
    FIND(dsyevr, int, char, char, char, lapack_int, double *, lapack_int, double, double,
         lapack_int, lapack_int, double, lapack_int *, double *, double *, lapack_int,
         lapack_int *);
    static double a[N * LD], z[N * LD], w[N];
    lapack_int m = 99, isuppz[2 * N];
    double worst = 0;
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++)
            a[at(COL_MAJOR, i, j)] = (i == j ? 2 : 0) - (i == j + 1 || j == i + 1);
    lapack_int info =
        dsyevr(COL_MAJOR, 'V', 'I', 'L', N, a, LD, 0, 0, 3, 7, 0, &m, w, z, LD, isuppz);
    for (int k = 0; k < 5; k++) { /* of the second difference: 2 - 2 cos(j pi / (n + 1)) */
        double expected = 2 - 2 * cos((k + 3) * 3.14159265358979323846 / (N + 1));
        worst = fmax(worst, fabs(w[k] - expected));
    }
    expect(info == 0 && m == 5 && worst < 1e-12, "dsyevr, a range by index", worst);
    m = 99;
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++)
            a[at(COL_MAJOR, i, j)] = (i == j ? 2 : 0) - (i == j + 1 || j == i + 1);
    info = dsyevr(COL_MAJOR, 'N', 'V', 'U', N, a, LD, 1.0, 2.0, 0, 0, 0, &m, w, z, 1, isuppz);
    expect(info == 0 && m > 0 && m < N && w[0] > 1 && w[m - 1] <= 2, "dsyevr, a range by value",
           (double)m);
}

/* ---- Complex singular values ---- */

static void singular_values(void)
{
    enum { M = N - 7 };
    FIND(zgesdd, int, char, lapack_int, lapack_int, zcomplex *, lapack_int, double *, zcomplex *,
         lapack_int, zcomplex *, lapack_int);
    static zcomplex a[N * LD], kept[N * LD], u[N * LD], vt[N * LD];
    static double s[N];
    double worst = 0;
    for (int i = 0; i < N * LD; i++)
        kept[i] = a[i] = uniform() + uniform() * (zcomplex)_Complex_I;
    lapack_int info = zgesdd(COL_MAJOR, 'S', M, N, a, LD, s, u, LD, vt, LD);
    for (int i = 0; i < M; i++)
        for (int j = 0; j < N; j++) {
            zcomplex sum = -kept[at(COL_MAJOR, i, j)];
            for (int k = 0; k < M; k++)
                sum += u[at(COL_MAJOR, i, k)] * s[k] * vt[at(COL_MAJOR, k, j)];
            worst = fmax(worst, cabs(sum));
        }
    expect(info == 0 && worst < 1e-12, "zgesdd", worst);
}

/* What has its own shapes in rows: as in columns, of the transposed arrays. */
static void rows_and_columns(void)
{
    FIND(dgelsd, int, lapack_int, lapack_int, lapack_int, double *, lapack_int, double *,
         lapack_int, double *, double, lapack_int *);
    FIND(dgeev, int, char, char, lapack_int, double *, lapack_int, double *, double *, double *,
         lapack_int, double *, lapack_int);
    FIND(dgeqrf, int, lapack_int, lapack_int, double *, lapack_int, double *);
    FIND(dorgqr, int, lapack_int, lapack_int, lapack_int, double *, lapack_int, const double *);
    enum { M = N - 5 };
    static double a[2][N * LD], b[2][N * LD], w[2][N], wi[N], tau[N];
    static const int layouts[] = {COL_MAJOR, ROW_MAJOR};
    double worst[3] = {0, 0, 0};
    lapack_int info = 0, rank;
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) {
            a[0][at(COL_MAJOR, i, j)] = a[1][at(ROW_MAJOR, i, j)] = uniform() + (i == j) * (i + 1);
            b[0][at(COL_MAJOR, i, j)] = b[1][at(ROW_MAJOR, i, j)] = uniform();
        }
    static double kept[2][N * LD];
    memcpy(kept, a, sizeof a);
    for (int l = 0; l < 2; l++)
        info |= dgelsd(layouts[l], N, M, NRHS, a[l], LD, b[l], LD, w[l], -1, &rank);
    for (int i = 0; i < M; i++)
        for (int j = 0; j < NRHS; j++)
            worst[0] = fmax(worst[0], fabs(b[0][at(COL_MAJOR, i, j)] - b[1][at(ROW_MAJOR, i, j)]));
    expect(info == 0 && worst[0] < 1e-11, "dgelsd, rows as columns", worst[0]);
    memcpy(a, kept, sizeof a);
    for (int l = 0; l < 2; l++)
        info |= dgeev(layouts[l], 'N', 'V', N, a[l], LD, w[l], wi, NULL, N, b[l], LD);
    for (int j = 0; j < N; j++) { /* A v = w v, of the real ones */
        for (int i = 0; wi[j] == 0 && i < N; i++)
            for (int l = 0; l < 2; l++) {
                double sum = -w[l][j] * b[l][at(layouts[l], i, j)];
                for (int k = 0; k < N; k++)
                    sum += kept[l][at(layouts[l], i, k)] * b[l][at(layouts[l], k, j)];
                worst[1] = fmax(worst[1], fabs(sum));
            }
    }
    expect(info == 0 && worst[1] < 1e-10, "dgeev, rows as columns", worst[1]);
    memcpy(a, kept, sizeof a);
    for (int l = 0; l < 2; l++) {
        info |= dgeqrf(layouts[l], N, M, a[l], LD, tau);
        info |= dorgqr(layouts[l], N, M, M, a[l], LD, tau);
    }
    for (int i = 0; i < N; i++)
        for (int j = 0; j < M; j++)
            worst[2] = fmax(worst[2], fabs(a[0][at(COL_MAJOR, i, j)] - a[1][at(ROW_MAJOR, i, j)]));
    expect(info == 0 && worst[2] < 1e-12, "dorgqr, rows as columns", worst[2]);
}

int main(int argc, char **argv)
{
    if (argc != 4)
        return 2;
    library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    prefix = argv[2];
    suffix = argv[3];
    if (!library) {
        printf("%s\n", dlerror());
        return 2;
    }
    solve(COL_MAJOR);
    solve(ROW_MAJOR);
    singular_and_nan();
    range_of_eigenvalues();
    singular_values();
    rows_and_columns();
    return wrong != 0;
}
