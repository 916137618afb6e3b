/* What cpu_ref/verify.h says of results near and beyond the range of their type, of calls that can
 * be judged in part, and of the order of eigenvalues and singular values. Matrices are such that
 * their factors are known. */
#define _GNU_SOURCE
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cpu_ref/element.h"
#include "cpu_ref/verify.h"
#include "ops/op.h"
#include "call/shape.h"
#include "ops/typical.h"
#include "tests/lib/routine.h"

enum { N = 12, SPACE = 2 * N * N };

/* A call with its operands and what they were, in memory for any type. */
struct trial {
    struct accel_call call;
    double now[ACCEL_SPANS][SPACE], old[ACCEL_SPANS][SPACE];
    bool has_old[ACCEL_SPANS];
};

static void put(void *at, int64_t i, enum accel_dtype dtype, double re, double im)
{
    switch (dtype) {
    case ACCEL_FLOAT32:
        ((float *)at)[i] = (float)re;
        break;
    case ACCEL_FLOAT64:
        ((double *)at)[i] = re;
        break;
    case ACCEL_COMPLEX64:
        ((float *)at)[2 * i] = (float)re;
        ((float *)at)[2 * i + 1] = (float)im;
        break;
    case ACCEL_COMPLEX128:
        ((double *)at)[2 * i] = re;
        ((double *)at)[2 * i + 1] = im;
        break;
    default:
        ((int32_t *)at)[i] = (int32_t)re;
    }
}

/* x, an operand or what it was, becomes `diagonal` times the identity, plus `rest` elsewhere. */
static void fill(void *x, const struct accel_call *call, enum accel_matrix which, double diagonal,
                 double rest)
{
    const struct accel_span *const span = &call->span[which];
    for (int64_t col = 0; col < span->cols; col++)
        for (int64_t row = 0; row < span->rows; row++)
            put(x, row + col * span->ld, span->dtype, rest, 0);
    for (int64_t i = 0; i < shape_diagonal(call, span); i++)
        put(x, shape_diagonal_place(call, span, span->ld, i), span->dtype, diagonal, 0);
}

static struct trial *open_trial(const char *name)
{
    static struct trial t;
    const struct accel_routine *const what = routine(name);
    memset(&t, 0, sizeof t);
    const int64_t size[ACCEL_DIMENSIONS] = {N, N, N, N};
    shape_typical(&t.call, what, size);
    for (int i = 0; i < ACCEL_SPANS; i++)
        t.call.span[i].ptr = t.call.span[i].rows > 0 ? t.now[i] : NULL;
    return &t;
}

static void set(struct trial *t, enum accel_matrix which, double diagonal, double rest)
{
    fill(t->now[which], &t->call, which, diagonal, rest);
}

static void set_old(struct trial *t, enum accel_matrix which, double diagonal, double rest)
{
    fill(t->old[which], &t->call, which, diagonal, rest);
    t->has_old[which] = true;
}

static double judged(struct trial *t)
{
    const void *before[ACCEL_SPANS];
    for (int i = 0; i < ACCEL_SPANS; i++)
        before[i] = t->has_old[i] ? t->old[i] : NULL;
    return cpu_ref_verify(&t->call, before, 1, 0);
}

#define assert_right(ratio)   assert_true((ratio) >= 0 && (ratio) <= 1)
#define assert_wrong(ratio)   assert_true((ratio) > 1)
#define assert_unknown(ratio) assert_true((ratio) == CPU_REF_NOT_JUDGED)

static void exchange_nothing(struct trial *t)
{
    struct accel_span *x = &t->call.span[ACCEL_x];
    for (int64_t i = 0; x->dtype == ACCEL_INT32 && i < N; i++)
        put(t->now[ACCEL_x], i, x->dtype, (double)i + 1, 0);
}

/* ---- Solutions ---- */

