/*
 * write_back CASE [ROWS]: one call of LAPACK on numbers in host memory whose result, of more than 16 MB, takes the place of an
 * input; and whether what it says is so, by products with a random vector. The last line is "CASE: 0 wrong" or "CASE: 1 wrong".
 */
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void dgetrf_(const int *, const int *, double *, const int *, int *, int *);
void dgeqrf_(const int *, const int *, double *, const int *, double *, double *, const int *,
             int *);
void dpotrf_(const char *, const int *, double *, const int *, int *, size_t);
void dtrtri_(const char *, const char *, const int *, double *, const int *, int *, size_t, size_t);
void dgesv_(const int *, const int *, double *, const int *, int *, double *, const int *, int *);
void dposv_(const char *, const int *, const int *, double *, const int *, double *, const int *,
            int *, size_t);
void dgels_(const char *, const int *, const int *, const int *, double *, const int *, double *,
            const int *, double *, const int *, int *, size_t);
void dgesdd_(const char *, const int *, const int *, double *, const int *, double *, double *,
             const int *, double *, const int *, double *, const int *, int *, int *, size_t);

/* m x n, by columns; ld is m. */
struct matrix {
    int m, n;
    double *at;
};

static struct matrix new_matrix(int m, int n)
{
    struct matrix x = {m, n, malloc((size_t)m * (size_t)n * sizeof(double))};
    if (!x.at)
        abort();
    return x;
}

static struct matrix random_matrix(int m, int n)
{
    static unsigned long long state = 88172645463325252u;
    struct matrix x = new_matrix(m, n);
    for (size_t i = 0; i < (size_t)m * (size_t)n; i++) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        x.at[i] = (double)(state >> 11) * 0x1p-52 - 1;
    }
    return x;
}

static struct matrix copy_of(struct matrix x)
{
    struct matrix copy = new_matrix(x.m, x.n);
    memcpy(copy.at, x.at, (size_t)x.m * (size_t)x.n * sizeof(double));
    return copy;
}

static double *element(struct matrix x, int i, int j)
{
    return &x.at[(size_t)j * (size_t)x.m + (size_t)i];
}

/* The part of a matrix that counts. */
enum part { ALL, UPPER, LOWER, UNIT_LOWER };

static bool counts(enum part part, int i, int j)
{
    return part == ALL || (part == UPPER ? i <= j : part == LOWER ? i >= j : i > j);
}

/* x v, or x' v */
static struct matrix times(struct matrix x, enum part part, bool transposed, struct matrix v)
{
    struct matrix y = new_matrix(transposed ? x.n : x.m, 1);
    for (int i = 0; i < y.m; i++) /* of L, the diagonal is not stored */
        y.at[i] = part == UNIT_LOWER && i < v.m ? v.at[i] : 0;
    for (int j = 0; j < x.n; j++)
        for (int i = 0; i < x.m; i++)
            if (counts(part, i, j))
                y.at[transposed ? j : i] += *element(x, i, j) * v.at[transposed ? i : j];
    return y;
}

/* As close as rounding leaves them: some thousand terms of a size that norms tell. */
static bool alike(struct matrix x, struct matrix y)
{
    double difference = 0, size = 0;
    for (int i = 0; i < x.m; i++) {
        difference = fmax(difference, fabs(x.at[i] - y.at[i]));
        size = fmax(size, fabs(y.at[i]));
        if (!(fabs(x.at[i] - y.at[i]) >= 0)) /* NaN */
            return false;
    }
    return difference <= 1e-8 * size;
}

static struct matrix definite(int n)
{
    struct matrix a = random_matrix(n, n);
    for (int j = 0; j < n; j++)
        for (int i = 0; i < j; i++)
            *element(a, j, i) = *element(a, i, j);
    for (int i = 0; i < n; i++)
        *element(a, i, i) += 2 * n;
    return a;
}

static int info = -77;

/* P L U v = A v */
static bool getrf(int m, int n)
{
    struct matrix a = random_matrix(m, n), before = copy_of(a), v = random_matrix(n, 1);
    int *pivots = calloc((size_t)n, sizeof *pivots);
    if (!pivots)
        abort();
    dgetrf_(&m, &n, a.at, &m, pivots, &info);
    struct matrix u = {n, n, new_matrix(n, n).at};
    for (int j = 0; j < n; j++)
        memcpy(element(u, 0, j), element(a, 0, j), (size_t)n * sizeof(double));
    struct matrix product = times(a, UNIT_LOWER, false, times(u, UPPER, false, v));
    for (int i = n - 1; i >= 0; i--) {
        if (pivots[i] < 1 || pivots[i] > m)
            return false;
        double other = product.at[pivots[i] - 1];
        product.at[pivots[i] - 1] = product.at[i];
        product.at[i] = other;
    }
    return info == 0 && alike(product, times(before, ALL, false, v));
}

