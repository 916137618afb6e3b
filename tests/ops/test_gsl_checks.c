/* The checks of GSL's factorisations (ops/gsl/): right results pass; a wrong number in any place
 * that the function writes does not, nor a wrong permutation, sign or order. Matrices that are no
 * numbers are not judged. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "cpu_ref/verify.h"
#include "ops/convention.h"
#include "ops/gsl/gsl.h"
#include "tests/lib/routine.h"

enum { N = 3, TDA = 4 };

/* A call of a function with these arguments, of a matrix of N rows, and its operand A as it was. */
struct tried {
    struct accel_call call;
    double before[N * N];
};

static struct tried parse(const char *name, const void *first, const void *second,
                          const void *third, const void *fourth)
{
    const uint64_t gpr[ACCEL_WORD_REGISTERS] = {(uintptr_t)first, (uintptr_t)second,
                                                (uintptr_t)third, (uintptr_t)fourth};
    const struct accel_passed passed = {.gpr = gpr, .abi = ACCEL_ABI_OWN, .layout = 7};
    const struct gsl_matrix *const a = first;
    struct tried tried;
    assert_true(accel_convention_of(routine(name))->parse(&tried.call, routine(name), &passed));
    for (size_t i = 0; i < N; i++)
        memcpy(&tried.before[i * N], &a->data[i * TDA], N * sizeof(double));
    return tried;
}

static double ratio(const struct tried *tried)
{
    const void *const before[ACCEL_SPANS] = {[ACCEL_a] = tried->before};
    return cpu_ref_verify(&tried->call, before, 5, 0);
}

static void assert_right(const struct tried *tried)
{
    const double is = ratio(tried);
    if (!(is >= 0 && is <= 1))
        fail_msg("%s: %g", tried->call.routine->name, is);
}

static void assert_wrong(const struct tried *tried)
{
    const double is = ratio(tried);
    if (!(is > 1))
        fail_msg("%s: %g", tried->call.routine->name, is);
}

/* Each of the matrix's numbers counts, and so do numbers around it not. */
static void each_counts(const struct tried *tried, double *data, size_t rows, size_t cols)
{
    for (size_t i = 0; i < rows; i++)
        for (size_t j = 0; j < cols; j++) {
            double *one = &data[i * TDA + j];
            const double was = *one;
            *one += 0.125;
            assert_wrong(tried);
            *one = NAN;
            assert_wrong(tried);
            *one = was;
        }
    assert_right(tried);
}

static void inputs_that_are_no_numbers(struct tried *tried, size_t place)
{
    tried->before[place] = NAN;
    assert_true(ratio(tried) == CPU_REF_NOT_JUDGED);
    tried->before[place] = 1e80;
    assert_true(ratio(tried) == CPU_REF_NOT_JUDGED);
}

/* P A = L U: rows 2, 0, 1 of A, two exchanges. */
static void lu(void **state)
{
    double a[N * TDA] = {2, 5, 6.5, 9, 1, 3.5, 10, 9, 4, 2, 1, 9};
    size_t p[N] = {2, 0, 1};
    int sign = 1;
    const struct gsl_matrix matrix = {N, N, TDA, a};
    const struct gsl_permutation permutation = {N, p};
    struct tried tried = parse("gsl_lu", &matrix, &permutation, &sign, NULL);
    const double factors[N * TDA] = {4, 2, 1, 9, 0.5, 4, 6, 9, 0.25, 0.75, 5.25, 9};
    (void)state;
    memcpy(a, factors, sizeof a);
    assert_right(&tried);
    each_counts(&tried, a, N, N);
    sign = -1;
    assert_wrong(&tried);
    sign = 1;
    const size_t wrong[][N] = {{2, 1, 0}, {2, 0, 0},        {2, 0, 3},
                               {0, 1, 2}, {2, 0, SIZE_MAX}, {2, 0, SIZE_MAX / 32}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        memcpy(p, wrong[i], sizeof p);
        for (sign = -1; sign <= 1; sign++)
            assert_wrong(&tried);
    }
    memcpy(p, (const size_t[]){2, 0, 1}, sizeof p);
    sign = 1;
    inputs_that_are_no_numbers(&tried, 1);
}

/* A is a permutation itself: L and U are identities. Its sign is that of its inversions. */
static void permutations(void **state)
{
    static const size_t rows[][N] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2},
                                     {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
    (void)state;
    for (size_t row = 0; row < sizeof rows / sizeof *rows; row++) {
        double a[N * TDA] = {0};
        size_t p[N];
        int sign = 1;
        const struct gsl_matrix matrix = {N, N, TDA, a};
        const struct gsl_permutation permutation = {N, p};
        memcpy(p, rows[row], sizeof p);
        for (size_t i = 0; i < N; i++) {
            a[p[i] * TDA + i] = 1;
            for (size_t j = 0; j < i; j++)
                sign = p[j] > p[i] ? -sign : sign;
        }
        const struct tried tried = parse("gsl_lu", &matrix, &permutation, &sign, NULL);
        memset(a, 0, sizeof a);
        for (size_t i = 0; i < N; i++)
            a[i * TDA + i] = 1;
        assert_right(&tried);
        sign = -sign;
        assert_wrong(&tried);
        sign = 0;
        assert_wrong(&tried);
    }
}