/* X = B / A, A a multiple of the identity, whose factor is another one. */
struct solver {
    const char *name;
    double root; /* the factor's diagonal: A itself (0), or its root (1) */
    enum accel_matrix result;
};

static const struct solver solvers[] = {
    {"gesv", 0, ACCEL_b},  {"getrs", 0, ACCEL_b}, {"getri", 0, ACCEL_a}, {"posv", 1, ACCEL_b},
    {"potrs", 1, ACCEL_b}, {"potri", 1, ACCEL_a}, {"sysv", 0, ACCEL_b},  {"sytrs", 0, ACCEL_b},
    {"trtrs", 0, ACCEL_b}, {"trtri", 0, ACCEL_a}, {"gels", 0, ACCEL_b},  {"trsm", 0, ACCEL_b},
    {"sytri", 0, ACCEL_a}, {"ppsv", 1, ACCEL_b},  {"pptrs", 1, ACCEL_b}, {"pptri", 1, ACCEL_a},
};

static struct trial *open_solver(char type, const struct solver *s)
{
    char name[16];
    snprintf(name, sizeof name, "%c%s", type, s->name);
    return open_trial(name);
}

static struct trial *solved(char type, const struct solver *s, double root, double b)
{
    const double a = root * root, factor = s->root == 1 ? root : a;
    struct trial *t = open_solver(type, s);
    const bool inverse = s->result == ACCEL_a;
    const bool overwrites = t->call.span[ACCEL_a].access & ACCEL_WRITE;
    set(t, ACCEL_a, factor, 0);
    if (overwrites)
        set_old(t, ACCEL_a, inverse ? factor : a, 0);
    if (inverse) {
        set(t, ACCEL_a, 1 / a, 0);
    } else {
        set_old(t, ACCEL_b, b, b / 2);
        set(t, ACCEL_b, b / a, b / a / 2);
    }
    exchange_nothing(t);
    return t;
}

static void gross_errors_in_solutions_are_seen(void **state)
{
    static const double gross[] = {1e6, 1e24, 1e30, 1e37, 1e65, 1e100, 1e200, INFINITY, NAN};
    (void)state;
    for (size_t i = 0; i < sizeof solvers / sizeof *solvers; i++)
        for (const char *type = "sdcz"; *type; type++) {
            struct trial *t = solved(*type, &solvers[i], 2, 3);
            const enum accel_matrix which = solvers[i].result;
            assert_right(judged(t));
            for (size_t k = 0; k < sizeof gross / sizeof *gross; k++) {
                put(t->now[which], 3, t->call.span[which].dtype, gross[k], 0);
                if (!(judged(t) > 1))
                    fail_msg("%c%s: %g passes", *type, solvers[i].name, gross[k]);
            }
        }
}

static void right_hand_sides_of_zero(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof solvers / sizeof *solvers; i++)
        for (const char *type = "sdcz"; *type && solvers[i].result == ACCEL_b; type++) {
            assert_right(judged(solved(*type, &solvers[i], 2, 0)));
            struct trial *t = solved(*type, &solvers[i], 2, 0);
            put(t->now[ACCEL_b], 1, t->call.span[ACCEL_b].dtype, 1, 0);
            assert_wrong(judged(t));
        }
}

/* The factor of a wide matrix has no diagonal beyond its rows: nothing behind the matrix is
 * read. */
static void wide_factors_that_are_no_numbers(void **state)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), bytes = sizeof(double) * N * 3;
    struct trial *t = open_trial("dgetrf");
    char *pages = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    (void)state;
    assert_true(pages != MAP_FAILED && bytes <= page);
    assert_int_equal(mprotect(pages + page, page, PROT_NONE), 0);
    struct accel_span *a = &t->call.span[ACCEL_a];
    t->call.blas.size[ACCEL_m] = a->rows = a->ld = 3;
    set_old(t, ACCEL_a, 2, 1);
    a->ptr = pages + page - bytes;
    fill(a->ptr, &t->call, ACCEL_a, NAN, 1);
    exchange_nothing(t);
    assert_wrong(judged(t));
    munmap(pages, 2 * page);
}

