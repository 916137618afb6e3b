/* Which calls of LAPACK have a fault, ask, do nothing, or can go to the GPU
 * (ops/rules/lapack_rules.h), by the documentation of its routines. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "ops/rules/lapack_rules.h"
#include "ops/rules/rules.h"
#include "ops/typical.h"
#include "tests/lib/routine.h"

static struct accel_call call_of(const char *name, int64_t m, int64_t n, int64_t nrhs)
{
    struct accel_call call;
    shape_typical(&call, routine(name), (int64_t[ACCEL_DIMENSIONS]){m, n, n, nrhs});
    return call;
}

static void assert_fault(const struct accel_call *call, const char *expected)
{
    const char *is = lapack_fault(call);
    if (is ? !expected || strcmp(is, expected) != 0 : expected != NULL)
        fail_msg("%s: %s, not %s", call->routine->name, is ? is : "none",
                 expected ? expected : "none");
}

static void parts_of_the_spectrum(void **state)
{
    static const struct {
        int64_t n;
        char range;
        double vl, vu;
        int64_t il, iu;
        const char *fault;
    } rows[] = {
        {9, 'A', 5, 1, 7, 3, NULL}, /* nothing of that is read */
        {9, 'V', 1, 2, 7, 3, NULL},   {9, 'V', 2, 2, 1, 9, "vu"},   {9, 'V', 2, 1, 1, 9, "vu"},
        {9, 'V', NAN, 1, 1, 9, "vu"}, {9, 'V', 1, NAN, 1, 9, "vu"}, {0, 'V', 2, 1, 1, 9, NULL},
        {9, 'I', 2, 1, 1, 9, NULL},   {9, 'I', 2, 1, 9, 9, NULL},   {9, 'I', 2, 1, 4, 4, NULL},
        {9, 'I', 2, 1, 0, 4, "il"},   {9, 'I', 2, 1, 10, 10, "il"}, {9, 'I', 2, 1, 4, 3, "iu"},
        {9, 'I', 2, 1, 4, 10, "iu"},  {0, 'I', 2, 1, 1, 0, NULL},   {0, 'I', 2, 1, 1, 1, "iu"},
        {0, 'I', 2, 1, 2, 0, "il"},   {0, 'I', 2, 1, 1, -1, "iu"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct accel_call call = call_of("dsyevx", 0, rows[i].n, 0);
        call.blas.flag[ACCEL_range] = rows[i].range;
        call.blas.scalar[ACCEL_vl].re = rows[i].vl;
        call.blas.scalar[ACCEL_vu].re = rows[i].vu;
        call.blas.size[ACCEL_il] = rows[i].il;
        call.blas.size[ACCEL_iu] = rows[i].iu;
        assert_fault(&call, rows[i].fault);
        assert_null(lapack_shape_fault(&call)); /* which does not look at it */
        assert_int_equal(lapack_is_part(&call), rows[i].range != 'A');
    }
    const struct accel_call other = call_of("dsyevd", 0, 9, 0);
    assert_false(lapack_is_part(&other));
}

/* LWORK of geqrf is at least max(1, N); of zheevd with vectors, the three lengths are at least
 * 2 N + N^2, 1 + 5 N + 2 N^2 and 3 + 5 N. */
static void lengths_of_workspace(void **state)
{
    struct accel_call call = call_of("dgeqrf", 9, 7, 0);
    (void)state;
    assert_fault(&call, NULL); /* LAPACKE's caller passes none */
    call.blas.has_work = true;
    assert_fault(&call, "lwork");
    call.blas.size[ACCEL_lwork] = 6;
    assert_fault(&call, "lwork");
    call.blas.size[ACCEL_lwork] = 7;
    assert_fault(&call, NULL);
    assert_false(lapack_is_query(&call));
    call.blas.size[ACCEL_lwork] = -1;
    assert_true(lapack_is_query(&call));
    assert_fault(&call, NULL);
    call.blas.has_work = false;
    assert_false(lapack_is_query(&call));
    call = call_of("dgeqrf", 9, 0, 0);
    call.blas.has_work = true;
    assert_fault(&call, "lwork");
    call.blas.size[ACCEL_lwork] = 1;
    assert_fault(&call, NULL);

    call = call_of("zheevd", 0, 10, 0);
    call.blas.has_work = true;
    call.blas.size[ACCEL_lwork] = 120;
    call.blas.size[ACCEL_lrwork] = 251;
    call.blas.size[ACCEL_liwork] = 53;
    assert_fault(&call, NULL);
    static const struct {
        enum accel_size which;
        const char *name;
    } lengths[] = {{ACCEL_lwork, "lwork"}, {ACCEL_lrwork, "lrwork"}, {ACCEL_liwork, "liwork"}};
    for (int i = 0; i < 3; i++) {
        struct accel_call one = call;
        one.blas.size[lengths[i].which]--;
        assert_fault(&one, lengths[i].name);
        one.blas.size[lengths[i].which] = -1;
        assert_true(lapack_is_query(&one));
        assert_fault(&one, NULL);
    }
}

