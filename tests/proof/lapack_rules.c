/*
 * What LAPACK's documents say of results beyond their accuracy, tried on whatever computes: a line
 * for each thing that is not so, and how many were tried. Exit status 1 if there is one.
 *
 * ?sytrf, ?hetrf: its factors are in LAPACK's storage if ?sytrs of another library solves with them
 * (ACCEL_CPU sends one of both to the CPU). ?laswp: rows are exchanged in the order that incx
 * tells. INFO: which pivot, minor or diagonal element it names.
 */
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int tried, wrong;

static void judge(bool good, const char *what, int got, int expected)
{
    tried++;
    if (!good) {
        wrong++;
        printf("%s: %d, not %d\n", what, got, expected);
    }
}

static double uniform(unsigned *seed)
{
    *seed = *seed * 1664525u + 1013904223u;
    return (double)(*seed >> 8) / (1 << 24) - 0.5;
}

enum { SMALL = 9, LARGE = 130, LARGEST = LARGE * LARGE };

typedef void factors(const char *, const int *, void *, const int *, int *, void *, const int *,
                     int *, size_t);
typedef void solves(const char *, const int *, const int *, const void *, const int *, const int *,
                    void *, const int *, int *, size_t);
factors chetrf_, zhetrf_;
solves chetrs_, zhetrs_;