static void solutions_beyond_the_range_are_not_judged(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof solvers / sizeof *solvers; i++)
        for (const char *type = "sc"; *type; type++)
            for (int k = 0; k < 2; k++) { /* Inf, then NaN as well */
                const enum accel_matrix which = solvers[i].result;
                const bool inverse = which == ACCEL_a;
                struct trial *t = solved(*type, &solvers[i], inverse ? 3e-20 : 1e-10, 1e20);
                set(t, which, INFINITY, k == 0 ? INFINITY : NAN);
                if (judged(t) != CPU_REF_NOT_JUDGED)
                    fail_msg("%c%s: %g", *type, solvers[i].name, judged(t));
            }
}

/* D has blocks of two columns, and what eliminates has elements everywhere. */
static void indefinite_solutions(void **state)
{
    (void)state;
    for (const char *type = "dz"; *type; type++)
        for (const char *uplo = "UL"; *uplo; uplo++)
            for (int k = 0; k < 3; k++) {
                const double least = k < 2 ? 1 : 1e-280;
                struct trial *t = open_trial(*type == 'd' ? "dsytrs" : "zhetrs");
                const enum accel_dtype dtype = t->call.span[ACCEL_a].dtype;
                t->call.blas.flag[ACCEL_uplo] = *uplo;
                set(t, ACCEL_a, 0, 0.1);
                for (int64_t i = 0; i < N; i += 2) /* [0 1; 1 0] */
                    put(t->now[ACCEL_a], *uplo == 'U' ? i + (i + 1) * N : i + 1 + i * N, dtype,
                        i == 4 ? least : 1, 0);
                for (int64_t i = 0; i < N; i++) /* rows 2 and 1, 4 and 3 ... */
                    put(t->now[ACCEL_x], i, ACCEL_INT32,
                        -(double)(*uplo == 'U' ? i / 2 * 2 + 1 : i / 2 * 2 + 2), 0);
                set_old(t, ACCEL_b, 1, 1);
                set(t, ACCEL_b, k == 0 ? 1 : INFINITY, 0);
                if (k < 2)
                    assert_wrong(judged(t));
                else
                    assert_unknown(judged(t));
            }
}

/* A = a times the identity, its singular values are a, and B's diagonal is b. */
static struct trial *solved_by_values(const char *name, double a, double b)
{
    static const int32_t rank = N;
    struct trial *t = open_trial(name);
    t->call.span[ACCEL_found].ptr = (void *)(uintptr_t)&rank;
    set(t, ACCEL_a, a, 0);
    for (int i = 0; i < N; i++)
        put(t->now[ACCEL_x], i, t->call.span[ACCEL_x].dtype, a, 0);
    set_old(t, ACCEL_b, b, 0);
    set(t, ACCEL_b, b / a, 0);
    return t;
}

static void least_squares_by_values(void **state)
{
    static const double gross[] = {1e65, 1e200, INFINITY, NAN};
    (void)state;
    struct trial *t = solved_by_values("dgelsd", 4, 3);
    assert_right(judged(t));
    for (size_t i = 0; i < sizeof gross / sizeof *gross; i++) {
        t->now[ACCEL_b][3] = gross[i];
        assert_wrong(judged(t));
    }
    assert_unknown(judged(solved_by_values("sgelsd", 1e-20, 1e20)));
}

/* X = B / 1e24 is below the smallest number: 0 is right. */
static void solutions_that_vanish(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof solvers / sizeof *solvers; i++) {
        if (solvers[i].result == ACCEL_a)
            continue;
        struct trial *t = solved('s', &solvers[i], 1e11, 1e-24);
        set(t, ACCEL_b, 0, 0);
        const double ratio = judged(t);
        if (ratio > 1)
            fail_msg("s%s: %g", solvers[i].name, ratio);
        t = solved('s', &solvers[i], 2, 1); /* there it is wrong */
        set(t, ACCEL_b, 0, 0);
        assert_wrong(judged(t));
    }
}

