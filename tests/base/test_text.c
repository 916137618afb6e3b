#define _GNU_SOURCE
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include <math.h>

#include "base/text/error_text.h"
#include "base/text/text.h"

static const char *decimal(double value)
{
    static char buffer[64];
    struct accel_text text;
    text_start(&text, buffer, sizeof buffer);
    text_decimal(&text, value);
    text_end(&text);
    return buffer;
}

static void decimals(void **state)
{
    (void)state;
    assert_string_equal(decimal(0), "0");
    assert_string_equal(decimal(NAN), "0");
    assert_string_equal(decimal(4e-7), "0");
    assert_string_equal(decimal(6e-7), "0.000001");
    assert_string_equal(decimal(0.0123456), "0.01235");
    assert_string_equal(decimal(9.8), "9.8");
    assert_string_equal(decimal(9.99996), "10");
    assert_string_equal(decimal(134.217728), "134.2");
    assert_string_equal(decimal(999.96), "1000");
    assert_string_equal(decimal(123456.7), "123457");
    assert_string_equal(decimal(-2.5), "-2.5");
    assert_string_equal(decimal(1e18), "1000000000000000000");
    assert_string_equal(decimal(INFINITY), "18446744073709551615");
}

static const char *fixed(double value, int places)
{
    static char buffer[64];
    struct accel_text text;
    text_start(&text, buffer, sizeof buffer);
    text_fixed(&text, value, places);
    text_end(&text);
    return buffer;
}

static void fixed_decimals(void **state)
{
    (void)state;
    assert_string_equal(fixed(0, 3), "0.000");
    assert_string_equal(fixed(0.0004, 3), "0.000");
    assert_string_equal(fixed(0.0005, 3), "0.001");
    assert_string_equal(fixed(9.9996, 3), "10.000");
    assert_string_equal(fixed(-2.058, 2), "-2.06");
    assert_string_equal(fixed(-0.4, 1), "-0.4");
    assert_string_equal(fixed(123456.789012, 6), "123456.789012");
}

static void integers(void **state)
{
    char buffer[64];
    struct accel_text text;
    (void)state;
    text_start(&text, buffer, sizeof buffer);
    text_integer(&text, INT64_MIN);
    text_char(&text, ' ');
    text_integer(&text, 0);
    text_char(&text, ' ');
    text_integer(&text, INT64_MAX);
    assert_memory_equal(buffer, "-9223372036854775808 0 9223372036854775807", text.length);
}

static void cut_at_the_end(void **state)
{
    char buffer[8] = "-------";
    struct accel_text text;
    (void)state;
    text_start(&text, buffer, 4);
    text_string(&text, "abcdefgh");
    assert_int_equal(text.length, 4);
    assert_string_equal(buffer, "abcd---");
    assert_false(text_end(&text));
    assert_string_equal(buffer, "abc");
}

static void ends_with_room(void **state)
{
    char buffer[4] = "---";
    struct accel_text text;
    (void)state;
    text_start(&text, buffer, sizeof buffer);
    text_string(&text, "abc");
    assert_true(text_end(&text));
    assert_string_equal(buffer, "abc");
}

static void json_strings(void **state)
{
    char buffer[64];
    struct accel_text text;
    (void)state;
    text_start(&text, buffer, sizeof buffer);
    text_json_string(&text, "a\"b\\c\n");
    assert_int_equal(text.length, strlen("\"a\\\"b\\\\c\\u000a\""));
    assert_memory_equal(buffer, "\"a\\\"b\\\\c\\u000a\"", text.length);
    /* A Latin-1 name; half a character at the end, as the kernel cuts a thread's name; a character
     * too long for its form. */
    static const char *const odd[][2] = {{"pr\xe9", "\"pr?\""},
                                         {"\xc3\xa9t\xc3\xa9\xc3", "\"\xc3\xa9t\xc3\xa9?\""},
                                         {"\xc0\xafx", "\"??x\""},
                                         {"\xe2\x82\xac", "\"\xe2\x82\xac\""}};
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
        text_start(&text, buffer, sizeof buffer);
        text_json_string(&text, odd[i][0]);
        text_end(&text);
        assert_string_equal(buffer, odd[i][1]);
    }
}

static void errors_have_a_text(void **state)
{
    (void)state;
    assert_string_equal(error_text(ENOSPC), "No space left on device");
    assert_string_equal(error_text(524), "unknown error"); /* ENOTSUPP, the kernel's own */
}

static void dates(void **state)
{
    static const struct {
        int64_t seconds;
        const char *date;
    } known[] = {{-1, "1970-01-01"},         {0, "1970-01-01"},
                 {86399, "1970-01-01"},      {951782399, "2000-02-28"},
                 {951825600, "2000-02-29"},  {951868800, "2000-03-01"},
                 {1795478399, "2026-11-23"}, {1795478400, "2026-11-24"},
                 {4107542400, "2100-03-01"}, {253402300799, "9999-12-31"}};
    (void)state;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        char buffer[16];
        struct accel_text text;
        text_start(&text, buffer, sizeof buffer);
        text_date(&text, known[i].seconds);
        assert_true(text_end(&text));
        assert_string_equal(buffer, known[i].date);
    }
}

static void padding(void **state)
{
    char buffer[64];
    struct accel_text text;
    (void)state;
    text_start(&text, buffer, sizeof buffer);
    text_padded(&text, "ab", 4);
    text_padded(&text, "cd", -4);
    text_padded(&text, "too long", 3);
    assert_memory_equal(buffer, "  abcd  too long", text.length);
    assert_int_equal(text.length, 16);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(decimals),
        cmocka_unit_test(fixed_decimals),
        cmocka_unit_test(integers),
        cmocka_unit_test(cut_at_the_end),
        cmocka_unit_test(ends_with_room),
        cmocka_unit_test(json_strings),
        cmocka_unit_test(errors_have_a_text),
        cmocka_unit_test(dates),
        cmocka_unit_test(padding),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
