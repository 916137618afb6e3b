/* Factorizations and what solves with them, by residuals. */
#include <math.h>
#include <stdint.h>
#include <string.h>
#include "test_solver.h"

enum { N = 9, K = 3 };

static double complex a[AREA], b[AREA], x[AREA], y[AREA], z[AREA];
static const cublasFillMode_t both[] = {CUBLAS_FILL_MODE_LOWER, CUBLAS_FILL_MODE_UPPER};

static void exchange_rows(int n, int one, int other, double complex *matrix)
{
    for (int j = 0; j < n; j++) {
        double complex kept = matrix[j * LD + one];
        matrix[j * LD + one] = matrix[j * LD + other];
        matrix[j * LD + other] = kept;
    }
}

static int factor_lu(struct solver *s, int m, int n)
{
    int k = m < n ? m : n;
    int64_t pivots[LD];
    make(s->type, GENERAL, m, n, a);
    CHECK(put(s, 0, a, AREA) == 0);
    CHECK(getrf(s, m, n, 0, LD, 1) == 0);
    CHECK(get(s, 0, b, AREA) == 0 && gap_is_whole(m, n, b));
    OK(cuMemcpyDtoH(pivots, s->slot[1], (size_t)k * sizeof *pivots));
    triangle(CUBLAS_FILL_MODE_LOWER, CUBLAS_DIAG_UNIT, m, k, b, x);
    triangle(CUBLAS_FILL_MODE_UPPER, CUBLAS_DIAG_NON_UNIT, k, n, b, y);
    multiply(m, n, k, CUBLAS_OP_N, x, CUBLAS_OP_N, y, z);
    for (int i = 0; i < k; i++)
        exchange_rows(n, i, (int)pivots[i] - 1, a);
    CHECK(close_to(s->type, m, n, z, a));
    return 0;
}

static int lu(struct solver *s)
{
    CHECK(factor_lu(s, N, N - 4) == 0);
    CHECK(factor_lu(s, N - 4, N) == 0);
    for (int op = CUBLAS_OP_N; op <= CUBLAS_OP_C; op++) {
        CHECK(factor_lu(s, N, N) == 0);
        make(s->type, GENERAL, N, N, a);
        CHECK(put(s, 0, a, AREA) == 0 && getrf(s, N, N, 0, LD, 1) == 0);
        make(s->type, GENERAL, N, K, b);
        CHECK(put(s, 2, b, AREA) == 0);
        CHECK(getrs(s, (cublasOperation_t)op, N, K, 0, LD, 1, 2, LD) == 0);
        CHECK(get(s, 2, x, AREA) == 0 && gap_is_whole(N, K, x));
        multiply(N, K, N, (cublasOperation_t)op, a, CUBLAS_OP_N, x, y);
        CHECK(close_to(s->type, N, K, y, b));
    }
    memset(a, 0, sizeof a);
    a[0] = 1;
    CHECK(put(s, 0, a, AREA) == 0);
    CHECK(getrf(s, 3, 3, 0, LD, 1) == 2);
    return 0;
}

static int rows(struct solver *s)
{
    const int pivots[] = {9, 3, 0, 7, 0, 4, 0, 7};
    const struct {
        int k1, k2, incx;
        int order[6]; /* of exchanges: row, other row */
    } trials[] = {
        {1, 2, 1, {1, 9, 2, 3, 1, 1}},
        {2, 4, 2, {2, 3, 3, 7, 4, 4}},
        {2, 4, -2, {4, 4, 3, 7, 2, 3}},
    };
    OK(cuMemcpyHtoD(s->slot[1], pivots, sizeof pivots));
    for (int i = 0; i < 3; i++) {
        make(s->type, GENERAL, N, N, a);
        CHECK(put(s, 0, a, AREA) == 0);
        CHECK(laswp(s, N, 0, LD, trials[i].k1, trials[i].k2, 1, trials[i].incx) == 0);
        CHECK(get(s, 0, x, AREA) == 0 && gap_is_whole(N, N, x));
        for (int j = 0; j < 6; j += 2)
            exchange_rows(N, trials[i].order[j] - 1, trials[i].order[j + 1] - 1, a);
        CHECK(close_to(s->type, N, N, x, a));
    }
    return 0;
}