/* A times X = `off` times B, A = a times the identity, which the call has factored. */
static double judged_factored(char type, const struct solver *s, double a, double off)
{
    struct trial *t = solved(type, s, sqrt(a), 1e-5);
    set_old(t, ACCEL_a, a, 0);
    set(t, ACCEL_b, 1e-5 / a * off, 1e-5 / a * off / 2);
    return judged(t);
}

/* Factors of denormal elements err by a part of the smallest number, and with them the solution. */
static void solutions_by_denormal_matrices(void **state)
{
    static const double ordinary[] = {4, 1e-10, 1e-20, 1e-28};
    const double least = 0x1p-149;
    (void)state;
    for (size_t i = 0; i < sizeof solvers / sizeof *solvers; i++) {
        const struct solver *s = &solvers[i];
        if (s->result != ACCEL_b || !(open_solver('s', s)->call.span[ACCEL_a].access & ACCEL_WRITE))
            continue;
        for (const char *type = "sc"; *type; type++) {
            const double ratio = judged_factored(*type, s, 1000 * least, 1000 / 1000.4);
            if (ratio > 1)
                fail_msg("%c%s: %g", *type, s->name, ratio);
            for (size_t k = 0; k < sizeof ordinary / sizeof *ordinary; k++)
                assert_wrong(judged_factored(*type, s, ordinary[k], 1000 / 1000.4));
            assert_wrong(judged_factored(*type, s, 1e-33, 2)); /* no denormal number yet */
        }
    }
}

/* ---- Products ---- */

static struct trial *gemv(const char *name, double alpha, double a, double x, double y)
{
    struct trial *t = open_trial(name);
    t->call.blas.scalar[ACCEL_alpha].re = alpha;
    t->call.blas.scalar[ACCEL_beta].re = 0;
    set(t, ACCEL_a, a, a);
    set(t, ACCEL_x, x, x);
    set(t, ACCEL_y, y, y);
    return t;
}

static void products_beyond_the_range_are_not_judged(void **state)
{
    (void)state;
    assert_right(judged(gemv("sgemv", 1, 1e10, 1e10, N * 1e20)));
    assert_wrong(judged(gemv("sgemv", 1, 1e10, 1e10, INFINITY)));
    assert_wrong(judged(gemv("sgemv", 1, 1e10, 1e10, NAN)));
    assert_unknown(judged(gemv("sgemv", 1, 1e19, 1e19, INFINITY)));
    assert_unknown(judged(gemv("dgemv", 1e10, 1e150, 1e150, INFINITY)));
    assert_unknown(judged(gemv("dgemv", 1e-20, 1e154, 1e153, INFINITY))); /* before alpha */
    struct trial *t = open_trial("strsv");
    set(t, ACCEL_a, 1e-30, 0);
    set_old(t, ACCEL_x, 1e10, 1e10);
    set(t, ACCEL_x, INFINITY, INFINITY);
    assert_unknown(judged(t));
    set(t, ACCEL_a, 2, 0);
    assert_wrong(judged(t));
    set(t, ACCEL_x, 5e9, 5e9);
    assert_right(judged(t));
}

/* alpha x, or a solution, is rounded to a multiple of the smallest number, and then multiplied with
 * large elements. */
