/* Which calls of GSL's functions are known, and their operands and work (ops/gsl/). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "ops/convention.h"
#include "ops/gsl/gsl.h"
#include "ops/names.h"
#include "ops/typical.h"
#include "tests/lib/routine.h"

enum { MOST = 8 };

/* The arguments of a call: a matrix, then what the function has behind it. */
struct arguments {
    struct gsl_matrix a, v;
    struct gsl_vector tau, work;
    struct gsl_permutation p;
    bool no_matrix, no_second, no_third;
};

static double memory[2 * MOST * MOST], vectors[2 * MOST * MOST], numbers[2 * MOST], work[MOST];
static size_t order[MOST];
static int sign;

/* A call of m x n that GSL would take. */
static struct arguments of_sizes(const char *name, size_t m, size_t n)
{
    const size_t least = m < n ? m : n;
    const bool reduces = strstr(name, "td") != NULL;
    return (struct arguments){.a = {m, n, MOST, memory},
                              .v = {n, n, MOST, vectors},
                              .tau = {reduces ? n - 1 : least, 1, numbers},
                              .work = {n, 1, work},
                              .p = {m, order}};
}

static bool is_known(const char *name, const struct arguments *x, struct accel_call *call)
{
    const void *second = &x->tau, *third = NULL, *fourth = NULL;
    if (strcmp(name, "gsl_lu") == 0) {
        second = &x->p;
        third = &sign;
    } else if (strcmp(name, "gsl_sv") == 0) {
        second = &x->v;
        third = &x->tau;
        fourth = &x->work;
    }
    const uint64_t gpr[ACCEL_WORD_REGISTERS] = {
        x->no_matrix ? 0 : (uintptr_t)&x->a, x->no_second ? 0 : (uintptr_t)second,
        x->no_third ? 0 : (uintptr_t)third, (uintptr_t)fourth};
    const struct accel_passed passed = {.gpr = gpr, .abi = ACCEL_ABI_OWN, .layout = 7};
    return accel_convention_of(routine(name))->parse(call, routine(name), &passed);
}

static const char *const names[] = {"gsl_cholesky", "gsl_lu",     "gsl_qr",    "gsl_sv",
                                    "gsl_lq",       "gsl_symmtd", "gsl_hermtd"};
enum { NAMES = sizeof names / sizeof *names };

/* All are of square matrices, but QR and SV are of tall ones, too, and LQ of wide ones. */
static void shapes(void **state)
{
    (void)state;
    for (int i = 0; i < NAMES; i++)
        for (size_t m = 1; m <= 4; m++)
            for (size_t n = 1; n <= 4; n++) {
                const bool tall = strstr("gsl_qr gsl_sv", names[i]) != NULL,
                           wide = strcmp(names[i], "gsl_lq") == 0,
                           reduces = strstr(names[i], "td") != NULL;
                const bool expected = m == n ? !(reduces && n == 1) : m > n ? tall : wide;
                const struct arguments x = of_sizes(names[i], m, n);
                struct accel_call call;
                if (is_known(names[i], &x, &call) != expected)
                    fail_msg("%s of %zu x %zu", names[i], m, n);
                if (!expected)
                    continue;
                assert_int_equal(call.own.integer[GSL_SIZES], m);
                assert_int_equal(call.own.integer[GSL_SIZES + 1], n);
                assert_ptr_equal(call.span[ACCEL_a].ptr, memory);
                assert_int_equal(call.span[ACCEL_a].rows, n); /* by columns, it is the transpose */
                assert_int_equal(call.span[ACCEL_a].cols, m);
                assert_int_equal(call.span[ACCEL_a].ld, MOST);
            }
}

static void assert_unknown(const char *name, const struct arguments *x, const char *what)
{
    struct accel_call call;
    if (is_known(name, x, &call))
        fail_msg("%s: %s", name, what);
}

/* GSL's own error handler answers these. */
static void wrong_arguments(void **state)
{
    (void)state;
    for (int i = 0; i < NAMES; i++) {
        const struct arguments right = of_sizes(names[i], 4, 4);
        const bool has_tau =
            strcmp(names[i], "gsl_cholesky") != 0 && strcmp(names[i], "gsl_lu") != 0;
        struct arguments x = right;
        struct accel_call call;
        assert_true(is_known(names[i], &x, &call));
        x.no_matrix = true;
        assert_unknown(names[i], &x, "no matrix");
        x = right;
        x.a.data = NULL;
        assert_unknown(names[i], &x, "a matrix without data");
        x = right;
        x.a.size1 = x.a.size2 = 0;
        assert_unknown(names[i], &x, "no rows");
        x = right;
        x.a.tda = 3;
        assert_unknown(names[i], &x, "rows that overlap");
        x.a.tda = 4;
        assert_true(is_known(names[i], &x, &call));
        x.a.tda = (size_t)INT32_MAX + 1;
        assert_unknown(names[i], &x, "rows too far apart");
        x.a.tda = INT32_MAX;
        assert_true(is_known(names[i], &x, &call));
        if (!has_tau)
            continue;
        x = right;
        x.tau.data = NULL;
        assert_unknown(names[i], &x, "a vector without data");
        x = right;
        x.tau.stride = 2;
        assert_unknown(names[i], &x, "a vector with gaps");
        x = right;
        x.tau.size++;
        assert_unknown(names[i], &x, "a vector that is too long");
        x.tau.size -= 2;
        assert_unknown(names[i], &x, "a vector that is too short");
        x = right;
        x.no_second = true;
        assert_unknown(names[i], &x, "no second argument");
    }
}