/* For each type t: its element type, numbers in an element, and what an element is made of. */
#define RULES(t, real, parts, eps)                                                                 \
    factors t##sytrf_;                                                                             \
    solves t##sytrs_;                                                                              \
    void t##laswp_(const int *, void *, const int *, const int *, const int *, const int *,        \
                   const int *);                                                                   \
    void t##getrf_(const int *, const int *, void *, const int *, int *, int *);                   \
    void t##gesv_(const int *, const int *, void *, const int *, int *, void *, const int *,       \
                  int *);                                                                          \
    void t##potrf_(const char *, const int *, void *, const int *, int *, size_t);                 \
    void t##posv_(const char *, const int *, const int *, void *, const int *, void *,             \
                  const int *, int *, size_t);                                                     \
    void t##trtri_(const char *, const char *, const int *, void *, const int *, int *, size_t,    \
                   size_t);                                                                        \
                                                                                                   \
    /* The residual of a system with pivots of order 2: its diagonal is 0. */                      \
    static void t##_storage(const char *uplo, int n, factors *factor, solves *solve,               \
                            bool hermitian)                                                        \
    {                                                                                              \
        static real a[LARGEST * parts], f[LARGEST * parts], work[LARGEST * parts];                 \
        static real b[LARGE * parts], x[LARGE * parts];                                            \
        int pivots[LARGE], info = -99, lwork = LARGEST;                                            \
        const int one = 1;                                                                         \
        unsigned seed = (unsigned)n;                                                               \
        for (int j = 0; j < n; j++)                                                                \
            for (int i = 0; i <= j; i++)                                                           \
                for (int p = 0; p < parts; p++)                                                    \
                    a[(i + j * n) * parts + p] = i == j ? 0 : (real)uniform(&seed);                \
        for (int j = 0; j < n; j++)                                                                \
            for (int i = j + 1; i < n; i++)                                                        \
                for (int p = 0; p < parts; p++)                                                    \
                    a[(i + j * n) * parts + p] =                                                   \
                        (real)(hermitian && p ? -1 : 1) * a[(j + i * n) * parts + p];              \
        for (int i = 0; i < n * parts; i++)                                                        \
            x[i] = b[i] = (real)uniform(&seed);                                                    \
        memcpy(f, a, sizeof a);                                                                    \
        factor(uplo, &n, f, &n, pivots, work, &lwork, &info, 1);                                   \
        judge(info == 0, hermitian ? #t "hetrf: INFO" : #t "sytrf: INFO", info, 0);                \
        solve(uplo, &n, &one, f, &n, pivots, x, &n, &info, 1);                                     \
        double worst = 0;                                                                          \
        for (int i = 0; i < n; i++) {                                                              \
            double re = b[i * parts], im = parts == 2 ? b[i * parts + parts - 1] : 0, size = 1;    \
            for (int j = 0; j < n; j++) {                                                          \
                const real *u = a + (i + j * n) * parts, *v = x + j * parts;                       \
                double ui = parts == 2 ? u[parts - 1] : 0, vi = parts == 2 ? v[parts - 1] : 0;     \
                re -= u[0] * v[0] - ui * vi;                                                       \
                im -= u[0] * vi + ui * v[0];                                                       \
                size += fabs(u[0] * v[0]) + fabs(ui * vi);                                         \
            }                                                                                      \
            worst = fmax(worst, hypot(re, im) / (size * eps));                                     \
        }                                                                                          \
        judge(worst < 30 * n,                                                                      \
              hermitian      ? #t "hetrf: ?hetrs's residual in eps"                                \
              : *uplo == 'U' ? #t "sytrf, upper: ?sytrs's residual in eps"                         \
                             : #t "sytrf, lower: ?sytrs's residual in eps",                        \
              worst < 1e9 ? (int)worst : 1000000000, 30 * n);                                      \
    }                                                                                              \
                                                                                                   \
    static void t##_exchange(int n, int first, int last, int incx)                                 \
    {                                                                                              \
        static real a[LARGEST * parts], expected[LARGEST * parts];                                 \
        int pivots[2 * LARGE], cols = 5, step = abs(incx);                                         \
        unsigned seed = 7;                                                                         \
        for (int i = 0; i < n * cols * parts; i++)                                                 \
            a[i] = expected[i] = (real)uniform(&seed);                                             \
        for (int i = 0; i < 2 * LARGE; i++)                                                        \
            pivots[i] = 1 + (int)((uniform(&seed) + 0.5) * n * 0.999);                             \
        for (int k = 0; k <= last - first; k++) {                                                  \
            int row = incx > 0 ? first + k : last - k;                                             \
            int other = pivots[first - 1 + (row - first) * step];                                  \
            for (int j = 0; j < cols; j++)                                                         \
                for (int p = 0; p < parts; p++) {                                                  \
                    real *u = expected + (row - 1 + j * n) * parts + p;                            \
                    real *v = expected + (other - 1 + j * n) * parts + p, old = *u;                \
                    *u = *v;                                                                       \
                    *v = old;                                                                      \
                }                                                                                  \
        }                                                                                          \
        t##laswp_(&cols, a, &n, &first, &last, pivots, &incx);                                     \
        judge(memcmp(a, expected, (size_t)(n * cols * parts) * sizeof *a) == 0,                    \
              #t "laswp: as written down, incx", incx, incx);                                      \
    }                                                                                              \
                                                                                                   \
    /* A diagonal matrix whose elements from `at` on are `bad` where they are not 1. */            \
    static void t##_info(int n, int at)                                                            \
    {                                                                                              \
        static real a[LARGEST * parts], b[LARGE * parts];                                          \
        int pivots[LARGE], info;                                                                   \
        const int one = 1;                                                                         \
        for (int kind = 0; kind < 6; kind++) {                                                     \
            static const char *const names[] = {#t "getrf", #t "gesv",  #t "potrf",                \
                                                #t "posv",  #t "trtri", #t "potrf, lower"};        \
            bool definite = kind == 2 || kind == 3 || kind == 5;                                   \
            memset(a, 0, sizeof a);                                                                \
            for (int i = 0; i < n; i++)                                                            \
                a[(i + i * n) * parts] = 1, b[i * parts] = 1;                                      \
            if (at > 0)                                                                            \
                a[(at - 1 + (at - 1) * n) * parts] = definite ? -1 : 0;                            \
            info = -99;                                                                            \
            if (kind == 0)                                                                         \
                t##getrf_(&n, &n, a, &n, pivots, &info);                                           \
            else if (kind == 1)                                                                    \
                t##gesv_(&n, &one, a, &n, pivots, b, &n, &info);                                   \
            else if (kind == 2 || kind == 5)                                                       \
                t##potrf_(kind == 2 ? "U" : "L", &n, a, &n, &info, 1);                             \
            else if (kind == 3)                                                                    \
                t##posv_("U", &n, &one, a, &n, b, &n, &info, 1);                                   \
            else                                                                                   \
                t##trtri_("U", "N", &n, a, &n, &info, 1, 1);                                       \
            judge(info == at, names[kind], info, at);                                              \
        }                                                                                          \
    }                                                                                              \
                                                                                                   \
    static void t##_rules(void)                                                                    \
    {                                                                                              \
        static const int orders[] = {2, SMALL, LARGE};                                             \
        for (int i = 0; i < 3; i++) {                                                              \
            int n = orders[i];                                                                     \
            t##_storage("U", n, t##sytrf_, t##sytrs_, false);                                      \
            t##_storage("L", n, t##sytrf_, t##sytrs_, false);                                      \
            t##_exchange(n, 1, n, 1);                                                              \
            t##_exchange(n, 1, n, -1);                                                             \
            t##_exchange(n, n / 2, n, 2);                                                          \
            t##_exchange(n, n / 2, n, -2);                                                         \
            t##_info(n, 0);                                                                        \
            t##_info(n, 1);                                                                        \
            t##_info(n, (n + 1) / 2);                                                              \
            t##_info(n, n);                                                                        \
        }                                                                                          \
        t##_info(1, 0);                                                                            \
        t##_info(1, 1);                                                                            \
        t##_exchange(1, 1, 1, 1);                                                                  \
    }

RULES(s, float, 1, 0x1p-23)
RULES(d, double, 1, 0x1p-52)
RULES(c, float, 2, 0x1p-23)
RULES(z, double, 2, 0x1p-52)

int main(void)
{
    s_rules();
    d_rules();
    c_rules();
    z_rules();
    for (int i = 0; i < 4; i++) {
        const int n = i < 2 ? SMALL : LARGE;
        const char *uplo = i % 2 ? "U" : "L";
        c_storage(uplo, n, chetrf_, chetrs_, true);
        z_storage(uplo, n, zhetrf_, zhetrs_, true);
    }
    printf("%d rules tried, %d broken\n", tried, wrong);
    return wrong != 0;
}
