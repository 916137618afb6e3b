/* NaN and infinities beside zeros, which a library multiplies or skips: cpu_ref/verify.h says
 * nothing of what they reach, but the rest of the result must be right. Matrices are such that the
 * results are known. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "cpu_ref/verify.h"
#include "ops/op.h"
#include "call/shape.h"
#include "ops/typical.h"
#include "tests/lib/routine.h"

/* SPOILT: the line of an operand's element that is no number. */
enum { N = 12, SPOILT = 3, ELSEWHERE = 6, BESIDE = 8 };

/* BEHIND: and what is solved after it. */
enum { ROW = 1, COLUMN = 2, ALL = 4, BEHIND = 8 };

/* A call of operands of order N: `scaled` is twice the identity, all else of ones. */
static const struct known {
    const char *name;
    char side;
    enum accel_matrix scaled; /* ACCEL_SPANS: none */
    double result, old;
    /* What an element (SPOILT, SPOILT) of each operand reaches. */
    enum accel_matrix input[2], output;
    int reaches[2];
} known[] = {
    {"gemm", 0, ACCEL_a, 2, 0, {ACCEL_a, ACCEL_b}, ACCEL_c, {ROW, COLUMN}},
    {"symm", 'L', ACCEL_a, 2, 0, {ACCEL_a, ACCEL_b}, ACCEL_c, {ROW, COLUMN}},
    {"symm", 'R', ACCEL_a, 2, 0, {ACCEL_a, ACCEL_b}, ACCEL_c, {COLUMN, ROW}},
    {"syrk", 0, ACCEL_SPANS, N, 0, {ACCEL_a, ACCEL_a}, ACCEL_c, {ROW | COLUMN, ROW | COLUMN}},
    {"syr2k", 0, ACCEL_SPANS, 2 * N, 0, {ACCEL_a, ACCEL_b}, ACCEL_c, {ROW | COLUMN, ROW | COLUMN}},
    {"gemmt", 0, ACCEL_a, 2, 0, {ACCEL_a, ACCEL_b}, ACCEL_c, {ROW, COLUMN}},
    {"trmm", 'L', ACCEL_a, 2, 1, {ACCEL_a, ACCEL_b}, ACCEL_b, {ROW, COLUMN}},
    {"trmm", 'R', ACCEL_a, 2, 1, {ACCEL_a, ACCEL_b}, ACCEL_b, {COLUMN, ROW}},
    {"trsm", 'L', ACCEL_a, 0.5, 1, {ACCEL_a, ACCEL_b}, ACCEL_b, {ROW | BEHIND, COLUMN}},
    {"trsm", 'R', ACCEL_a, 0.5, 1, {ACCEL_a, ACCEL_b}, ACCEL_b, {COLUMN | BEHIND, ROW}},
    {"gemv", 0, ACCEL_a, 2, 0, {ACCEL_a, ACCEL_x}, ACCEL_y, {COLUMN, ALL}},
    {"trmv", 0, ACCEL_a, 2, 1, {ACCEL_a, ACCEL_x}, ACCEL_x, {COLUMN, ALL}},
    {"trsv", 0, ACCEL_a, 0.5, 1, {ACCEL_a, ACCEL_x}, ACCEL_x, {COLUMN | BEHIND, ALL}},
};
enum { KNOWN = sizeof known / sizeof *known };

/* The call, with room for any type. */
static struct accel_call call;
static double now[ACCEL_SPANS][2 * N * N], old[ACCEL_SPANS][2 * N * N];

static void put(void *memory, const struct accel_span *x, int64_t row, int64_t col, double z)
{
    const int64_t i = row + col * x->ld, parts = accel_is_complex(x->dtype) ? 2 : 1;
    for (int64_t part = 0; part < parts; part++)
        if (accel_is_double(x->dtype))
            ((double *)memory)[i * parts + part] = part ? 0 : z;
        else
            ((float *)memory)[i * parts + part] = part ? 0 : (float)z;
}

static void fill(void *memory, const struct accel_span *x, double diagonal, double rest)
{
    for (int64_t col = 0; col < x->cols; col++)
        for (int64_t row = 0; row < x->rows; row++)
            put(memory, x, row, col, row == col ? diagonal : rest);
}

static bool is_vector(const struct accel_span *x)
{
    return x->rows == 1;
}

/* An operand's element; of a vector that of the column. */
static void put_at(void *memory, enum accel_matrix which, int64_t row, int64_t col, double z)
{
    const struct accel_span *x = &call.span[which];
    put(memory, x, is_vector(x) ? 0 : row, col, z);
}

/* The flags of the calls that are made. */
static const char *uplo = "U", *trans = "N";

/* Makes the call with its right result. */
static void make(const struct known *k, char type)
{
    char name[16] = {type};
    const int64_t size[ACCEL_DIMENSIONS] = {N, N, N, N};
    strcat(name, k->name);
    shape_typical(&call, routine(name), size);
    call.blas.flag[ACCEL_side] = k->side ? k->side : call.blas.flag[ACCEL_side];
    call.blas.flag[ACCEL_uplo] = *uplo;
    call.blas.flag[ACCEL_trans] = *trans;
    shape_operands(&call);
    call.blas.scalar[ACCEL_alpha].re = 1;
    call.blas.scalar[ACCEL_beta].re = 0;
    for (int i = 0; i < ACCEL_SPANS; i++) {
        struct accel_span *x = &call.span[i];
        if (x->rows == 0)
            continue;
        x->ptr = now[i];
        fill(now[i], x, i == (int)k->scaled ? 2 : 1, i == (int)k->scaled ? 0 : 1);
    }
    fill(now[k->output], &call.span[k->output], k->result, k->result);
    fill(old[k->output], &call.span[k->output], k->old, k->old);
}