static void factors_that_underflow(void **state)
{
    (void)state;
    const double exact = 47 * 0x1p-149; /* of the smallest number */
    struct trial *t = gemv("sgemv", 1e-22, 1e30, 6.6e-22, N * 1e30 * exact);
    assert_right(judged(t));
    put(t->now[ACCEL_y], 3, ACCEL_FLOAT32, N * 1e30 * exact * 2, 0);
    assert_wrong(judged(t));
    t = gemv("sgemv", 1, 1e30, exact, N * 1e30 * exact); /* nothing is rounded here */
    assert_right(judged(t));
    put(t->now[ACCEL_y], 3, ACCEL_FLOAT32, N * 1e30 * exact * (1 + 1e-4), 0);
    assert_wrong(judged(t));
    t = open_trial("strsv");
    set(t, ACCEL_a, 1e30, 0);
    set_old(t, ACCEL_x, 6.6e-14, 6.6e-14);
    set(t, ACCEL_x, exact, exact);
    assert_right(judged(t));
    put(t->now[ACCEL_x], 3, ACCEL_FLOAT32, exact * 2, 0);
    assert_wrong(judged(t));
}

static struct trial *gemm(double a, double b, double c)
{
    struct trial *t = open_trial("dgemm");
    t->call.blas.scalar[ACCEL_beta].re = 0;
    set(t, ACCEL_a, a, a);
    set(t, ACCEL_b, b, b);
    set(t, ACCEL_c, c, c);
    return t;
}

/* Squares of rows underflow. */
static void tiny_rows_are_not_judged(void **state)
{
    (void)state;
    assert_unknown(judged(gemm(1e-165, 1e40, N * 1e-125 * (1 + 1e-15))));
    assert_unknown(judged(gemm(1e40, 1e-165, N * 1e-125 * (1 + 1e-15))));
    assert_right(judged(gemm(1e-140, 1e-140, N * 1e-280 * (1 + 1e-15))));
    assert_wrong(judged(gemm(1e-140, 1e-140, N * 1e-280 * (1 + 1e-9))));
    assert_wrong(judged(gemm(1e-165, 1e40, INFINITY)));
    struct trial *t = gemm(1, 1, N);
    for (int64_t col = 0; col < N; col++) { /* row 2 */
        t->now[ACCEL_a][2 + col * N] = 1e-165;
        t->now[ACCEL_c][2 + col * N] = N * 1e-165;
    }
    assert_unknown(judged(t));
    t->now[ACCEL_c][5] += 1;
    assert_wrong(judged(t));
    t = gemm(1e-165, 1, N);
    t->call.blas.scalar[ACCEL_beta].re = 1; /* beside this, they do not count */
    set_old(t, ACCEL_c, N, N);
    assert_right(judged(t));
    t->now[ACCEL_c][5] += 1;
    assert_wrong(judged(t));
}

/* Squares of all that is solved underflow: of a wrong solution, too. */
static void tiny_solutions_are_not_judged(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof solvers / sizeof *solvers; i++) {
        const struct solver *const s = &solvers[i];
        if (s->result != ACCEL_b || strcmp(s->name, "gels") == 0 || strcmp(s->name, "trsm") == 0)
            continue;
        struct trial *t = solved('d', s, 0x1p-50, 0x1p-100); /* small ones are */
        assert_right(judged(t));
        put(t->now[ACCEL_b], 3, ACCEL_FLOAT64, 1 + 1e-9, 0);
        assert_wrong(judged(t));
        t = solved('d', s, 0x1p-480, 0x1p-960);
        assert_false(judged(t) > 1);
        put(t->now[ACCEL_b], 3, ACCEL_FLOAT64, 3, 0);
        assert_unknown(judged(t));
    }
}

