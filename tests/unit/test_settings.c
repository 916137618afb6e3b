#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include <stdlib.h>
#include <unistd.h>

#include "dispatch/output.h"
#include "dispatch/settings.h"

static const char *const names[] = {"ACCEL",          "ACCEL_LOG",     "ACCEL_LOG_FILE",
                                    "ACCEL_SUMMARY",  "ACCEL_POLICY",  "ACCEL_MEMORY",
                                    "ACCEL_CUDA_DIR", "ACCEL_ORIGINAL"};

static int clear(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        unsetenv(names[i]);
    return 0;
}

static struct accel_settings read_with(const char *name, const char *value)
{
    struct accel_settings settings;
    clear(NULL);
    setenv(name, value, 1);
    settings_read(&settings);
    return settings;
}

static void defaults(void **state)
{
    struct accel_settings s;
    (void)state;
    settings_read(&s);
    assert_true(s.on);
    assert_int_equal(s.log, ACCEL_LOG_OFF);
    assert_null(s.log_file);
    assert_false(s.summary);
    assert_int_equal(s.policy, ACCEL_POLICY_AUTO);
    assert_true(s.memory_share == 0.8);
    assert_int_equal(s.memory_bytes, 0);
    assert_null(s.cuda_dir);
    assert_null(s.original);
}

static void choices(void **state)
{
    (void)state;
    assert_false(read_with("ACCEL", "0").on);
    assert_true(read_with("ACCEL", "1").on);
    assert_true(read_with("ACCEL", "").on);
    assert_int_equal(read_with("ACCEL_LOG", "1").log, ACCEL_LOG_DECISIONS);
    assert_int_equal(read_with("ACCEL_LOG", "2").log, ACCEL_LOG_MOVES);
    assert_int_equal(read_with("ACCEL_LOG", "json").log, ACCEL_LOG_JSON);
    assert_int_equal(read_with("ACCEL_POLICY", "gpu").policy, ACCEL_POLICY_GPU);
    assert_int_equal(read_with("ACCEL_POLICY", "cpu").policy, ACCEL_POLICY_CPU);
    assert_true(read_with("ACCEL_SUMMARY", "1").summary);
    assert_string_equal(read_with("ACCEL_LOG_FILE", "/tmp/x.%p").log_file, "/tmp/x.%p");
    /* The program may change its folder before anything is logged. */
    const char *relative = read_with("ACCEL_LOG_FILE", "x.%p").log_file;
    assert_int_equal(relative[0], '/');
    assert_string_equal(strrchr(relative, '/'), "/x.%p");
}

static void memory(void **state)
{
    (void)state;
    assert_true(read_with("ACCEL_MEMORY", "50%").memory_share == 0.5);
    assert_int_equal(read_with("ACCEL_MEMORY", "50%").memory_bytes, 0);
    assert_int_equal(read_with("ACCEL_MEMORY", "4096").memory_bytes, 4096);
    assert_int_equal(read_with("ACCEL_MEMORY", "3K").memory_bytes, 3 << 10);
    assert_int_equal(read_with("ACCEL_MEMORY", "1.5M").memory_bytes, 3 << 19);
    assert_int_equal(read_with("ACCEL_MEMORY", "2G").memory_bytes, (int64_t)2 << 30);
    assert_int_equal(read_with("ACCEL_MEMORY", "1T").memory_bytes, (int64_t)1 << 40);
}

/* What settings_complain() writes to stderr, as often as it is called. */
static void complaints(char *text, size_t size)
{
    int ends[2], keep = dup(2);
    assert_int_equal(pipe(ends), 0);
    dup2(ends[1], 2);
    close(ends[1]);
    output_start(); /* this is stderr */
    settings_complain();
    settings_complain();
    dup2(keep, 2);
    close(keep);
    ssize_t n = read(ends[0], text, size - 1);
    text[n > 0 ? n : 0] = 0;
    close(ends[0]);
}

static void bad_values(void **state)
{
    static const struct {
        const char *name, *value;
    } bad[] = {{"ACCEL", "yes"},          {"ACCEL_LOG", "3"},           {"ACCEL_LOG", "json,"},
               {"ACCEL_POLICY", "auto,"}, {"ACCEL_SUMMARY", "on"},      {"ACCEL_MEMORY", "0%"},
               {"ACCEL_MEMORY", "101%"},  {"ACCEL_MEMORY", "-1G"},      {"ACCEL_MEMORY", "1X"},
               {"ACCEL_MEMORY", "nan"},   {"ACCEL_MEMORY", "0x10"},     {"ACCEL_MEMORY", "1GB"},
               {"ACCEL_MEMORY", " 1G"},   {"ACCEL_MEMORY", "99999999T"}};
    char text[8192];
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct accel_settings s = read_with(bad[i].name, bad[i].value);
        assert_true(s.on);
        assert_int_equal(s.log, ACCEL_LOG_OFF);
        assert_int_equal(s.policy, ACCEL_POLICY_AUTO);
        assert_false(s.summary);
        assert_true(s.memory_share == 0.8 && s.memory_bytes == 0);
    }
    complaints(text, sizeof text);
    int lines = 0;
    for (const char *c = text; *c; c++)
        lines += *c == '\n';
    assert_int_equal(lines, sizeof bad / sizeof *bad);
    assert_non_null(strstr(text, "accel: ACCEL_LOG=3 is not understood; allowed: 0,1,2,json; the "
                                 "default is used\n"));
    assert_non_null(strstr(text, "ACCEL_MEMORY=101% is not understood; allowed: a share such as"));
}

static void nothing_is_read_when_off(void **state)
{
    (void)state;
    setenv("ACCEL", "0", 1);
    setenv("ACCEL_LOG", "1", 1);
    setenv("ACCEL_ORIGINAL", "libblas.so.3", 1);
    struct accel_settings s;
    settings_read(&s);
    assert_false(s.on);
    assert_int_equal(s.log, ACCEL_LOG_OFF);
    assert_string_equal(s.original, "libblas.so.3"); /* to find the original is no acceleration */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(defaults, clear),
        cmocka_unit_test_setup(choices, clear),
        cmocka_unit_test_setup(memory, clear),
        cmocka_unit_test_setup(bad_values, clear),
        cmocka_unit_test_setup(nothing_is_read_when_off, clear),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
