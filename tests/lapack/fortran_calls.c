/*
 * What programs count on in LAPACK's Fortran interface beside the results: arguments that are not referenced may be
 * NULL, INFO and the workspaces' first elements are written, and the minimal lengths of workspace are enough and no less.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N = 30 };

void dsyevr_(const char *, const char *, const char *, const int *, double *, const int *,
             const double *, const double *, const int *, const int *, const double *, int *,
             double *, double *, const int *, int *, double *, const int *, int *, const int *,
             int *, size_t, size_t, size_t);
void dgesvd_(const char *, const char *, const int *, const int *, double *, const int *, double *,
             double *, const int *, double *, const int *, double *, const int *, int *, size_t,
             size_t);
void sgeqrf_(const int *, const int *, float *, const int *, float *, float *, const int *, int *);
void zheevd_(const char *, const char *, const int *, double *, const int *, double *, double *,
             const int *, double *, const int *, int *, const int *, int *, size_t, size_t);
void dgelsd_(const int *, const int *, const int *, double *, const int *, double *, const int *,
             double *, const double *, int *, double *, const int *, int *, int *);
void zgelss_(const int *, const int *, const int *, double *, const int *, double *, const int *,
             double *, const double *, int *, double *, const int *, double *, int *);

static int wrong;

static void expect(int holds, const char *what, double value)
{
    printf("%s %s %g\n", holds ? "right" : "wrong", what, value);
    wrong += !holds;
}

static void second_difference(double *a, int n)
{
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++)
            a[i + j * n] = (i == j ? 2 : 0) - (i == j + 1 || j == i + 1);
}

static void random_numbers(double *x, int n)
{
    static unsigned seed = 3;
    for (int i = 0; i < n; i++)
        x[i] = (double)rand_r(&seed) / RAND_MAX - 0.5;
}

static void bounds_of_another_range(void)
{
    static double a[N * N], z[N * N], w[N], work[26 * N];
    static int isuppz[2 * N], iwork[10 * N];
    const double vl = 1, vu = 2, abstol = 0;
    const int n = N, il = 2, iu = 5, lwork = 26 * N, liwork = 10 * N;
    int m = -1, info = -1;
    second_difference(a, N);
    dsyevr_("V", "A", "U", &n, a, &n, NULL, NULL, NULL, NULL, &abstol, &m, w, z, &n, isuppz, work,
            &lwork, iwork, &liwork, &info, 1, 1, 1);
    expect(info == 0 && m == N, "dsyevr, all", m);
    second_difference(a, N);
    dsyevr_("V", "V", "L", &n, a, &n, &vl, &vu, NULL, NULL, &abstol, &m, w, z, &n, NULL, work,
            &lwork, iwork, &liwork, &info, 1, 1, 1);
    expect(info == 0 && m > 0 && m < N && w[0] > 1 && w[m - 1] <= 2, "dsyevr, by value", m);
    second_difference(a, N);
    dsyevr_("N", "I", "L", &n, a, &n, NULL, NULL, &il, &iu, &abstol, &m, w, NULL, &n, NULL, work,
            &lwork, iwork, &liwork, &info, 1, 1, 1);
    expect(info == 0 && m == 4, "dsyevr, by index", m);
}

/* Not the same number everywhere, but never less than was asked for. */
static void lengths_on_exit(void)
{
    static double a[2 * N * N], u[N * N], vt[N * N], s[N], work[8 * N * N], rwork[8 * N * N];
    static float single[N * N], tau[N], narrow[64 * N];
    static int iwork[10 * N];
    const int n = N, lwork = 8 * N * N, complex_length = 4 * N * N, length = 64 * N,
              liwork = 10 * N;
    int info = -1;
    random_numbers(a, N * N);
    work[0] = -1;
    dgesvd_("A", "A", &n, &n, a, &n, s, u, &n, vt, &n, work, &lwork, &info, 1, 1);
    expect(info == 0 && work[0] >= 5 * N && work[0] <= lwork, "dgesvd leaves a length", 0);
    for (int i = 0; i < N * N; i++)
        single[i] = (float)a[i];
    narrow[0] = -1;
    sgeqrf_(&n, &n, single, &n, tau, narrow, &length, &info);
    expect(info == 0 && narrow[0] >= N && narrow[0] <= length, "sgeqrf leaves a length", 0);
    memset(a, 0, sizeof a);
    for (int i = 0; i < N; i++)
        a[2 * (i + i * N)] = i + 1;
    work[0] = rwork[0] = iwork[0] = -1;
    zheevd_("V", "L", &n, a, &n, s, work, &complex_length, rwork, &lwork, iwork, &liwork, &info, 1,
            1);
    expect(info == 0 && work[0] >= 2 * N + N * N && rwork[0] >= 1 + 5 * N + 2 * N * N &&
               iwork[0] >= 3 + 5 * N && fabs(s[N - 1] - N) < 1e-12,
           "zheevd leaves three", 0);
}

/* INFO with `lwork` elements of workspace. */
static int gelsd(int m, int n, int nrhs, int lwork)
{
    static double a[N * N], b[N * N], s[N], work[100 * N * N];
    static int iwork[100 * N];
    const double rcond = -1;
    const int ldb = N;
    int rank, info = -77;
    random_numbers(a, N * N);
    random_numbers(b, N * N);
    dgelsd_(&m, &n, &nrhs, a, &m, b, &ldb, s, &rcond, &rank, work, &lwork, iwork, &info);
    return info;
}

static int gelss(int m, int n, int nrhs, int lwork)
{
    static double a[2 * N * N], b[2 * N * N], s[N], work[200 * N * N], rwork[5 * N];
    const double rcond = -1;
    const int ldb = N;
    int rank, info = -77;
    random_numbers(a, 2 * N * N);
    random_numbers(b, 2 * N * N);
    zgelss_(&m, &n, &nrhs, a, &m, b, &ldb, s, &rcond, &rank, work, &lwork, rwork, &info);
    return info;
}

/* The least length that is taken: the program prints it, so that runs can be compared. */
static void least_lengths(void)
{
    static const int shapes[][2] = {{25, 25}, {13, 13}, {14, 14}, {27, 26},
                                    {30, 8},  {7, 30},  {1, 1}};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (int which = 0; which < 2; which++) {
            int low = 0, high = 50 * N * N; /* refused, taken */
            while (high - low > 1) {
                int middle = (low + high) / 2;
                int info = (which ? gelss : gelsd)(shapes[i][0], shapes[i][1], 3, middle);
                *(info < 0 ? &low : &high) = middle;
            }
            printf("least %s %d %d: %d\n", which ? "zgelss" : "dgelsd", shapes[i][0], shapes[i][1],
                   high);
        }
}

/* With an argument, the lengths too: where a wrong one does not end the program, as the reference library's XERBLA does. */
int main(int argc, char **argv)
{
    (void)argv;
    bounds_of_another_range();
    lengths_on_exit();
    if (argc > 1)
        least_lengths();
    return wrong != 0;
}
