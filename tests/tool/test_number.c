#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <math.h>

#include "tool/compare/number.h"

/* Returns the numbers of a text: "1i -2.5 (3,4)"; an i marks an integer. */
static const char *found(const char *text)
{
    static char all[1024];
    struct number number;
    size_t length = strlen(text), n = 0;
    all[0] = 0;
    for (size_t at = 0; number_find(text, length, at, &number); at = number.start + number.length) {
        assert_true(number.length > 0 && number.start >= at &&
                    number.start + number.length <= length);
        n += (size_t)snprintf(all + n, sizeof all - n,
                              number.complex ? "%s(%.17Lg,%.17Lg)" : "%s%.17Lg", n ? " " : "",
                              number.part[0].value, number.part[1].value);
        if (number.integer)
            n += (size_t)snprintf(all + n, sizeof all - n, "i");
    }
    return all;
}

static void plain_numbers(void **state)
{
    (void)state;
    assert_string_equal(found("1 -2.5 +.5 5. 1e3 -1E-3"), "1i -2.5 0.5 5 1000 -0.001");
    assert_string_equal(found("x = 3.25, y=-4;z:+7"), "3.25 -4i 7i");
    assert_string_equal(found("[ 1. -2. ](3,-4)\"5.5\""), "1 -2 3i -4i 5.5");
    assert_string_equal(found("1,-2,,3.5\t4"), "1i -2i 3.5 4i");
    assert_string_equal(found("There are 12. 3.5 of 4.0."), "12 3.5 4");
    assert_string_equal(found("1.5ms 10% 3kg"), "1.5 10i 3i");
    assert_string_equal(found("-0.0 0 -0"), "-0 0i -0i");
    assert_string_equal(found(""), "");
    assert_string_equal(found("no numbers - at all. e5 + .e"), "");
}

static void words_are_text(void **state)
{
    (void)state;
    assert_string_equal(found("x1 v2.5 A_3 sha1"), "");
    assert_string_equal(found("1.2.3 192.168.0.1 ...5"), "");
    assert_string_equal(found("2024-01-31 12:34:56"), "2024i 1i 31i 12i 34i 56i");
    assert_string_equal(found("3-4 f(x)-3 a[1]-2 5 - 3"), "3i 4i 3i 1i 2i 5i 3i");
    assert_string_equal(found("run-12/file.3.txt"), "12i");
    assert_string_equal(found("info information nanny infinite NaNo"), "");
}

static void exponents(void **state)
{
    (void)state;
    assert_string_equal(found("1.0D+00 -2.5d-3 1.5Q2"), "1 -0.0025 150");
    assert_string_equal(found("0.125-101 0.5+123"), "1.25e-102 5e+122");
    /* With such an exponent, Fortran writes a point */
    assert_string_equal(found("2d3 7D1"), "2i 7i");
    assert_string_equal(found("1e 1e+ 2E"), "1i 1i 2i");
    assert_string_equal(found("1e400"), "1e+400");
    assert_string_equal(found("0x10 0xFFp-4 0x1.8p+3 -0x1p0 0x"), "16i 15.9375 12 -1 0i");
}

static void special_values(void **state)
{
    (void)state;
    assert_string_equal(found("nan -NaN inf -Inf +INFINITY"), "nan -nan inf -inf inf");
    assert_string_equal(found("a=nan,b=[inf]"), "nan inf");
}

static void complex_numbers(void **state)
{
    (void)state;
    assert_string_equal(found("1+2j (3-4j) 1.5e-3-2e+1i 2j -1i"),
                        "(1,2) (3,-4) (0.0015,-20) (0,2) (0,-1)");
    assert_string_equal(found("3.0 + 4.0i   1 - 2i"), "(3,4) (1,-2)");
    assert_string_equal(found("[ 1. +2.j  0.5-1.j]"), "(1,2) (0.5,-1)");
    assert_string_equal(found("1.0 + 2.0im"), "(1,2)");
    assert_string_equal(found("nan+nanj inf-0j"), "(nan,nan) (inf,-0)");
    assert_string_equal(found("1 + 2 items, 3 in"), "1i 2i 3i");
}

static void digits(void **state)
{
    struct number number;
    (void)state;
    assert_true(number_is("0.001230", 8, &number));
    assert_int_equal(number.part[0].digits, 4);
    assert_int_equal(number.part[0].last, -6);
    assert_true(number_is("1.25e+10", 8, &number));
    assert_int_equal(number.part[0].digits, 3);
    assert_int_equal(number.part[0].last, 8);
    assert_false(number_is("1.5x", 4, &number));
    assert_false(number_is("1 ", 2, &number));
    assert_false(number_is("", 0, &number));
}

static void long_integers(void **state)
{
    struct number number;
    char text[4000];
    (void)state;
    assert_string_equal(found("18446744073709551615 -9223372036854775808"),
                        "1.8446744073709552e+19i -9.2233720368547758e+18i");
    assert_true(number_is("18446744073709551615", 20, &number));
    assert_true(number.part[0].value == (long double)UINT64_MAX);
    assert_true(number_same_integer("+007", 4, "7", 1));
    assert_true(number_same_integer("-0", 2, "0", 1));
    assert_false(number_same_integer("-7", 2, "7", 1));
    assert_false(number_same_integer("123456789012345678901234567890", 30,
                                     "123456789012345678901234567891", 30));
    /* A number that is too long is text. */
    memset(text, '1', sizeof text - 1);
    text[sizeof text - 1] = 0;
    assert_false(number_find(text, sizeof text - 1, 0, &number));
}

/* In any text, the scanner goes on and stays within it. */
static void any_text(void **state)
{
    static const char letters[] = "0123456789..--++eEdDxXpinfjam _,()";
    char text[64];
    (void)state;
    srand(1);
    for (int i = 0; i < 200000; i++) {
        size_t length = (size_t)rand() % sizeof text;
        for (size_t j = 0; j < length; j++)
            text[j] = letters[(size_t)rand() % (sizeof letters - 1)];
        text[length] = 0;
        found(text);
    }
}

/* The numbers of a line are the same whatever the next line is. */
static void a_line_ends(void **state)
{
    static const char letters[] = "0123456789..--++eEdDxXpinfjam _,()";
    char text[64], alone[64];
    (void)state;
    srand(1);
    for (int i = 0; i < 200000; i++) {
        const size_t length = 1 + (size_t)rand() % 16;
        for (size_t j = 0; j < sizeof text - 1; j++)
            text[j] = letters[(size_t)rand() % (sizeof letters - 1)];
        text[sizeof text - 1] = 0;
        text[length - 1] = '\n';
        memcpy(alone, text, length);
        alone[length] = 0;
        struct number a, b;
        bool found_a, found_b;
        size_t at = 0;
        do {
            found_a = number_find(alone, length, at, &a);
            found_b = number_find(text, length, at, &b);
            assert_true(found_a == found_b);
            if (!found_a)
                continue;
            assert_true(a.start == b.start && a.length == b.length && a.complex == b.complex);
            assert_true(a.part[0].value == b.part[0].value || isnan(a.part[0].value));
            at = a.start + a.length;
        } while (found_a);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_numbers),   cmocka_unit_test(words_are_text),
        cmocka_unit_test(exponents),       cmocka_unit_test(special_values),
        cmocka_unit_test(complex_numbers), cmocka_unit_test(digits),
        cmocka_unit_test(long_integers),   cmocka_unit_test(any_text),
        cmocka_unit_test(a_line_ends),
    };
    return cmocka_run_group_tests_name("number", tests, NULL, NULL);
}
