/* What cpu_ref/verify.h says of solutions near and beyond the range of their type, and of factors
 * that are none. Matrices are such that their factors are known. */
#define _GNU_SOURCE
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>
#include <sys/mman.h>
#include <unistd.h>

#include "call/shape.h"
#include "tests/lib/trial.h"

static void exchange_nothing(struct trial *t)
{
    struct accel_span *x = &t->call.span[ACCEL_x];
    for (int64_t i = 0; x->dtype == ACCEL_INT32 && i < N; i++)
        trial_put(t->now[ACCEL_x], i, x->dtype, (double)i + 1, 0);
}

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
    return trial_open(name);
}

static struct trial *solved(char type, const struct solver *s, double root, double b)
{
    const double a = root * root, factor = s->root == 1 ? root : a;
    struct trial *t = open_solver(type, s);
    const bool inverse = s->result == ACCEL_a;
    const bool overwrites = t->call.span[ACCEL_a].access & ACCEL_WRITE;
    trial_set(t, ACCEL_a, factor, 0);
    if (overwrites)
        trial_set_old(t, ACCEL_a, inverse ? factor : a, 0);
    if (inverse) {
        trial_set(t, ACCEL_a, 1 / a, 0);
    } else {
        trial_set_old(t, ACCEL_b, b, b / 2);
        trial_set(t, ACCEL_b, b / a, b / a / 2);
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
            assert_right(trial_judged(t));
            for (size_t k = 0; k < sizeof gross / sizeof *gross; k++) {
                trial_put(t->now[which], 3, t->call.span[which].dtype, gross[k], 0);
                if (!(trial_judged(t) > 1))
                    fail_msg("%c%s: %g passes", *type, solvers[i].name, gross[k]);
            }
        }
}

static void right_hand_sides_of_zero(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof solvers / sizeof *solvers; i++)
        for (const char *type = "sdcz"; *type && solvers[i].result == ACCEL_b; type++) {
            assert_right(trial_judged(solved(*type, &solvers[i], 2, 0)));
            struct trial *t = solved(*type, &solvers[i], 2, 0);
            trial_put(t->now[ACCEL_b], 1, t->call.span[ACCEL_b].dtype, 1, 0);
            assert_wrong(trial_judged(t));
        }
}

/* The factor of a wide matrix has no diagonal beyond its rows: nothing behind the matrix is
 * read. */
static void wide_factors_that_are_no_numbers(void **state)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), bytes = sizeof(double) * N * 3;
    struct trial *t = trial_open("dgetrf");
    char *pages = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    (void)state;
    assert_true(pages != MAP_FAILED && bytes <= page);
    assert_int_equal(mprotect(pages + page, page, PROT_NONE), 0);
    struct accel_span *a = &t->call.span[ACCEL_a];
    t->call.blas.size[ACCEL_m] = a->rows = a->ld = 3;
    trial_set_old(t, ACCEL_a, 2, 1);
    a->ptr = pages + page - bytes;
    trial_fill(a->ptr, &t->call, ACCEL_a, NAN, 1);
    exchange_nothing(t);
    assert_wrong(trial_judged(t));
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
                trial_set(t, which, INFINITY, k == 0 ? INFINITY : NAN);
                if (trial_judged(t) != CPU_REF_NOT_JUDGED)
                    fail_msg("%c%s: %g", *type, solvers[i].name, trial_judged(t));
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
                struct trial *t = trial_open(*type == 'd' ? "dsytrs" : "zhetrs");
                const enum accel_dtype dtype = t->call.span[ACCEL_a].dtype;
                t->call.blas.flag[ACCEL_uplo] = *uplo;
                trial_set(t, ACCEL_a, 0, 0.1);
                for (int64_t i = 0; i < N; i += 2) /* [0 1; 1 0] */
                    trial_put(t->now[ACCEL_a], *uplo == 'U' ? i + (i + 1) * N : i + 1 + i * N,
                              dtype, i == 4 ? least : 1, 0);
                for (int64_t i = 0; i < N; i++) /* rows 2 and 1, 4 and 3 ... */
                    trial_put(t->now[ACCEL_x], i, ACCEL_INT32,
                              -(double)(*uplo == 'U' ? i / 2 * 2 + 1 : i / 2 * 2 + 2), 0);
                trial_set_old(t, ACCEL_b, 1, 1);
                trial_set(t, ACCEL_b, k == 0 ? 1 : INFINITY, 0);
                if (k < 2)
                    assert_wrong(trial_judged(t));
                else
                    assert_unknown(trial_judged(t));
            }
}

/* A = a times the identity, its singular values are a, and B's diagonal is b. */
static struct trial *solved_by_values(const char *name, double a, double b)
{
    static const int32_t rank = N;
    struct trial *t = trial_open(name);
    t->call.span[ACCEL_found].ptr = (void *)(uintptr_t)&rank;
    trial_set(t, ACCEL_a, a, 0);
    for (int i = 0; i < N; i++)
        trial_put(t->now[ACCEL_x], i, t->call.span[ACCEL_x].dtype, a, 0);
    trial_set_old(t, ACCEL_b, b, 0);
    trial_set(t, ACCEL_b, b / a, 0);
    return t;
}