/* R' R v = A' A v */
static bool geqrf(int m, int n)
{
    struct matrix a = random_matrix(m, n), before = copy_of(a), v = random_matrix(n, 1);
    struct matrix tau = new_matrix(n, 1), work = new_matrix(64 * n, 1), r = new_matrix(n, n);
    dgeqrf_(&m, &n, a.at, &m, tau.at, work.at, &work.m, &info);
    for (int j = 0; j < n; j++)
        memcpy(element(r, 0, j), element(a, 0, j), (size_t)n * sizeof(double));
    return info == 0 && alike(times(r, UPPER, true, times(r, UPPER, false, v)),
                              times(before, ALL, true, times(before, ALL, false, v)));
}

/* L L' v = A v; the other triangle is as it was. */
static bool potrf(int n, int unused)
{
    struct matrix a = definite(n), before = copy_of(a), v = random_matrix(n, 1);
    (void)unused;
    dpotrf_("L", &n, a.at, &n, &info, 1);
    for (int j = 1; j < n; j++)
        if (memcmp(element(a, 0, j), element(before, 0, j), (size_t)j * sizeof(double)) != 0)
            return false;
    return info == 0 &&
           alike(times(a, LOWER, false, times(a, LOWER, true, v)), times(before, ALL, false, v));
}

/* A inv(A) v = v */
static bool trtri(int n, int unused)
{
    struct matrix a = definite(n), before = copy_of(a), v = random_matrix(n, 1);
    (void)unused;
    dtrtri_("U", "N", &n, a.at, &n, &info, 1, 1);
    return info == 0 && alike(times(before, UPPER, false, times(a, UPPER, false, v)), v);
}

/* A (X v) = B v: many right sides */
static bool solves(struct matrix before, struct matrix b, struct matrix x)
{
    struct matrix v = random_matrix(b.n, 1);
    return info == 0 &&
           alike(times(before, ALL, false, times(x, ALL, false, v)), times(b, ALL, false, v));
}

static bool gesv(int sides, int n)
{
    struct matrix a = definite(n), before = copy_of(a), b = random_matrix(n, sides), x = copy_of(b);
    int *pivots = calloc((size_t)n, sizeof *pivots);
    dgesv_(&n, &sides, a.at, &n, pivots, x.at, &n, &info);
    return solves(before, b, x);
}

static bool posv(int sides, int n)
{
    struct matrix a = definite(n), before = copy_of(a), b = random_matrix(n, sides), x = copy_of(b);
    dposv_("U", &n, &sides, a.at, &n, x.at, &n, &info, 1);
    return solves(before, b, x);
}

/* A' (A x - b) = 0 */
static bool gels(int m, int n)
{
    struct matrix a = random_matrix(m, n), before = copy_of(a), b = random_matrix(m, 1),
                  x = copy_of(b), work = new_matrix(64 * (n + 1), 1);
    const int one = 1;
    dgels_("N", &m, &n, &one, a.at, &m, x.at, &m, work.at, &work.m, &info, 1);
    x.m = n;
    struct matrix product = times(before, ALL, false, x);
    return info == 0 && alike(times(before, ALL, true, product), times(before, ALL, true, b));
}

/* U S V' v = A v, with U in A's place */
static bool gesdd(int m, int n)
{
    struct matrix a = random_matrix(m, n), before = copy_of(a), v = random_matrix(n, 1);
    struct matrix s = new_matrix(n, 1), vt = new_matrix(n, n),
                  work = new_matrix(64 * n * n + 64 * n, 1);
    const int one = 1;
    int *iwork = calloc((size_t)(8 * n), sizeof *iwork);
    dgesdd_("O", &m, &n, a.at, &m, s.at, NULL, &one, vt.at, &n, work.at, &work.m, iwork, &info, 1);
    struct matrix scaled = times(vt, ALL, false, v);
    for (int i = 0; i < n; i++)
        scaled.at[i] *= s.at[i];
    return info == 0 && alike(times(a, ALL, false, scaled), times(before, ALL, false, v));
}

/* 17 to 18 MB each, in shapes that cost little. */
static const struct {
    const char *name;
    bool (*run)(int, int);
    int m, n;
} cases[] = {
    {"dgetrf", getrf, 70000, 32}, {"dgeqrf", geqrf, 70000, 32}, {"dpotrf", potrf, 1480, 0},
    {"dtrtri", trtri, 1480, 0},   {"dgesv", gesv, 35000, 64},   {"dposv", posv, 35000, 64},
    {"dgels", gels, 70000, 32},   {"dgesdd", gesdd, 70000, 32},
};

int main(int argc, char **argv)
{
    for (size_t i = 0; argc == 2 && i < sizeof cases / sizeof *cases; i++)
        if (strcmp(argv[1], cases[i].name) == 0) {
            bool right = cases[i].run(cases[i].m, cases[i].n);
            printf("%s: %d wrong\n", argv[1], !right);
            return !right;
        }
    fprintf(stderr, "write_back: a case is one of");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        fprintf(stderr, " %s", cases[i].name);
    fprintf(stderr, "\n");
    return 2;
}
