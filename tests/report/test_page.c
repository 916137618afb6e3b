/* The summary as people see it: columns hold for the longest names, rows that have no place are
 * added up, several threads and processes are told, hints are broken into lines. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <sys/wait.h>
#include <unistd.h>

#include "report/banner.h"
#include "report/page.h"
#include "report/totals.h"

/* A routine that is not known: rows have the names that are called */
static struct accel_call call;
static struct totals_part part;
static char path[] = "/tmp/accel-page-XXXXXX"; /* a process has one log */
static int fd;

static void begin(void)
{
    totals_begin(&part, totals_make());
    assert_non_null(part.totals);
}

static void add(const char *symbol, enum accel_why why, const char *ran, double ms)
{
    const struct accel_decision decision = {.why = why, .est_cpu_ms = 80000, .est_gpu_ms = 1};
    struct accel_record record = record_of(&call, symbol, 0, decision);
    record.ran = ran;
    record.ms = ms;
    totals_add(&part, &record);
}

/* The page of the sums, in a buffer that stays until the next one. */
static const char *page_of(double seconds, bool json)
{
    static char text[20000];
    const struct page page = {
        .program = "a \"program\"", .seconds = seconds, .json = json, .file = path};
    assert_int_equal(ftruncate(fd, 0), 0);
    page_write(&page, part.totals);
    const ssize_t length = pread(fd, text, sizeof text - 1, 0);
    assert_true(length >= 0);
    text[length] = 0;
    return text;
}

static size_t line_length(const char *text, const char *begins)
{
    const char *line = strstr(text, begins);
    assert_non_null(line);
    return strcspn(line, "\n");
}

static void columns_hold_for_long_names(void **state)
{
    (void)state;
    begin();
    add("LAPACKE_zgesvdx_work_and_longer", ACCEL_WORKSPACE_QUERY, "gpu12+cpu", 12345678);
    add("f", ACCEL_SMALL, "cpu", 1);
    const char *text = page_of(20000, false);
    const size_t whole = line_length(text, "accel: routine ");
    assert_int_equal(line_length(text, "accel: LAPACKE_zgesvdx_work_and_longer "), whole);
    assert_int_equal(line_length(text, "accel: f "), whole);
    /* These have no estimate, and end with their seconds. */
    assert_int_equal(line_length(text, "accel: outside these calls "), whole - 22);
    assert_int_equal(line_length(text, "accel: all "), whole - 22);
    assert_non_null(strstr(text, "gpu12+cpu workspace_query  12345.678     80.000 -12265.678\n"));
    assert_non_null(strstr(text, "accel: 2 calls of BLAS, LAPACK or machine learning took "
                                 "12345.679 s, 62 % of the time\n"));
}

static void rows_without_a_place_are_added_up(void **state)
{
    static char name[30][8];
    (void)state;
    begin();
    for (int i = 0; i < 30; i++) {
        snprintf(name[i], sizeof name[i], "f%d", i);
        add(name[i], ACCEL_SMALL, "cpu", 1000 * (i + 1));
    }
    const char *text = page_of(1000, false);
    assert_non_null(strstr(text, "\naccel: f29 "));
    assert_non_null(strstr(text, "\naccel: f10 "));
    assert_null(strstr(text, "\naccel: f9 "));
    const char *rest = strstr(text, "\naccel: in further rows ");
    assert_non_null(rest);
    int calls;
    double seconds;
    assert_int_equal(sscanf(rest, "\naccel: in further rows %d %lf", &calls, &seconds), 2);
    assert_int_equal(calls, 10);
    assert_true(seconds == 55);
}

/* All lines of a hint but the last are full, none is longer than a terminal. */
static void hints_are_broken_into_lines(void **state)
{
    (void)state;
    begin();
    add("f", ACCEL_WARMING, "cpu", 9000);
    const char *text = page_of(10, false), *hint = strstr(text, "accel: hint: ");
    assert_non_null(hint);
    assert_non_null(strstr(hint, "\naccel:       "));
    for (const char *line = hint; *line; line += strcspn(line, "\n") + 1)
        assert_true(strcspn(line, "\n") <= 100);
}

/* "None was started, as no call would gain" is said only if no call would have. */
/* Whether the number that a line ends with is followed by a line of the same hint. */
static bool parts_number_and_unit(const char *line, const char *end)
{
    const char *word = end;
    while (word > line && word[-1] != ' ')
        word--;
    return strncmp(end, "\naccel:       ", 14) == 0 &&
           strspn(word, "0123456789.") == (size_t)(end - word);
}