static const struct accel_arg *argument(const struct accel_call *call, const char *name)
{
    for (int i = 0; i < call->routine->args; i++)
        if (strcmp(call->routine->arg[i].name, name) == 0)
            return &call->routine->arg[i];
    fail_msg("no argument %s", name);
    return NULL;
}

static bool looks_at(const struct accel_call *call, const char *name)
{
    return lapack_looks_at(call, argument(call, name));
}

static void what_is_read(void **state)
{
    static const char ranges[] = "AVI";
    (void)state;
    for (int i = 0; i < 3; i++)
        for (int64_t n = 0; n < 3; n++) {
            struct accel_call call = call_of("dsyevx", 0, n, 0);
            call.blas.flag[ACCEL_range] = ranges[i];
            call.blas.scalar[ACCEL_vl].re = -1;
            call.blas.scalar[ACCEL_vu].re = 1;
            call.blas.size[ACCEL_il] = 1;
            call.blas.size[ACCEL_iu] = n;
            assert_int_equal(looks_at(&call, "il"), ranges[i] == 'I');
            assert_int_equal(looks_at(&call, "iu"), ranges[i] == 'I');
            assert_int_equal(looks_at(&call, "vl"), ranges[i] == 'V' && n > 0);
            assert_int_equal(looks_at(&call, "vu"), ranges[i] == 'V' && n > 0);
            assert_int_equal(looks_at(&call, "abstol"), n > 1);
            call.blas.has_work = true; /* too little */
            assert_false(looks_at(&call, "abstol"));
            call.blas.size[ACCEL_lwork] = -1;
            assert_false(looks_at(&call, "abstol"));
        }
    const struct accel_call general = call_of("dsygvx", 0, 5, 0);
    assert_true(looks_at(&general, "itype"));
}

static void nothing_to_do(void **state)
{
    (void)state;
    for (int64_t m = 0; m < 2; m++)
        for (int64_t n = 0; n < 2; n++) {
            const struct accel_call qr = call_of("dgeqrf", m, n, 0),
                                    cholesky = call_of("dpotrf", m, n, 0);
            assert_int_equal(lapack_is_empty(&qr), m == 0 || n == 0);
            assert_int_equal(lapack_has_no_matrix(&qr), m == 0 || n == 0);
            assert_int_equal(lapack_is_empty(&cholesky), n == 0);
            assert_int_equal(lapack_has_no_matrix(&cholesky), n == 0); /* it has no m */
            /* It solves for nothing, and gesv factors all the same. */
            const struct accel_call solves = call_of("dgetrs", 0, n, m),
                                    factors = call_of("dgesv", 0, n, m);
            assert_int_equal(lapack_is_empty(&solves), m == 0 || n == 0);
            assert_int_equal(lapack_is_empty(&factors), n == 0);
            /* OpenBLAS's does not: without right-hand sides it is the original's. */
            assert_int_equal(accel_call_is_supported(&factors), m > 0);
        }
}

/* NaNs among the scalars that are read are the original's to judge. */
static void scalars_that_are_no_numbers(void **state)
{
    struct accel_call call = call_of("dsyevx", 0, 9, 0);
    (void)state;
    call.blas.flag[ACCEL_range] = 'A';
    assert_true(lapack_is_supported(&call));
    call.blas.scalar[ACCEL_vl].re = call.blas.scalar[ACCEL_vu].re = NAN;
    assert_true(lapack_is_supported(&call));
    call.blas.flag[ACCEL_range] = 'V';
    call.blas.scalar[ACCEL_vl].re = 0;
    assert_false(lapack_is_supported(&call));
    call.blas.scalar[ACCEL_vl].re = NAN;
    call.blas.scalar[ACCEL_vu].re = 1;
    assert_false(lapack_is_supported(&call));
    call.blas.scalar[ACCEL_vl].re = 0;
    assert_true(lapack_is_supported(&call));
    call.blas.scalar[ACCEL_abstol].re = NAN;
    assert_false(lapack_is_supported(&call));
    const struct accel_call product = call_of("dgemm", 9, 9, 0);
    assert_false(lapack_is_supported(&product));
}