static int cholesky(struct solver *s)
{
    for (int i = 0; i < 2; i++) {
        cublasFillMode_t uplo = both[i];
        cublasOperation_t first = i == 0 ? CUBLAS_OP_N : CUBLAS_OP_C;
        cublasOperation_t second = i == 0 ? CUBLAS_OP_C : CUBLAS_OP_N;
        make(s->type, DEFINITE, N, N, a);
        CHECK(put(s, 0, a, AREA) == 0);
        CHECK(potrf(s, uplo, N, 0, LD) == 0);
        CHECK(get(s, 0, x, AREA) == 0 && gap_is_whole(N, N, x) && other_is_gone(uplo, N, x));
        triangle(uplo, CUBLAS_DIAG_NON_UNIT, N, N, x, y);
        multiply(N, N, N, first, y, second, y, z);
        CHECK(close_to(s->type, N, N, z, a));

        make(s->type, GENERAL, N, K, b);
        CHECK(put(s, 2, b, AREA) == 0);
        CHECK(potrs(s, uplo, N, K, 0, LD, 2, LD) == 0);
        CHECK(get(s, 2, z, AREA) == 0 && gap_is_whole(N, K, z));
        multiply(N, K, N, CUBLAS_OP_N, a, CUBLAS_OP_N, z, x);
        CHECK(close_to(s->type, N, K, x, b));

        CHECK(potri(s, uplo, N, 0, LD) == 0);
        CHECK(get(s, 0, x, AREA) == 0 && gap_is_whole(N, N, x) && other_is_gone(uplo, N, x));
        mirror(uplo, true, N, x);
        multiply(N, N, N, CUBLAS_OP_N, a, CUBLAS_OP_N, x, z);
        unit(N, x);
        CHECK(close_to(s->type, N, N, z, x));

        CHECK(put(s, 0, y, AREA) == 0);
        CHECK(lauum(s, uplo, N, 0, LD) == 0);
        CHECK(get(s, 0, x, AREA) == 0 && other_is_gone(uplo, N, x));
        mirror(uplo, true, N, x);
        multiply(N, N, N, second, y, first, y, z);
        CHECK(close_to(s->type, N, N, x, z));

        a[LD + 1] = -1;
        CHECK(put(s, 0, a, AREA) == 0);
        CHECK(potrf(s, uplo, N, 0, LD) == 2);
        CHECK(get(s, 0, x, AREA) == 0 && gap_is_whole(N, N, x) && all_is_gone(N, 0, N, x));
    }
    return 0;
}

/* Q of the factorization in slot 0, all its columns, to x. */
static int whole_q(struct solver *s, int m, int k)
{
    OK(cuMemcpyDtoD(s->slot[2], s->slot[0], ROOM * sizeof(double complex)));
    CHECK(orgqr(s, m, m, k, 2, LD, 1) == 0);
    return get(s, 2, x, AREA);
}

static int factor_qr(struct solver *s, int m, int n)
{
    int k = m < n ? m : n;
    make(s->type, GENERAL, m, n, a);
    CHECK(put(s, 0, a, AREA) == 0);
    CHECK(geqrf(s, m, n, 0, LD, 1) == 0);
    CHECK(get(s, 0, b, AREA) == 0 && gap_is_whole(m, n, b));
    CHECK(whole_q(s, m, k) == 0);
    multiply(m, m, m, CUBLAS_OP_C, x, CUBLAS_OP_N, x, y);
    unit(m, z);
    CHECK(close_to(s->type, m, m, y, z));
    triangle(CUBLAS_FILL_MODE_UPPER, CUBLAS_DIAG_NON_UNIT, m, n, b, y);
    multiply(m, n, m, CUBLAS_OP_N, x, CUBLAS_OP_N, y, z);
    CHECK(close_to(s->type, m, n, z, a));
    return 0;
}

static int qr(struct solver *s)
{
    CHECK(factor_qr(s, N, N) == 0);
    CHECK(factor_qr(s, N - 4, N) == 0);
    CHECK(factor_qr(s, N, N - 4) == 0);
    cublasOperation_t turned = is_real(s->type) ? CUBLAS_OP_T : CUBLAS_OP_C;
    for (int i = 0; i < 4; i++) {
        bool left = i < 2;
        cublasOperation_t op = i % 2 == 0 ? CUBLAS_OP_N : turned;
        int m = left ? N : K, n = left ? K : N;
        make(s->type, GENERAL, m, n, b);
        CHECK(put(s, 3, b, AREA) == 0);
        CHECK(ormqr(s, left ? CUBLAS_SIDE_LEFT : CUBLAS_SIDE_RIGHT, op, m, n, N - 4, 0, LD, 1, 3,
                    LD) == 0);
        CHECK(get(s, 3, y, AREA) == 0 && gap_is_whole(m, n, y));
        if (left)
            multiply(m, n, N, op, x, CUBLAS_OP_N, b, z);
        else
            multiply(m, n, N, CUBLAS_OP_N, b, op, x, z);
        CHECK(close_to(s->type, m, n, y, z));
    }
    /* The first columns alone. */
    CHECK(orgqr(s, N, K, K, 0, LD, 1) == 0);
    CHECK(get(s, 0, y, AREA) == 0);
    CHECK(close_to(s->type, N, K, y, x));
    return 0;
}

