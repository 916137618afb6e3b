/* Eigenvalues and singular values, by residuals. */
#include <math.h>
#include <string.h>
#include "test_solver.h"

enum { N = 9, M = 13 };

static double complex a[AREA], b[AREA], v[AREA], x[AREA], y[AREA], z[AREA];
static double values[2 * LD], all[LD];

/* Columns times values. */
static void scale(int m, int n, const double *by, double complex *matrix)
{
    for (int j = 0; j < n; j++)
        for (int i = 0; i < m; i++)
            matrix[j * LD + i] *= by[j];
}

static struct eigen problem(int itype, bool vectors, bool lower)
{
    return (struct eigen){
        .itype = (cusolverEigType_t)itype,
        .jobz = vectors ? CUSOLVER_EIG_MODE_VECTOR : CUSOLVER_EIG_MODE_NOVECTOR,
        .uplo = lower ? CUBLAS_FILL_MODE_LOWER : CUBLAS_FILL_MODE_UPPER,
        .n = N,
        .a = 0,
        .lda = LD,
        .b = 1,
        .ldb = LD,
        .values = 2,
    };
}

static int solve(struct solver *s, struct eigen *e)
{
    make(s->type, HERMITIAN, N, N, a);
    make(s->type, DEFINITE, N, N, b);
    CHECK(put(s, 0, a, AREA) == 0 && put(s, 1, b, AREA) == 0);
    CHECK(eigen(s, e) == 0);
    CHECK(get(s, 0, v, AREA) == 0 && gap_is_whole(N, N, v));
    CHECK(get_real(s, 2, values, LD) == 0);
    if (e->itype != 0) {
        CHECK(get(s, 1, x, AREA) == 0 && gap_is_whole(N, N, x));
        CHECK(other_is_gone(e->uplo, N, x));
    }
    return 0;
}

/* The pairs that were found, in v and values, are pairs. */
static int check_pairs(enum type type, int itype, int count)
{
    for (int i = 1; i < count; i++)
        CHECK(values[i - 1] <= values[i]);
    if (itype < 2) { /* A v = B v w */
        multiply(N, count, N, CUBLAS_OP_N, a, CUBLAS_OP_N, v, x);
        memcpy(y, v, sizeof y);
        if (itype == 1)
            multiply(N, count, N, CUBLAS_OP_N, b, CUBLAS_OP_N, v, y);
    } else { /* A B v = v w, or B A v = v w */
        multiply(N, count, N, CUBLAS_OP_N, itype == 2 ? b : a, CUBLAS_OP_N, v, y);
        multiply(N, count, N, CUBLAS_OP_N, itype == 2 ? a : b, CUBLAS_OP_N, y, x);
        memcpy(y, v, sizeof y);
    }
    scale(N, count, values, y);
    CHECK(close_to(type, N, count, x, y));
    return 0;
}

static int whole_problem(struct solver *s, int itype, bool lower)
{
    struct eigen e = problem(itype, true, lower);
    CHECK(solve(s, &e) == 0);
    CHECK(check_pairs(s->type, itype, N) == 0);
    if (itype == 0) {
        multiply(N, N, N, CUBLAS_OP_C, v, CUBLAS_OP_N, v, x);
        unit(N, y);
        CHECK(close_to(s->type, N, N, x, y));
    }
    memcpy(all, values, sizeof all);
    CHECK(put(s, 0, a, AREA) == 0 && put(s, 1, b, AREA) == 0);
    e.jobz = CUSOLVER_EIG_MODE_NOVECTOR;
    CHECK(eigen(s, &e) == 0);
    CHECK(get_real(s, 2, values, LD) == 0 && get(s, 0, v, AREA) == 0);
    for (int i = 0; i < N; i++)
        CHECK(fabs(values[i] - all[i]) <= 2000 * rounding(s->type) * (1 + fabs(all[i])));
    CHECK(all_is_gone(N, 0, N, v) && gap_is_whole(N, N, v));
    return 0;
}