/* A row of one product of a batch cannot be judged, and another row or product is wrong. */
static void each_product_of_a_batch_counts(void **state)
{
    enum { COUNT = 3 };
    static double x[3][COUNT][N * N];
    const void *const before[ACCEL_SPANS] = {NULL};
    (void)state;
    for (int nan = 0; nan < COUNT; nan++)
        for (int wrong = -1; wrong < COUNT; wrong++) {
            struct trial *t = open_trial("dgemm_batch_strided");
            t->call.batch = COUNT;
            t->call.blas.scalar[ACCEL_beta].re = 0;
            for (int i = ACCEL_a; i <= ACCEL_c; i++) {
                t->call.span[i].ptr = x[i];
                t->call.span[i].stride = N * N;
                for (int64_t k = 0; k < COUNT; k++)
                    fill(x[i][k], &t->call, (enum accel_matrix)i, i == ACCEL_c ? N : 1,
                         i == ACCEL_c ? N : 1);
            }
            x[ACCEL_a][nan][0] = NAN;
            if (wrong >= 0)
                x[ACCEL_c][wrong][7] += 1;
            const double ratio = cpu_ref_verify(&t->call, before, 1, 0);
            if (wrong >= 0)
                assert_wrong(ratio);
            else
                assert_unknown(ratio);
        }
    assert_wrong(cpu_ref_worse_of(CPU_REF_NOT_JUDGED, 2));
    assert_unknown(cpu_ref_worse_of(0.5, CPU_REF_NOT_JUDGED));
    assert_right(cpu_ref_worse_of(0.5, 1));
}

/* ---- Eigenvalues and singular values ---- */

/* A = diag(1, 2 ...), whose vectors are those of the identity. */
static struct trial *spectrum(const char *name, enum accel_matrix vectors)
{
    struct trial *t = open_trial(name);
    set_old(t, ACCEL_a, 0, 0);
    for (int64_t i = 0; i < N; i++) {
        put(t->old[ACCEL_a], i * (N + 1), ACCEL_FLOAT64, (double)i + 1, 0);
        put(t->now[ACCEL_x], i, ACCEL_FLOAT64, (double)i + 1, 0);
    }
    memcpy(t->now[ACCEL_a], t->old[ACCEL_a], sizeof t->old[0]);
    set(t, vectors, 1, 0);
    return t;
}

static void exchange(double *x, double *y, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        const double old = x[i];
        x[i] = y[i];
        y[i] = old;
    }
}

static void exchange_pairs(struct trial *t, enum accel_matrix vectors)
{
    exchange(t->now[ACCEL_x] + 2, t->now[ACCEL_x] + 5, 1);
    exchange(t->now[vectors] + 2 * N, t->now[vectors] + 5 * N, N);
}

static void eigenvalues_ascend(void **state)
{
    (void)state;
    struct trial *t = spectrum("dsyevd", ACCEL_a);
    assert_right(judged(t));
    exchange_pairs(t, ACCEL_a);
    assert_wrong(judged(t));
    t->call.blas.flag[ACCEL_jobz] = 'N';
    assert_wrong(judged(t));
    exchange_pairs(t, ACCEL_a);
    assert_right(judged(t));
    t = spectrum("dsygvd", ACCEL_a);
    set(t, ACCEL_b, 1, 0);
    set_old(t, ACCEL_b, 1, 0);
    assert_right(judged(t));
    exchange_pairs(t, ACCEL_a);
    assert_wrong(judged(t));
    t->call.blas.flag[ACCEL_jobz] = 'N';
    assert_wrong(judged(t));
    exchange_pairs(t, ACCEL_a);
    assert_unknown(judged(t));
}

static void eigenvalues_are_in_their_range(void **state)
{
    (void)state;
    struct trial *t = spectrum("dsyevr", ACCEL_c);
    int32_t found = N;
    t->call.span[ACCEL_found].ptr = &found;
    t->call.blas.flag[ACCEL_range] = 'V';
    t->call.blas.scalar[ACCEL_vl].re = 1 - 1e-3;
    t->call.blas.scalar[ACCEL_vu].re = INFINITY;
    assert_right(judged(t));
    exchange_pairs(t, ACCEL_c);
    assert_wrong(judged(t));
    exchange_pairs(t, ACCEL_c);
    t->call.blas.scalar[ACCEL_vl].re = 1.5;
    assert_wrong(judged(t));
    t->call.blas.scalar[ACCEL_vl].re = 0;
    t->call.blas.scalar[ACCEL_vu].re = N - 1;
    assert_wrong(judged(t));
    t->call.blas.flag[ACCEL_jobz] = 'N';
    found = 3;
    assert_unknown(judged(t));
    t->call.blas.scalar[ACCEL_vu].re = 2;
    assert_wrong(judged(t));
}