static void wrong_permutations(void **state)
{
    const struct arguments right = of_sizes("gsl_lu", 4, 4);
    struct arguments x = right;
    (void)state;
    x.p.size = 3;
    assert_unknown("gsl_lu", &x, "a short permutation");
    x.p.size = 5;
    assert_unknown("gsl_lu", &x, "a long permutation");
    x = right;
    x.p.data = NULL;
    assert_unknown("gsl_lu", &x, "a permutation without data");
    x = right;
    x.no_second = true;
    assert_unknown("gsl_lu", &x, "no permutation");
    x = right;
    x.no_third = true;
    assert_unknown("gsl_lu", &x, "no place for the sign");
}

/* LAPACK's routines of the same factorisations have the same work; LQ that of QR of the transpose.
 * A reduction to tridiagonal form has 4/3 n^3 operations, complex ones four times as many. */
static void work_of_calls(void **state)
{
    static const struct {
        const char *name, *like;
        size_t m, n;
    } rows[] = {{"gsl_cholesky", "dpotrf", 7, 7}, {"gsl_lu", "dgetrf", 7, 7},
                {"gsl_qr", "dgeqrf", 7, 5},       {"gsl_qr", "dgeqrf", 7, 7},
                {"gsl_lq", "dgeqrf", 5, 7},       {"gsl_lq", "dgeqrf", 7, 7},
                {"gsl_symmtd", NULL, 7, 7},       {"gsl_hermtd", NULL, 7, 7}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct arguments x = of_sizes(rows[i].name, rows[i].m, rows[i].n);
        const int64_t m = (int64_t)rows[i].m, n = (int64_t)rows[i].n;
        struct accel_call call, like;
        assert_true(is_known(rows[i].name, &x, &call));
        double expected = (strcmp(rows[i].name, "gsl_hermtd") == 0 ? 16 : 4) * 343 / 3.0;
        if (rows[i].like) {
            shape_typical(&like, routine(rows[i].like), (int64_t[ACCEL_DIMENSIONS]){m, n, 0, 0});
            expected = accel_flops(&like);
        }
        const double is = accel_flops(&call);
        if (!(is > expected * 0.999999 && is < expected * 1.000001))
            fail_msg("%s: %g, not %g", rows[i].name, is, expected);
    }
}

static int64_t described[2];

static void put_integer(const struct accel_fields *fields, const char *name, int64_t value)
{
    (void)fields;
    described[strcmp(name, "m") != 0] = value;
}

static void descriptions(void **state)
{
    const struct accel_fields fields = {.integer = put_integer};
    const struct arguments x = of_sizes("gsl_qr", 7, 5);
    struct accel_call call;
    (void)state;
    assert_true(is_known("gsl_qr", &x, &call));
    accel_describe(&call, &fields);
    assert_int_equal(described[0], 7);
    assert_int_equal(described[1], 5);
}

/* ---- Versions ---- */

static char *version;

static void *symbol_of(const struct accel_provider *provider, const char *name)
{
    (void)provider;
    return version && strcmp(name, "gsl_version") == 0 ? &version : NULL;
}

static void versions(void **state)
{
    static const struct {
        const char *version;
        bool known;
    } rows[] = {{NULL, false},  {"2.6", true},  {"2.7.1", true}, {"2.8", true},   {"2.8+", true},
                {"2.5", false}, {"2.9", false}, {"2.10", false}, {"1.16", false}, {"12.7", false},
                {"3.7", false}, {"2", false},   {"", false}};
    const struct accel_provider provider = {.symbol = symbol_of};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        version = (char *)(uintptr_t)rows[i].version;
        assert_int_equal(gsl_accepts(&provider) > 0, rows[i].known);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(shapes),
                                       cmocka_unit_test(wrong_arguments),
                                       cmocka_unit_test(wrong_permutations),
                                       cmocka_unit_test(work_of_calls),
                                       cmocka_unit_test(descriptions),
                                       cmocka_unit_test(versions)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