static int part_of_problem(struct solver *s, int itype, int range, bool vectors)
{
    struct eigen e = problem(itype, vectors, false);
    e.range = (cusolverEigRange_t)range;
    e.il = 2;
    e.iu = 4;
    e.vl = 0;
    e.vu = 100;
    CHECK(solve(s, &e) == 0);
    if (range == CUSOLVER_EIG_RANGE_ALL)
        CHECK(e.found == N);
    else if (range == CUSOLVER_EIG_RANGE_I)
        CHECK(e.found == 3);
    else
        CHECK(e.found >= 1 && e.found < N);
    int found = (int)e.found;
    for (int i = 0; i < N; i++)
        CHECK(isnan(values[i]) == (i >= found));
    for (int i = 0; i < found && range == CUSOLVER_EIG_RANGE_V; i++)
        CHECK(values[i] > 0);
    CHECK(all_is_gone(N, vectors ? found : 0, N, v));
    return vectors ? check_pairs(s->type, itype, found) : 0;
}

static int eigenvalues(struct solver *s)
{
    for (int itype = 0; itype <= 3; itype++) {
        CHECK(whole_problem(s, itype, false) == 0);
        CHECK(whole_problem(s, itype, true) == 0);
        for (int range = CUSOLVER_EIG_RANGE_ALL; range <= CUSOLVER_EIG_RANGE_V; range++) {
            CHECK(part_of_problem(s, itype, range, false) == 0);
            CHECK(part_of_problem(s, itype, range, true) == 0);
        }
    }
    return 0;
}

/* B is not definite: info is the order and the minor. */
static int no_pair(struct solver *s)
{
    struct eigen e = problem(1, true, true);
    make(s->type, HERMITIAN, N, N, a);
    make(s->type, DEFINITE, N, N, b);
    b[2 * LD + 2] = -1;
    CHECK(put(s, 0, a, AREA) == 0 && put(s, 1, b, AREA) == 0);
    CHECK(eigen(s, &e) == N + 3);
    e.range = CUSOLVER_EIG_RANGE_ALL;
    CHECK(put(s, 0, a, AREA) == 0 && put(s, 1, b, AREA) == 0);
    CHECK(eigen(s, &e) == N + 3 && e.found == 0);
    return 0;
}

/* Whether a is U S op(V), of what was taken to x, values and y, and U's columns are orthonormal. */
static int is_decomposition(struct solver *s, int m, int n, int columns, cublasOperation_t op)
{
    multiply(columns, columns, m, CUBLAS_OP_C, x, CUBLAS_OP_N, x, z);
    unit(columns, v);
    CHECK(close_to(s->type, columns, columns, z, v));
    scale(m, n, values, x);
    multiply(m, n, n, CUBLAS_OP_N, x, op, y, z);
    CHECK(close_to(s->type, m, n, z, a));
    return 0;
}

/* U, of so many columns, is in slot 3 or A; VT in slot 4 or A. */
static int singular(struct solver *s, char jobu, char jobvt, int m, int n)
{
    int columns = jobu == 'A' ? m : n;
    make(s->type, GENERAL, m, n, a);
    CHECK(put(s, 0, a, AREA) == 0);
    for (int i = 0; i < AREA; i++)
        x[i] = y[i] = gap;
    CHECK(put(s, 3, x, AREA) == 0 && put(s, 4, y, AREA) == 0);
    CHECK(gesvd(s, jobu, jobvt, m, n, 0, LD, 2, 3, LD, 4, LD) == 0);
    CHECK(get(s, 0, b, AREA) == 0 && gap_is_whole(m, n, b));
    CHECK(get(s, 3, x, AREA) == 0 && get(s, 4, y, AREA) == 0);
    CHECK(get_real(s, 2, values, LD) == 0);
    CHECK(jobu == 'A' || jobu == 'S' ? gap_is_whole(m, columns, x) : gap_is_whole(0, 0, x));
    CHECK(jobvt == 'A' || jobvt == 'S' ? gap_is_whole(n, n, y) : gap_is_whole(0, 0, y));
    if (jobu != 'O' && jobvt != 'O')
        CHECK(all_is_gone(m, 0, n, b));
    if (jobvt == 'O' && m > n)
        CHECK(isnan(creal(b[m - 1])));
    if (jobu == 'N' || jobvt == 'N')
        return 0;
    if (jobu == 'O')
        memcpy(x, b, sizeof x);
    if (jobvt == 'O')
        memcpy(y, b, sizeof y);
    return is_decomposition(s, m, n, columns, CUBLAS_OP_N);
}

static int singular_values(struct solver *s)
{
    static const char jobs[] = "ASON";
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 4; j++)
            if (jobs[i] != 'O' || jobs[j] != 'O') {
                CHECK(singular(s, jobs[i], jobs[j], M, N) == 0);
                CHECK(singular(s, jobs[i], jobs[j], N, N) == 0);
                CHECK(singular(s, jobs[i], jobs[j], M, 2) == 0);
            }
    return 0;
}