static int triangular(struct solver *s)
{
    for (int i = 0; i < 4; i++) {
        cublasFillMode_t uplo = both[i % 2];
        cublasDiagType_t diag = i < 2 ? CUBLAS_DIAG_NON_UNIT : CUBLAS_DIAG_UNIT;
        make(s->type, DIAGONALLY_LARGE, N, N, a);
        CHECK(put(s, 0, a, AREA) == 0);
        CHECK(trtri(s, uplo, diag, N, 0, LD) == 0);
        CHECK(get(s, 0, x, AREA) == 0 && gap_is_whole(N, N, x) && other_is_gone(uplo, N, x));
        triangle(uplo, diag, N, N, a, y);
        triangle(uplo, diag, N, N, x, z);
        multiply(N, N, N, CUBLAS_OP_N, y, CUBLAS_OP_N, z, x);
        unit(N, y);
        /* A triangle of small numbers below ones has a large inverse. */
        if (diag == CUBLAS_DIAG_NON_UNIT || s->type == D || s->type == Z)
            CHECK(close_to(s->type, N, N, x, y));
    }
    a[2 * LD + 2] = 0;
    CHECK(put(s, 0, a, AREA) == 0);
    CHECK(trtri(s, CUBLAS_FILL_MODE_LOWER, CUBLAS_DIAG_NON_UNIT, N, 0, LD) == 3);
    return 0;
}

static int indefinite(struct solver *s)
{
    int pivots[N];
    int64_t wide[N];
    for (int i = 0; i < 2; i++) {
        make(s->type, SYMMETRIC, N, N, a);
        CHECK(put(s, 0, a, AREA) == 0);
        CHECK(sytrf(s, both[i], N, 0, LD, 1) == 0);
        CHECK(get(s, 0, x, AREA) == 0 && gap_is_whole(N, N, x) && other_is_gone(both[i], N, x));
        OK(cuMemcpyDtoH(pivots, s->slot[1], sizeof pivots));
        for (int j = 0; j < N; j++)
            wide[j] = pivots[j];
        OK(cuMemcpyHtoD(s->slot[1], wide, sizeof wide));
        make(s->type, GENERAL, N, K, b);
        CHECK(put(s, 2, b, AREA) == 0);
        CHECK(sytrs(s, both[i], N, K, 0, LD, 1, 2, LD) == 0);
        CHECK(get(s, 2, x, AREA) == 0 && gap_is_whole(N, K, x));
        multiply(N, K, N, CUBLAS_OP_N, a, CUBLAS_OP_N, x, y);
        CHECK(close_to(s->type, N, K, y, b));
    }
    return 0;
}

static int hermitian_indefinite(struct solver *s)
{
    for (int i = 0; i < 2; i++) {
        make(s->type, HERMITIAN, N, N, a);
        CHECK(put(s, 0, a, AREA) == 0);
        if (s->type == S || s->type == D) {
            CHECK(hetrf(s, both[i], N, 0, LD, 1) == REFUSED);
            CHECK(hetrs(s, both[i], N, K, 0, LD, 1, 2, LD) == REFUSED);
            continue;
        }
        CHECK(hetrf(s, both[i], N, 0, LD, 1) == 0);
        CHECK(get(s, 0, x, AREA) == 0 && gap_is_whole(N, N, x) && other_is_gone(both[i], N, x));
        make(s->type, GENERAL, N, K, b);
        CHECK(put(s, 2, b, AREA) == 0);
        CHECK(hetrs(s, both[i], N, K, 0, LD, 1, 2, LD) == 0);
        CHECK(get(s, 2, x, AREA) == 0 && gap_is_whole(N, K, x));
        multiply(N, K, N, CUBLAS_OP_N, a, CUBLAS_OP_N, x, y);
        CHECK(close_to(s->type, N, K, y, b));
        /* An imaginary part on the diagonal is no Hermitian matrix's. */
        a[0] += I;
        CHECK(put(s, 0, a, AREA) == 0 && hetrf(s, both[i], N, 0, LD, 1) != REFUSED);
        CHECK(get(s, 0, x, AREA) == 0 && !isfinite(creal(x[0])));
    }
    return 0;
}

/* z := the tridiagonal matrix of a triangle's diagonal and of what is beside it: x's elements,
 * which the lists must have, too. */
static int tridiagonal_of(struct solver *s, cublasFillMode_t uplo)
{
    double diagonal[N], beside[N];
    CHECK(get_real(s, 1, diagonal, N) == 0 && get_real(s, 2, beside, N - 1) == 0);
    unit(N, z);
    for (int i = 0; i < N; i++) {
        CHECK(x[i * LD + i] == diagonal[i]);
        z[i * LD + i] = diagonal[i];
        if (i + 1 == N)
            break;
        CHECK(x[uplo == CUBLAS_FILL_MODE_LOWER ? i * LD + i + 1 : (i + 1) * LD + i] == beside[i]);
        z[i * LD + i + 1] = z[(i + 1) * LD + i] = beside[i];
    }
    return 0;
}