/* ---- Bytes ---- */

enum { N = 1000 };
static const double square = 8.0 * N * N, stored = 4.0 * N * (N + 1);

static void assert_triangle(double bytes)
{
    assert_true(bytes >= stored && bytes <= stored * 1.2);
}

static double sent(const struct accel_call *call, int matrix, bool down)
{
    return lapack_sent_bytes(call, &call->span[matrix], down);
}

static void bytes_of_triangles(void **state)
{
    struct accel_call call = call_of("dpotrf", 0, N, 0);
    (void)state;
    assert_triangle(sent(&call, ACCEL_a, false));
    assert_triangle(sent(&call, ACCEL_a, true));
    call = call_of("dgetrf", N, N, 0);
    assert_true(sent(&call, ACCEL_a, false) == square);
    call = call_of("dpotrs", 0, N, N);
    assert_triangle(sent(&call, ACCEL_a, false));
    assert_true(sent(&call, ACCEL_b, false) == square); /* it is no triangle */
    assert_true(sent(&call, ACCEL_b, true) == square);
    call = call_of("dpptrf", 0, N, 0);
    assert_true(sent(&call, ACCEL_a, false) == stored && sent(&call, ACCEL_a, true) == stored);
    /* Memory cannot hold it. */
    call = call_of("dpotrf", 0, LAPACK_SQUARE_MOST + 1, 0);
    assert_true(sent(&call, ACCEL_a, false) ==
                8.0 * (double)(LAPACK_SQUARE_MOST + 1) * (double)(LAPACK_SQUARE_MOST + 1));
}

/* What comes back in A's place: eigenvectors, or nothing that anyone reads. */
static void bytes_of_eigenvalues(void **state)
{
    static const char *const names[] = {"dsyevd", "dsygvd"};
    (void)state;
    for (int i = 0; i < 2; i++) {
        struct accel_call call = call_of(names[i], 0, N, 0);
        assert_triangle(sent(&call, ACCEL_a, false));
        assert_true(sent(&call, ACCEL_a, true) == square);
        call.blas.flag[ACCEL_jobz] = 'N';
        assert_triangle(sent(&call, ACCEL_a, false));
        assert_true(sent(&call, ACCEL_a, true) == 0);
    }
    const struct accel_call pencil = call_of("dsygvd", 0, N, 0);
    assert_triangle(sent(&pencil, ACCEL_b, false));
    assert_triangle(sent(&pencil, ACCEL_b, true));
    struct accel_call part = call_of("dsyevx", 0, N, 0);
    part.blas.flag[ACCEL_jobz] = 'V';
    part.blas.flag[ACCEL_range] = 'A'; /* they come to Z */
    assert_triangle(sent(&part, ACCEL_a, false));
    assert_true(sent(&part, ACCEL_a, true) == 0);
}

/* Of all operands that there are; of A twice where the operation iterates. */
static void bytes_on_the_device(void **state)
{
    static char memory;
    struct accel_call call = call_of("dgetrs", 0, N, 3);
    (void)state;
    assert_true(lapack_gpu_bytes(&call) == 0);
    call.span[ACCEL_a].ptr = &memory;
    assert_true(lapack_gpu_bytes(&call) == square);
    call.span[ACCEL_b].ptr = &memory;
    assert_true(lapack_gpu_bytes(&call) == square + 8 * 3 * N);
    call = call_of("dppsv", 0, N, 3);
    call.span[ACCEL_b].ptr = &memory;
    assert_true(lapack_gpu_bytes(&call) == 8 * 3 * N);
    call.span[ACCEL_a].ptr = &memory; /* as it is, and as a square */
    assert_true(lapack_gpu_bytes(&call) == stored + square + 8 * 3 * N);
    call = call_of("dsyevd", 0, N, 0);
    call.span[ACCEL_x].ptr = &memory;
    assert_true(lapack_gpu_bytes(&call) == 8 * N);
    call.span[ACCEL_a].ptr = &memory;
    assert_true(lapack_gpu_bytes(&call) == 2 * square + 8 * N);
}