/* A = L L': what is above the diagonal goes in unread, and is A's lower triangle afterwards. */
static void cholesky(void **state)
{
    double a[N * TDA] = {4, NAN, NAN, 9, 2, 10, NAN, 9, 6, 9, 26, 9};
    const struct gsl_matrix matrix = {N, N, TDA, a};
    struct tried tried = parse("gsl_cholesky", &matrix, NULL, NULL, NULL);
    const double factors[N * TDA] = {2, 2, 6, 9, 1, 3, 9, 9, 3, 2, 3.605551275463989, 9};
    (void)state;
    memcpy(a, factors, sizeof a);
    assert_right(&tried);
    each_counts(&tried, a, N, N);
    inputs_that_are_no_numbers(&tried, 3);
}

/* The identity times values that fall: V's and U's columns are unit vectors. */
static void singular_values(void **state)
{
    double a[N * TDA] = {0, 2, 0, 9, 3, 0, 0, 9, 0, 0, 1, 9}, v[N * TDA] = {0}, s[N] = {3, 2, 1},
                 work[N] = {0};
    const struct gsl_matrix matrix = {N, N, TDA, a}, vectors = {N, N, TDA, v};
    const struct gsl_vector values = {N, 1, s}, workspace = {N, 1, work};
    struct tried tried = parse("gsl_sv", &matrix, &vectors, &values, &workspace);
    const double u[N * TDA] = {0, 1, 0, 9, 1, 0, 0, 9, 0, 0, 1, 9};
    (void)state;
    memcpy(a, u, sizeof a);
    v[0] = v[TDA + 1] = v[2 * TDA + 2] = 1;
    assert_right(&tried);
    each_counts(&tried, a, N, N);
    each_counts(&tried, v, N, N);
    /* The same matrix with values that are negative, and in another order. */
    s[2] = -1;
    v[2 * TDA + 2] = -1;
    assert_wrong(&tried);
    v[2 * TDA + 2] = s[2] = 1;
    memcpy(s, (const double[]){2, 3, 1}, sizeof s);
    memcpy(a, (const double[N * TDA]){1, 0, 0, 9, 0, 1, 0, 9, 0, 0, 1, 9}, sizeof a);
    memcpy(v, (const double[N * TDA]){0, 1, 0, 9, 1, 0, 0, 9, 0, 0, 1, 9}, sizeof v);
    assert_wrong(&tried);
    memcpy(s, (const double[]){3, 2, 1}, sizeof s);
    inputs_that_are_no_numbers(&tried, 2);
}

/* Reflectors of a matrix that is triangular already are none. */
static void qr_and_lq(void **state)
{
    static const char *const name[] = {"gsl_qr", "gsl_lq"};
    (void)state;
    for (int i = 0; i < 2; i++) {
        double a[N * TDA] = {2,         i ? 0 : 3, i ? 0 : 4, 9,         i ? 3 : 0, 5,
                             i ? 0 : 6, 9,         i ? 4 : 0, i ? 6 : 0, 7,         9},
                     tau[N] = {0};
        const struct gsl_matrix matrix = {N, N, TDA, a};
        const struct gsl_vector factors = {N, 1, tau};
        struct tried tried = parse(name[i], &matrix, &factors, NULL, NULL);
        assert_right(&tried);
        for (int k = 0; k < N; k++) {
            tau[k] = 1;
            assert_wrong(&tried);
            tau[k] = 0;
        }
        a[0] += 0.125;
        assert_wrong(&tried);
        a[0] -= 0.125;
        inputs_that_are_no_numbers(&tried, 0);
    }
}

/* The same of a tridiagonal matrix, above whose diagonal anything may be. */
static void tridiagonal(void **state)
{
    double a[N * TDA] = {2, NAN, NAN, 9, 3, 5, NAN, 9, 0, 6, 7, 9}, tau[N - 1] = {0};
    const struct gsl_matrix matrix = {N, N, TDA, a};
    const struct gsl_vector factors = {N - 1, 1, tau};
    struct tried tried = parse("gsl_symmtd", &matrix, &factors, NULL, NULL);
    (void)state;
    assert_right(&tried);
    for (int k = 0; k < N - 1; k++) {
        tau[k] = 1;
        assert_wrong(&tried);
        tau[k] = 0;
    }
    static const int places[] = {0, TDA, TDA + 1, 2 * TDA + 1, 2 * TDA + 2};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        a[places[i]] += 0.125;
        assert_wrong(&tried);
        a[places[i]] -= 0.125;
    }
    inputs_that_are_no_numbers(&tried, N);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lu),        cmocka_unit_test(permutations),
        cmocka_unit_test(cholesky),  cmocka_unit_test(singular_values),
        cmocka_unit_test(qr_and_lq), cmocka_unit_test(tridiagonal)};
    return cmocka_run_group_tests_name("ops/gsl", tests, NULL, NULL);
}