/* Of many times and calls, whose numbers lie at each place of a line. */
static void numbers_keep_their_units(void **state)
{
    static const enum accel_why whys[] = {ACCEL_WARMING, ACCEL_NO_GPU, ACCEL_NO_MEMORY,
                                          ACCEL_BUSY,    ACCEL_FORKED, ACCEL_ERROR};
    int broken = 0;
    (void)state;
    for (int i = 0; i < 6; i++)
        for (double ms = 1000; ms < 1e9; ms *= 10)
            for (int calls = 1; calls <= 1000; calls *= 10) {
                begin();
                for (int n = 0; n < calls; n++)
                    add("f", whys[i], "cpu", ms);
                const char *line = strstr(page_of(1e-3 * ms, false), "accel: hint: ");
                for (; line && *line; line += strcspn(line, "\n") + 1) {
                    const char *const end = line + strcspn(line, "\n");
                    broken += strncmp(end, "\naccel:       ", 14) == 0;
                    assert_false(parts_number_and_unit(line, end));
                }
            }
    assert_true(broken > 100);
}

static void no_gpu_has_a_true_reason(void **state)
{
    static const enum accel_why whys[] = {ACCEL_SLOWER, ACCEL_WARMING, ACCEL_NO_GPU};
    (void)state;
    for (int i = 0; i < 3; i++) {
        begin();
        totals_tell(part.totals, BANNER_PROGRAM, false, "accel: libaccel  1.2.3\n");
        add("f", whys[i], "cpu", 1);
        const char *text = page_of(10, false);
        assert_non_null(strstr(text, "libaccel  1.2.3\n"));
        assert_int_equal(strstr(text, "none was started") != NULL, whys[i] == ACCEL_SLOWER);
    }
}

static void several_processes(void **state)
{
    (void)state;
    begin();
    add("f", ACCEL_SMALL, "cpu", 1);
    const pid_t child = fork();
    if (child == 0) {
        totals_begin(&part, part.totals);
        add("f", ACCEL_SMALL, "cpu", 1);
        _exit(0);
    }
    assert_int_equal(waitpid(child, NULL, 0), child);
    assert_non_null(strstr(page_of(10, false), ": 2 processes made calls, and ran 0."));
}

/* Times of threads that compute at the same time add up to more than there was: no share is
 * told. */
static void several_threads(void **state)
{
    (void)state;
    begin();
    add("f", ACCEL_SMALL, "cpu", 20000);
    totals_know(part.totals, TOTALS_THREADS);
    const char *text = page_of(10, false);
    assert_non_null(strstr(text, " took 20.000 s on several threads\n"));
    assert_null(strstr(text, "outside"));
    assert_non_null(strstr(text, "\naccel: all calls "));
    add("f", ACCEL_SMALL, "cpu", 20000);
    assert_null(strstr(page_of(10, true), "outside_s"));
}

static void nothing_was_called(void **state)
{
    (void)state;
    begin();
    assert_string_equal(page_of(10, false), "");
    assert_string_equal(page_of(10, true), "");
    add("f", ACCEL_SMALL, "cpu", 1);
    assert_string_not_equal(page_of(10, false), "");
    assert_string_equal(page_of(10, false), ""); /* it has been written */
}

static void json_is_escaped(void **state)
{
    (void)state;
    begin();
    add("f", ACCEL_SMALL, "cpu", 1);
    assert_non_null(strstr(page_of(10, true), "\"program\": \"a \\\"program\\\"\", "));
}

/* A page has what was told in its own form alone. */
static void each_form_has_its_own_banner(void **state)
{
    (void)state;
    for (int json = 0; json < 2; json++) {
        begin();
        add("f", ACCEL_SMALL, "cpu", 1);
        totals_tell(part.totals, BANNER_PROGRAM, false, "accel: libaccel  1.2.3\n");
        totals_tell(part.totals, BANNER_GPU, true, "{\"event\": \"gpu\"}");
        const char *text = page_of(10, json);
        assert_int_equal(strstr(text, "libaccel  1.2.3\n") != NULL, !json);
        assert_int_equal(strstr(text, "\"about\": [{\"event\": \"gpu\"}]") != NULL, json);
        assert_int_equal(strstr(text, "\"event\": \"gpu\"") != NULL, json);
    }
}

int main(void)
{
    static const struct accel_routine unknown = {.args = 0};
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(columns_hold_for_long_names),
        cmocka_unit_test(rows_without_a_place_are_added_up),
        cmocka_unit_test(hints_are_broken_into_lines),
        cmocka_unit_test(numbers_keep_their_units),
        cmocka_unit_test(no_gpu_has_a_true_reason),
        cmocka_unit_test(several_processes),
        cmocka_unit_test(several_threads),
        cmocka_unit_test(nothing_was_called),
        cmocka_unit_test(json_is_escaped),
        cmocka_unit_test(each_form_has_its_own_banner),
    };
    call.routine = &unknown;
    fd = mkstemp(path);
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    unlink(path);
    return failed;
}