/* By a polar decomposition, or by Jacobi rotations: V, not its adjoint; no vectors, but both are
 * overwritten. */
static int singular_by(struct solver *s, bool polar, bool vectors, bool economy, int m, int n)
{
    int columns = economy ? n : m;
    double perturbation = -1;
    make(s->type, GENERAL, m, n, a);
    CHECK(put(s, 0, a, AREA) == 0);
    for (int i = 0; i < AREA; i++)
        x[i] = y[i] = gap;
    CHECK(put(s, 3, x, AREA) == 0 && put(s, 4, y, AREA) == 0);
    CHECK((polar ? gesvdp(s, vectors, economy, m, n, &perturbation)
                 : gesvdj(s, vectors, economy, m, n)) == 0);
    CHECK(!polar || perturbation == 0);
    CHECK(get(s, 0, b, AREA) == 0 && gap_is_whole(m, n, b) && all_is_gone(m, 0, n, b));
    CHECK(get(s, 3, x, AREA) == 0 && get(s, 4, y, AREA) == 0);
    CHECK(gap_is_whole(m, columns, x) && gap_is_whole(n, n, y));
    CHECK(get_real(s, 2, values, LD) == 0);
    if (!vectors) {
        CHECK(all_is_gone(m, 0, columns, x) && all_is_gone(n, 0, n, y));
        return 0;
    }
    return is_decomposition(s, m, n, columns, CUBLAS_OP_C);
}

/* Two equal columns: Xgesvdp shifts the values, and says so. */
static int singular_matrix(struct solver *s)
{
    double perturbation = 0;
    make(s->type, GENERAL, M, N, a);
    memcpy(a + LD, a, M * sizeof *a);
    CHECK(put(s, 0, a, AREA) == 0);
    CHECK(gesvdp(s, true, true, M, N, &perturbation) == 0);
    CHECK(get_real(s, 2, values, LD) == 0);
    CHECK(perturbation > rounding(s->type) && values[N - 1] >= perturbation);
    return 0;
}

static int other_singular_values(struct solver *s)
{
    for (int i = 0; i < 8; i++) {
        CHECK(singular_by(s, i & 1, i & 2, i & 4, M, N) == 0);
        CHECK(singular_by(s, i & 1, i & 2, i & 4, N, N) == 0);
    }
    return singular_matrix(s);
}

/* LAPACK's two columns of a conjugate pair as the pair. */
static void unpack(const double complex *w)
{
    for (int j = 0; j < N; j++)
        if (cimag(w[j]) > 0)
            for (int i = 0; i < N; i++) {
                double complex pair = creal(v[j * LD + i]) + creal(v[(j + 1) * LD + i]) * I;
                v[j * LD + i] = pair;
                v[(j + 1) * LD + i] = conj(pair);
            }
}

static int general_of(struct solver *s, bool vectors, bool mixed)
{
    double complex w[N];
    bool real = is_real(s->type);
    make(s->type, GENERAL, N, N, a);
    CHECK(put(s, 0, a, AREA) == 0 && put(s, 1, a, AREA) == 0);
    CHECK(geev(s, vectors ? CUSOLVER_EIG_MODE_VECTOR : CUSOLVER_EIG_MODE_NOVECTOR, mixed, N, 0, LD,
               2, 1, LD) == 0);
    CHECK(get_real(s, 2, values, 2 * LD) == 0 && get(s, 0, v, AREA) == 0);
    CHECK(gap_is_whole(N, N, v) && all_is_gone(N, 0, N, v));
    for (int i = 0; i < N; i++)
        w[i] =
            real && !mixed ? values[i] + values[N + i] * I : values[2 * i] + values[2 * i + 1] * I;
    CHECK(get(s, 1, v, AREA) == 0 && gap_is_whole(N, N, v));
    double complex trace = 0;
    for (int i = 0; i < N; i++)
        trace += a[i * LD + i] - w[i];
    CHECK(cabs(trace) <= 2000 * rounding(s->type));
    if (!vectors)
        return close_to(s->type, N, N, v, a) ? 0 : 1;
    if (real)
        unpack(w);
    multiply(N, N, N, CUBLAS_OP_N, a, CUBLAS_OP_N, v, x);
    for (int j = 0; j < N; j++)
        for (int i = 0; i < N; i++)
            y[j * LD + i] = v[j * LD + i] * w[j];
    CHECK(close_to(s->type, N, N, x, y));
    return 0;
}