static double judged(const struct known *k)
{
    const void *before[ACCEL_SPANS] = {NULL};
    if (k->old != 0)
        before[k->output] = old[k->output];
    return cpu_ref_verify(&call, before, 1, 0);
}

/* Puts z where the operand's element is read. */
static void spoil(const struct known *k, int which, double z)
{
    const enum accel_matrix input = k->input[which];
    put_at(input == k->output ? (void *)old[input] : (void *)now[input], input, SPOILT, SPOILT, z);
}

/* The lines that are reached: those from SPOILT on, or those before it. */
static bool is_forward(const struct known *k)
{
    const bool is_lower =
        (call.blas.flag[ACCEL_uplo] == 'L') != (call.blas.flag[ACCEL_trans] != 'N');
    return (k->side != 'R') == is_lower;
}

static bool is_reached(const struct known *k, int which, int64_t row, int64_t col)
{
    const int reaches = k->reaches[which];
    const int64_t line = reaches & ROW ? row : col;
    if (reaches & BEHIND)
        return is_forward(k) ? line >= SPOILT : line <= SPOILT;
    return reaches & ALL || (reaches & ROW && row == SPOILT) || (reaches & COLUMN && col == SPOILT);
}

/* Puts z into all that the operand's element reaches. */
static void spoil_reached(const struct known *k, int which, double z)
{
    for (int64_t col = 0; col < N; col++)
        for (int64_t row = 0; row < N; row++)
            if (is_reached(k, which, row, col))
                put_at(now[k->output], k->output, row, col, z);
}

/* Not reached, and in the triangle that the routine writes, if it writes one. */
static void put_elsewhere(const struct known *k, int which, double z)
{
    const bool upper = call.span[k->output].triangle == 'U',
               before = k->reaches[which] & BEHIND && is_forward(k);
    const int64_t one = before ? SPOILT - 1 : ELSEWHERE, other = before ? SPOILT - 2 : BESIDE;
    put_at(now[k->output], k->output, upper ? one : other, upper ? other : one, z);
}

static void try_input(const struct known *k, char type, int which, double z)
{
    const bool all = k->reaches[which] == ALL;
    const double others[] = {k->result + 1, NAN, INFINITY};
    make(k, type);
    assert_true(judged(k) >= 0 && judged(k) <= 1);
    spoil(k, which, z);
    assert_true(judged(k) == CPU_REF_NOT_JUDGED); /* where a library skips zeros */
    spoil_reached(k, which, NAN);
    assert_true(judged(k) == CPU_REF_NOT_JUDGED);
    spoil_reached(k, which, 77); /* nothing is said of it */
    assert_true(judged(k) == CPU_REF_NOT_JUDGED);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        put_elsewhere(k, which, others[i]);
        if (all)
            assert_true(judged(k) == CPU_REF_NOT_JUDGED);
        else
            assert_true(judged(k) > 1);
    }
}

static void the_rest_is_judged(void **state)
{
    (void)state;
    for (uplo = "UL"; *uplo; uplo++)
        for (trans = "NT"; *trans; trans++)
            for (int i = 0; i < KNOWN; i++)
                for (const char *type = "sdcz"; *type; type++)
                    for (int which = 0; which < 2; which++) {
                        try_input(&known[i], *type, which, NAN);
                        try_input(&known[i], *type, which, -INFINITY);
                    }
    uplo = "U";
    trans = "N";
}

/* C was no number at an element, and counts. */
static void old_elements_count(void **state)
{
    const struct known gemm = {"gemm",          0, ACCEL_a, 3, 1, {ACCEL_c, ACCEL_c}, ACCEL_c,
                               {COLUMN, COLUMN}};
    (void)state;
    make(&gemm, 'd');
    call.blas.scalar[ACCEL_beta].re = 1;
    put_at(old[ACCEL_c], ACCEL_c, SPOILT, SPOILT, NAN);
    put_at(now[ACCEL_c], ACCEL_c, SPOILT, SPOILT, NAN);
    assert_true(judged(&gemm) == CPU_REF_NOT_JUDGED);
    put_elsewhere(&gemm, 0, 4);
    assert_true(judged(&gemm) > 1);
    /* Not read: it reaches nothing. */
    make(&gemm, 'd');
    fill(now[ACCEL_c], &call.span[ACCEL_c], 2, 2);
    put_at(old[ACCEL_c], ACCEL_c, SPOILT, SPOILT, NAN);
    assert_true(judged(&gemm) >= 0 && judged(&gemm) <= 1);
}

/* A NaN that the inputs do not explain. */
static void numbers_stay_numbers(void **state)
{
    (void)state;
    for (int i = 0; i < KNOWN; i++) {
        make(&known[i], 'd');
        put_elsewhere(&known[i], 0, NAN);
        assert_true(judged(&known[i]) > 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_rest_is_judged),
        cmocka_unit_test(old_elements_count),
        cmocka_unit_test(numbers_stay_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