static void all_eigenvalues_that_are_asked_for_are_found(void **state)
{
    (void)state;
    struct trial *t = spectrum("dsyevr", ACCEL_c);
    int32_t found = N;
    t->call.span[ACCEL_found].ptr = &found;
    t->call.blas.flag[ACCEL_range] = 'A';
    assert_right(judged(t));
    found = N - 1;
    assert_wrong(judged(t));
    t->call.blas.flag[ACCEL_range] = 'I';
    t->call.blas.size[ACCEL_il] = 1;
    t->call.blas.size[ACCEL_iu] = N - 1;
    assert_right(judged(t));
    t->call.blas.size[ACCEL_iu] = N - 2;
    assert_wrong(judged(t));
    t->call.blas.size[ACCEL_iu] = N;
    assert_wrong(judged(t));
    t->call.blas.flag[ACCEL_jobz] = 'N';
    assert_wrong(judged(t));
    t->call.blas.flag[ACCEL_range] = 'V';
    t->call.blas.scalar[ACCEL_vl].re = 0;
    t->call.blas.scalar[ACCEL_vu].re = N + 1;
    assert_unknown(judged(t));
}

/* Of B = 1, no eigenvalue and no vector is huge; of a tiny B, they may be beyond the range. */
static void huge_generalised_eigenvalues(void **state)
{
    (void)state;
    struct trial *t = spectrum("dsygvd", ACCEL_a);
    set(t, ACCEL_b, 1, 0);
    set_old(t, ACCEL_b, 1, 0);
    for (int k = 0; k < 3; k++) {
        t->now[ACCEL_a][3] = k == 0 ? 1e100 : k == 1 ? INFINITY : NAN;
        assert_wrong(judged(t));
    }
    t = spectrum("dsygvd", ACCEL_a);
    set(t, ACCEL_b, 1e-27, 0);
    set_old(t, ACCEL_b, 1e-54, 0);
    set(t, ACCEL_a, 1e27, 0);
    t->now[ACCEL_x][N - 1] = INFINITY;
    assert_unknown(judged(t));
}

static void singular_values_descend(void **state)
{
    (void)state;
    for (int k = 0; k < 4; k++) {
        struct trial *t = spectrum("dgesdd", ACCEL_b);
        set(t, ACCEL_c, 0, 0);
        set(t, ACCEL_b, 0, 0);
        for (int64_t i = 0; i < N; i++) {
            t->now[ACCEL_x][i] = (double)(N - i);
            t->now[ACCEL_b][N - 1 - i + i * N] = 1;
            t->now[ACCEL_c][i + (N - 1 - i) * N] = 1;
        }
        if (k == 0)
            assert_right(judged(t));
        if (k == 1) { /* out of order, with their vectors */
            exchange_pairs(t, ACCEL_b);
            for (int64_t col = 0; col < N; col++)
                exchange(&t->now[ACCEL_c][2 + col * N], &t->now[ACCEL_c][5 + col * N], 1);
            assert_wrong(judged(t));
        }
        if (k >= 2) { /* negative, the last one or another */
            const int64_t i = k == 2 ? N - 1 : 3;
            t->now[ACCEL_x][i] *= -1;
            t->now[ACCEL_b][N - 1 - i + i * N] *= -1;
            assert_wrong(judged(t));
        }
    }
}

/* ---- Elements that are not read ---- */