static int general(struct solver *s)
{
    for (int mixed = 0; mixed < (is_real(s->type) ? 2 : 1); mixed++) {
        CHECK(general_of(s, true, mixed) == 0);
        CHECK(general_of(s, false, mixed) == 0);
    }
    return 0;
}

/* It ends, without a result. */
static int not_a_number(struct solver *s)
{
    static const double bad[] = {NAN, INFINITY};
    for (int i = 0; i < 2; i++)
        for (int itype = 0; itype < 2; itype++)
            for (int vectors = 0; vectors < 2; vectors++) {
                struct eigen e = problem(itype, vectors, false);
                make(s->type, HERMITIAN, N, N, a);
                make(s->type, DEFINITE, N, N, b);
                a[5 * LD + 4] = a[4 * LD + 5] = bad[i];
                CHECK(put(s, 0, a, AREA) == 0 && put(s, 1, b, AREA) == 0);
                CHECK(eigen(s, &e) == N);
                e.range = CUSOLVER_EIG_RANGE_ALL;
                CHECK(put(s, 0, a, AREA) == 0 && put(s, 1, b, AREA) == 0);
                CHECK(eigen(s, &e) == N);
                CHECK(put(s, 0, a, AREA) == 0);
                CHECK(gesvd(s, vectors ? 'A' : 'N', 'A', N, N, 0, LD, 2, 3, LD, 4, LD) == N);
                CHECK(put(s, 0, a, AREA) == 0);
                CHECK(geev(s, (cusolverEigMode_t)vectors, false, N, 0, LD, 2, 1, LD) == N);
            }
    return 0;
}

/* See TESTGPU_LAST_PIVOT: whether something else is said of the last pivot of an order, which
 * fails. */
static int last_pivot(struct solver *s, int n, bool missed)
{
    static double complex matrix[32 * 32];
    struct eigen e = problem(1, true, true);
    const size_t count = (size_t)(n * n), last = count - 1;
    memset(matrix, 0, sizeof matrix);
    for (int i = 0; i < n; i++)
        matrix[i * (n + 1)] = i + 1 < n ? 1 : -1;
    CHECK(put(s, 0, matrix, count) == 0 && put(s, 1, matrix, count) == 0);
    e.n = e.lda = e.ldb = n;
    CHECK(eigen(s, &e) == (missed ? 0 : 2 * n));
    CHECK(put(s, 0, matrix, count) == 0);
    CHECK(potrf(s, CUBLAS_FILL_MODE_LOWER, n, 0, n) == (missed ? 0 : n));
    for (int slot = 0; slot < 2 && missed; slot++) {
        CHECK(get(s, slot, matrix, count) == 0);
        CHECK(isnan(creal(matrix[last])) && creal(matrix[last - (size_t)n - 1]) == 1);
    }
    return 0;
}

static int missed_pivot(struct solver *s)
{
    CHECK(last_pivot(s, 31, false) == 0);
    return last_pivot(s, 32, s->type == Z);
}

FOR_TYPES(missed_pivot)
FOR_TYPES(eigenvalues)
FOR_TYPES(no_pair)
FOR_TYPES(singular_values)
FOR_TYPES(other_singular_values)
FOR_TYPES(general)
FOR_TYPES(not_a_number)

const struct scenario solver_eigen_scenarios[] = {
    {"solver_eigenvalues",
     eigenvalues_right,
     {0},
     {"syevd=16 syevdx=24 sygvd=48 sygvdx=72\n", "call name=cusolverDnZhegvdx n=18 failed=0",
      "handles=0 contexts=0"}},
    {"solver_missed_pivot", missed_pivot_right, {"TESTGPU_LAST_PIVOT=2"}, {"sygvd=8 potrf=8\n"}},
    {"solver_no_pair", no_pair_right, {0}, {"sygvd=4 sygvdx=4\n"}},
    {"solver_singular_values", singular_values_right, {0}, {"gesvd=180\n"}},
    {"solver_other_singular_values",
     other_singular_values_right,
     {0},
     {"gesvdj=32 gesvdp=36\n", "handles=0 contexts=0"}},
    {"solver_general", general_right, {0}, {"geev=12\n"}},
    {"solver_not_a_number", not_a_number_right, {0}, {0}},
    {0},
};
