/* What a function's code tells of its arguments, for functions of this program: on each
 * architecture, by its compiler. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "shim/elf/code.h"
#include "shim/elf/reads.h"
#include "shim/elf/real_linker.h"

#define FUNCTION __attribute__((noinline, noclone, used)) static

static struct accel_reads reads_of(void *function)
{
    struct accel_code code;
    struct accel_reads reads;
    accel_real_init();
    assert_true(accel_code_of_object(&code, accel_object_of(function)));
    assert_true(accel_reads_of(&reads, &code, function));
    return reads;
}

/* Ten arguments: the last ones are on the stack. */
FUNCTION double by_reference(const int32_t *a, const int64_t *b, const float *c, const double *d,
                             const int32_t *e, const int64_t *f, const float *g, const double *h,
                             const int32_t *i, const double *j)
{
    return (double)*a + (double)*b + (double)*c + *d + (double)*e + (double)*f + (double)*g + *h +
           (double)*i + *j;
}

static void test_by_reference(void **state)
{
    static const uint8_t sizes[] = {ACCEL_READS_4, ACCEL_READS_8, ACCEL_READS_4, ACCEL_READS_8};
    const struct accel_reads reads = reads_of((void *)(uintptr_t)by_reference);
    (void)state;
    for (int i = 0; i < 9; i++) {
        assert_int_equal(reads.argument[i].sizes, sizes[i % 4]);
        assert_int_equal(reads.argument[i].end, sizes[i % 4] == ACCEL_READS_4 ? 4 : 8);
    }
    assert_int_equal(reads.argument[9].sizes, ACCEL_READS_8);
    assert_int_equal(reads.argument[10].sizes, 0);
}

FUNCTION int64_t by_value(int32_t a, int64_t b, int32_t c, int64_t d)
{
    return (a > 7 ? 1 : 2) + (b > 7 ? 3 : 4) + (c < 9 ? 5 : 6) + (d < 9 ? 7 : 8);
}

static void test_by_value(void **state)
{
    const struct accel_reads reads = reads_of((void *)(uintptr_t)by_value);
    (void)state;
    for (int i = 0; i < 4; i++) {
        assert_int_equal(reads.argument[i].half, i % 2 == 0);
        assert_int_equal(reads.argument[i].whole, i % 2 == 1);
    }
}

FUNCTION void long_doubles(const long double *x, long double *y)
{
    *y = *x * 3;
}

static void test_long_doubles(void **state)
{
    const struct accel_reads reads = reads_of((void *)(uintptr_t)long_doubles);
    (void)state;
    const uint8_t size =
        sizeof(long double) == 16 && __LDBL_MANT_DIG__ == 64 ? ACCEL_READS_10 : ACCEL_READS_16;
    assert_int_equal(reads.argument[0].sizes, size);
    assert_int_equal(reads.argument[1].sizes, size);
}

/* Arguments wait in the registers that calls leave alone, or on the stack, and are passed on. */
FUNCTION int64_t passed_on(const int32_t *n, const int64_t *m)
{
    return *n > 0 ? *n : *m;
}

FUNCTION double kept(const int32_t *n, const int64_t *m, const double *x)
{
    const char *set = getenv("NOT_SET");
    double sum = set ? 1 : 0;
    for (int i = 0; i < 3; i++)
        sum += rand() * *x;
    return sum + (double)passed_on(n, m);
}

static void test_kept(void **state)
{
    const struct accel_reads reads = reads_of((void *)(uintptr_t)kept);
    (void)state;
    assert_int_equal(reads.argument[0].sizes, ACCEL_READS_4);
    assert_int_equal(reads.argument[1].sizes, ACCEL_READS_8);
    assert_int_equal(reads.argument[2].sizes, ACCEL_READS_8);
}

/* Nothing is read, and what lies behind a function that does not return is another's. */
FUNCTION void ends(const int32_t *n)
{
    (void)n;
    abort();
}

FUNCTION int written(int64_t *n, int32_t *info)
{
    *n = 5;
    *info = 6;
    return 0;
}

static void test_others(void **state)
{
    struct accel_reads reads = reads_of((void *)(uintptr_t)ends);
    (void)state;
    assert_int_equal(reads.argument[0].sizes, 0);
    reads = reads_of((void *)(uintptr_t)written);
    assert_int_equal(reads.argument[0].sizes, ACCEL_READS_8);
    assert_int_equal(reads.argument[1].sizes, ACCEL_READS_4);
}

/* A jump through a place that is none of the object's: bytes behind a function's end may be so. */
static void test_no_place(void **state)
{
    static const uint8_t jump[] = {0xff, 0x25, 0x00, 0xf0, 0xff, 0x3f}; /* x86-64's */
    const uintptr_t begin = (uintptr_t)jump;
    struct accel_code code;
    struct accel_reads reads;
    (void)state;
    accel_real_init();
    assert_true(accel_code_of_object(&code, accel_object_of(jump)));
    assert_int_equal(accel_code_pointer(&code, 8), 0);
    code.parts = 1;
    code.part[0].begin = begin;
    code.part[0].end = begin + sizeof jump;
    code.part[0].is_code = true;
    assert_int_equal(accel_code_pointer(&code, begin + sizeof jump - 4), 0);
    assert_true(accel_reads_of(&reads, &code, jump));
    assert_int_equal(reads.argument[0].sizes, 0);
}

/* What is no code is not followed. */
static void test_no_code(void **state)
{
    static int variable = 3;
    struct accel_code code;
    struct accel_reads reads;
    (void)state;
    accel_real_init();
    assert_true(accel_code_of_object(&code, accel_object_of(&variable)));
    assert_false(accel_reads_of(&reads, &code, &variable));
    assert_int_equal(accel_code_readable(&code, (uintptr_t)&code), 0);
    const char text[64] = "not an object's header";
    assert_false(accel_code_of_image(&code, text, sizeof text));
    assert_false(accel_code_of_image(&code, text, 3));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_by_reference), cmocka_unit_test(test_by_value),
        cmocka_unit_test(test_long_doubles), cmocka_unit_test(test_kept),
        cmocka_unit_test(test_others),       cmocka_unit_test(test_no_place),
        cmocka_unit_test(test_no_code)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