/* y := Q, whose reflectors are below the diagonal of the matrix without its first row and last
 * column. */
static int unitary_of_lower(struct solver *s)
{
    CHECK(put(s, 4, x + 1, AREA - LD) == 0);
    CHECK(orgqr(s, N - 1, N - 1, N - 1, 4, LD, 3) == 0);
    CHECK(get(s, 4, x, AREA - LD) == 0);
    unit(N, y);
    for (int j = 1; j < N; j++)
        for (int i = 1; i < N; i++)
            y[j * LD + i] = x[(j - 1) * LD + i - 1];
    return 0;
}

static int tridiagonal(struct solver *s)
{
    for (int i = 0; i < 2; i++) {
        make(s->type, HERMITIAN, N, N, a);
        CHECK(put(s, 0, a, AREA) == 0);
        CHECK(sytrd(s, both[i], N, 0, LD, 1, 2, 3) == 0);
        CHECK(get(s, 0, x, AREA) == 0 && gap_is_whole(N, N, x) && other_is_gone(both[i], N, x));
        CHECK(tridiagonal_of(s, both[i]) == 0);
        if (both[i] != CUBLAS_FILL_MODE_LOWER)
            continue;
        CHECK(unitary_of_lower(s) == 0);
        multiply(N, N, N, CUBLAS_OP_N, y, CUBLAS_OP_N, z, x);
        multiply(N, N, N, CUBLAS_OP_N, x, CUBLAS_OP_C, y, z);
        CHECK(close_to(s->type, N, N, z, a));
    }
    return 0;
}

/* They end, and the pivots are some. */
static int no_numbers(struct solver *s)
{
    int64_t pivots[N];
    for (int i = 0; i < AREA; i++)
        a[i] = NAN;
    CHECK(put(s, 0, a, AREA) == 0);
    CHECK(getrf(s, N, N, 0, LD, 1) != REFUSED);
    OK(cuMemcpyDtoH(pivots, s->slot[1], sizeof pivots));
    for (int i = 0; i < N; i++)
        CHECK(pivots[i] > i && pivots[i] <= N);
    CHECK(sytrf(s, CUBLAS_FILL_MODE_LOWER, N, 0, LD, 1) != REFUSED);
    CHECK(potrf(s, CUBLAS_FILL_MODE_LOWER, N, 0, LD) != REFUSED);
    CHECK(geqrf(s, N, N, 0, LD, 1) != REFUSED);
    CHECK(orgqr(s, N, N, N, 0, LD, 1) != REFUSED);
    CHECK(trtri(s, CUBLAS_FILL_MODE_LOWER, CUBLAS_DIAG_NON_UNIT, N, 0, LD) != REFUSED);
    return 0;
}

FOR_TYPES(lu)
FOR_TYPES(rows)
FOR_TYPES(cholesky)
FOR_TYPES(qr)
FOR_TYPES(triangular)
FOR_TYPES(indefinite)
FOR_TYPES(hermitian_indefinite)
FOR_TYPES(tridiagonal)
FOR_TYPES(no_numbers)

const struct scenario solver_factor_scenarios[] = {
    {"solver_lu",
     lu_right,
     {0},
     {"getrf=36 getrs=12\n", "call name=cusolverDnXgetrs n=12 failed=0",
      "leaked device_bytes=0 device_allocations=0", "handles=0 contexts=0"}},
    {"solver_rows", rows_right, {0}, {"laswp=12\n"}},
    {"solver_cholesky",
     cholesky_right,
     {0},
     {"potrf=16 potrs=8 potri=8 lauum=8\n", "call name=cusolverDnCpotri n=2 failed=0"}},
    {"solver_qr",
     qr_right,
     {0},
     {"geqrf=12 orgqr=16 ormqr=16\n", "call name=cusolverDnZunmqr n=4 failed=0"}},
    {"solver_triangular", triangular_right, {0}, {"trtri=20\n"}},
    {"solver_indefinite", indefinite_right, {0}, {"sytrf=8 sytrs=8\n"}},
    {"solver_hermitian_indefinite",
     hermitian_indefinite_right,
     {0},
     {"hetrf=8 hetrs=4\n", "call name=cusolverDnXhetrs n="}},
    {"solver_tridiagonal",
     tridiagonal_right,
     {0},
     {"sytrd=8 orgqr=4\n", "call name=cusolverDnZhetrd n=2 failed=0"}},
    {"solver_no_numbers", no_numbers_right, {0}, {0}},
    {0},
};