/* ilaenv: geqrf and its kin use no blocks for up to 128 reflectors, or where less than two columns
 * of a block have room. */
static void lengths_that_are_left(void **state)
{
    static const struct {
        int64_t n, work, reflectors, left;
    } rows[] = {{300, 300 * 32, 300, 300 * 32},
                {300, 300 * 32, 129, 300 * 32},
                {300, 300 * 32, 128, 300},
                {300, 300 * 32, 32, 300},
                {300, 300 * 2, 300, 300 * 2},
                {300, 300 * 2 - 1, 300, 300},
                {300, 300, 300, 300},
                {300, 300 * 300, 300, 300},
                {300, 300 * 299, 300, 300 * 299},
                {0, 1, 0, 1}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct lapack_sizes sizes = {.n = rows[i].n};
        struct accel_lengths lengths = {rows[i].work, 5, 7};
        lapack_left_by_blocks(&sizes, rows[i].reflectors, LAPACK_QR_CROSSOVER, &lengths);
        assert_int_equal(lengths.work, rows[i].left);
        assert_int_equal(lengths.rwork, 5);
        assert_int_equal(lengths.iwork, 7);
    }
}

/* What routines of LAPACK 3.11 leave where a query answered `work`, and 3.12, whose answers for the
 * other workspaces of a matrix of order 1 are 1. */
static void lengths_that_routines_leave(void **state)
{
    static const struct {
        const char *name;
        int64_t m, n, work, iwork, left;
    } rows[] = {
        {"dgeqrf", 300, 300, 9600, 0, 9600}, {"dgeqrf", 128, 300, 9600, 0, 300},
        {"dgeqrf", 300, 128, 4096, 0, 128},  {"dgetrf", 300, 300, 77, 0, 77}, /* it has no rule */
        {"dsyev", 0, 1, 34, 0, 2},           {"zheev", 0, 1, 33, 0, 1},
        {"dsyev", 0, 2, 68, 0, 68},          {"dsyev", 0, 1, 0, 0, 0}, /* no answer */
        {"dsyevr", 0, 1, 26, 10, 7},         {"dsyevr", 0, 1, 26, 1, 1},
        {"ssyevr", 0, 1, 26, 10, 26},        {"zheevr", 0, 1, 2, 10, 2},
        {"zheevr", 0, 1, 2, 1, 1},           {"dsyevr", 0, 2, 52, 20, 52},
        {"dsygvd", 0, 10, 261, 53, 340},     {"zhegvd", 0, 10, 120, 53, 330},
        {"dsygvd", 0, 10, 500, 53, 500},     {"dsygvd", 0, 1, 1, 1, 1}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct accel_call call = call_of(rows[i].name, rows[i].m, rows[i].n, 0);
        struct accel_lengths lengths = {rows[i].work, 11, rows[i].iwork};
        lapack_lengths_left(&call, &lengths);
        if (lengths.work != rows[i].left || lengths.rwork != 11 || lengths.iwork != rows[i].iwork)
            fail_msg("%s, row %zu: %lld", rows[i].name, i, (long long)lengths.work);
    }
}

/* ISPEC = 6: INT( REAL( MIN( N1, N2 ) ) * 1.6E0 ). */
static void tall_matrices(void **state)
{
    (void)state;
    for (int64_t shorter = 0; shorter < 200; shorter++)
        for (int64_t longer = shorter; longer < 2 * shorter + 3; longer++)
            assert_int_equal(lapack_is_tall(longer, shorter), longer >= shorter * 16 / 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(parts_of_the_spectrum),
                                       cmocka_unit_test(lengths_of_workspace),
                                       cmocka_unit_test(what_is_read),
                                       cmocka_unit_test(nothing_to_do),
                                       cmocka_unit_test(scalars_that_are_no_numbers),
                                       cmocka_unit_test(bytes_of_triangles),
                                       cmocka_unit_test(bytes_of_eigenvalues),
                                       cmocka_unit_test(bytes_on_the_device),
                                       cmocka_unit_test(lengths_that_are_left),
                                       cmocka_unit_test(lengths_that_routines_leave),
                                       cmocka_unit_test(tall_matrices)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