static void least_squares_by_values(void **state)
{
    static const double gross[] = {1e65, 1e200, INFINITY, NAN};
    (void)state;
    struct trial *t = solved_by_values("dgelsd", 4, 3);
    assert_right(trial_judged(t));
    for (size_t i = 0; i < sizeof gross / sizeof *gross; i++) {
        t->now[ACCEL_b][3] = gross[i];
        assert_wrong(trial_judged(t));
    }
    assert_unknown(trial_judged(solved_by_values("sgelsd", 1e-20, 1e20)));
}

/* X = B / 1e24 is below the smallest number: 0 is right. */
static void solutions_that_vanish(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof solvers / sizeof *solvers; i++) {
        if (solvers[i].result == ACCEL_a)
            continue;
        struct trial *t = solved('s', &solvers[i], 1e11, 1e-24);
        trial_set(t, ACCEL_b, 0, 0);
        const double ratio = trial_judged(t);
        if (ratio > 1)
            fail_msg("s%s: %g", solvers[i].name, ratio);
        t = solved('s', &solvers[i], 2, 1); /* there it is wrong */
        trial_set(t, ACCEL_b, 0, 0);
        assert_wrong(trial_judged(t));
    }
}

/* A times X = `off` times B, A = a times the identity, which the call has factored. */
static double judged_factored(char type, const struct solver *s, double a, double off)
{
    struct trial *t = solved(type, s, sqrt(a), 1e-5);
    trial_set_old(t, ACCEL_a, a, 0);
    trial_set(t, ACCEL_b, 1e-5 / a * off, 1e-5 / a * off / 2);
    return trial_judged(t);
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

/* Squares of all that is solved underflow: of a wrong solution, too. */
static void tiny_solutions_are_not_judged(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof solvers / sizeof *solvers; i++) {
        const struct solver *const s = &solvers[i];
        if (s->result != ACCEL_b || strcmp(s->name, "gels") == 0 || strcmp(s->name, "trsm") == 0)
            continue;
        struct trial *t = solved('d', s, 0x1p-50, 0x1p-100); /* small ones are */
        assert_right(trial_judged(t));
        trial_put(t->now[ACCEL_b], 3, ACCEL_FLOAT64, 1 + 1e-9, 0);
        assert_wrong(trial_judged(t));
        t = solved('d', s, 0x1p-480, 0x1p-960);
        assert_false(trial_judged(t) > 1);
        trial_put(t->now[ACCEL_b], 3, ACCEL_FLOAT64, 3, 0);
        assert_unknown(trial_judged(t));
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
        struct trial *t = trial_open("dgels"); /* wide: B's last rows are the solution's alone */
        t->call.blas.size[ACCEL_m] = t->call.span[ACCEL_a].ld = half;
        shape_operands(&t->call);
        trial_set_old(t, ACCEL_a, 2, 0);
        trial_set(t, ACCEL_a, 2, 0);
        trial_set_old(t, ACCEL_b, 2, 0);
        trial_set(t, ACCEL_b, 1, 0);
        for (int64_t col = 0; col < N; col++)
            for (int64_t row = half; row < N; row++) {
                t->old[ACCEL_b][row + col * N] = anything[i];
                t->now[ACCEL_b][row + col * N] = 0;
            }
        assert_right(trial_judged(t));
        t->now[ACCEL_b][0] = 2;
        assert_wrong(trial_judged(t));

        t = trial_open("dorgqr"); /* the reflectors' other columns, and what is above them */
        t->call.blas.size[ACCEL_k] = half;
        shape_operands(&t->call);
        trial_set_old(t, ACCEL_a, anything[i], 0);
        for (int64_t at = half * N; at < N * N; at++)
            t->old[ACCEL_a][at] = anything[i];
        trial_set(t, ACCEL_a, 1, 0);
        memset(t->now[ACCEL_x], 0, sizeof t->now[ACCEL_x]);
        assert_right(trial_judged(t));
        t->now[ACCEL_a][0] = 2;
        assert_wrong(trial_judged(t));

        t = trial_open("dtrtri"); /* a unit diagonal */
        t->call.blas.flag[ACCEL_diag] = 'U';
        trial_set_old(t, ACCEL_a, anything[i], 0);
        trial_set(t, ACCEL_a, anything[i], 0);
        assert_right(trial_judged(t));
        t->now[ACCEL_a][1] = 1;
        assert_wrong(trial_judged(t));
    }
}

/* ---- A triangle that is no factor ---- */

static void triangles_with_a_complex_diagonal(void **state)
{
    (void)state;
    struct trial *t = trial_open("zlauum");
    trial_set_old(t, ACCEL_a, 2, 0);
    trial_set(t, ACCEL_a, 4, 0);
    assert_right(trial_judged(t));
    trial_put(t->now[ACCEL_a], 0, ACCEL_COMPLEX128, 5, 0);
    assert_wrong(trial_judged(t));
    trial_put(t->old[ACCEL_a], 0, ACCEL_COMPLEX128, 2,
              1); /* its real part's square is 4, its own is 5 */
    assert_unknown(trial_judged(t));
    t = solved('z', &(struct solver){"potri", 1, ACCEL_a}, 2, 1);
    assert_right(trial_judged(t));
    trial_put(t->old[ACCEL_a], 0, ACCEL_COMPLEX128, 2, 1);
    assert_unknown(trial_judged(t));
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
        cmocka_unit_test(tiny_solutions_are_not_judged),
        cmocka_unit_test(what_is_not_read_may_be_anything),
        cmocka_unit_test(triangles_with_a_complex_diagonal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