/* Where LAPACK does not read, programs may have anything, and the result is judged all the same. */
static void what_is_not_read_may_be_anything(void **state)
{
    static const double anything[] = {NAN, INFINITY, 1e100};
    const int64_t half = N / 2;
    (void)state;
    for (size_t i = 0; i < sizeof anything / sizeof *anything; i++) {
        struct trial *t = open_trial("dgels"); /* wide: B's last rows are the solution's alone */
        t->call.blas.size[ACCEL_m] = t->call.span[ACCEL_a].ld = half;
        shape_operands(&t->call);
        set_old(t, ACCEL_a, 2, 0);
        set(t, ACCEL_a, 2, 0);
        set_old(t, ACCEL_b, 2, 0);
        set(t, ACCEL_b, 1, 0);
        for (int64_t col = 0; col < N; col++)
            for (int64_t row = half; row < N; row++) {
                t->old[ACCEL_b][row + col * N] = anything[i];
                t->now[ACCEL_b][row + col * N] = 0;
            }
        assert_right(judged(t));
        t->now[ACCEL_b][0] = 2;
        assert_wrong(judged(t));

        t = open_trial("dorgqr"); /* the reflectors' other columns, and what is above them */
        t->call.blas.size[ACCEL_k] = half;
        shape_operands(&t->call);
        set_old(t, ACCEL_a, anything[i], 0);
        for (int64_t at = half * N; at < N * N; at++)
            t->old[ACCEL_a][at] = anything[i];
        set(t, ACCEL_a, 1, 0);
        memset(t->now[ACCEL_x], 0, sizeof t->now[ACCEL_x]);
        assert_right(judged(t));
        t->now[ACCEL_a][0] = 2;
        assert_wrong(judged(t));

        t = open_trial("dtrtri"); /* a unit diagonal */
        t->call.blas.flag[ACCEL_diag] = 'U';
        set_old(t, ACCEL_a, anything[i], 0);
        set(t, ACCEL_a, anything[i], 0);
        assert_right(judged(t));
        t->now[ACCEL_a][1] = 1;
        assert_wrong(judged(t));
    }
}

/* ---- A triangle that is no factor ---- */

static void triangles_with_a_complex_diagonal(void **state)
{
    (void)state;
    struct trial *t = open_trial("zlauum");
    set_old(t, ACCEL_a, 2, 0);
    set(t, ACCEL_a, 4, 0);
    assert_right(judged(t));
    put(t->now[ACCEL_a], 0, ACCEL_COMPLEX128, 5, 0);
    assert_wrong(judged(t));
    put(t->old[ACCEL_a], 0, ACCEL_COMPLEX128, 2, 1); /* its real part's square is 4, its own is 5 */
    assert_unknown(judged(t));
    t = solved('z', &(struct solver){"potri", 1, ACCEL_a}, 2, 1);
    assert_right(judged(t));
    put(t->old[ACCEL_a], 0, ACCEL_COMPLEX128, 2, 1);
    assert_unknown(judged(t));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gross_errors_in_solutions_are_seen),
        cmocka_unit_test(right_hand_sides_of_zero),
        cmocka_unit_test(wide_factors_that_are_no_numbers),
        cmocka_unit_test(solutions_beyond_the_range_are_not_judged),
        cmocka_unit_test(indefinite_solutions),
        cmocka_unit_test(least_squares_by_values),
        cmocka_unit_test(solutions_that_vanish),
        cmocka_unit_test(solutions_by_denormal_matrices),
        cmocka_unit_test(products_beyond_the_range_are_not_judged),
        cmocka_unit_test(factors_that_underflow),
        cmocka_unit_test(tiny_rows_are_not_judged),
        cmocka_unit_test(tiny_solutions_are_not_judged),
        cmocka_unit_test(each_product_of_a_batch_counts),
        cmocka_unit_test(eigenvalues_ascend),
        cmocka_unit_test(eigenvalues_are_in_their_range),
        cmocka_unit_test(all_eigenvalues_that_are_asked_for_are_found),
        cmocka_unit_test(huge_generalised_eigenvalues),
        cmocka_unit_test(singular_values_descend),
        cmocka_unit_test(what_is_not_read_may_be_anything),
        cmocka_unit_test(triangles_with_a_complex_diagonal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
