/* The records of the libraries that a program calls, for the tool: which there are, in which form,
 * and what becomes of those that cannot be written. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "dispatch/census.h"

enum { MOST = 64 }; /* that a process writes of libraries */

static char folder[] = "/tmp/accel-called-XXXXXX", path[100], elsewhere[100], here[PATH_MAX];
static struct accel_settings settings;
static int threads, written; /* records so far */

static int threads_of(const struct dispatch_library *library)
{
    (void)library;
    return threads;
}

/* Reads the records, and empties the file. Returns how many there are. */
static char records[MOST * 300];

static int read_records(void)
{
    int found = 0;
    FILE *const file = fopen(path, "r+");
    assert_non_null(file);
    const size_t length = fread(records, 1, sizeof records - 1, file);
    assert_true(length < sizeof records - 1);
    records[length] = 0;
    for (size_t i = 0; i < length; i++)
        found += records[i] == 0;
    assert_true(length == 0 || records[length - 1] == 0);
    assert_int_equal(ftruncate(fileno(file), 0), 0);
    fclose(file);
    return found;
}

#define assert_record(text)                                                                        \
    do {                                                                                           \
        assert_int_equal(read_records(), 1);                                                       \
        assert_string_equal(records, text);                                                        \
        written++;                                                                                 \
    } while (0)

static void nothing_is_noted(void **state)
{
    (void)state;
    assert_false(census_is_on());
    settings.called = path;
    census_start(&settings);
    assert_true(census_is_on());
    assert_int_equal(read_records(), 0);
}

/* Once for each library with each number of threads, apart for calls that are not known. */
static void libraries(void **state)
{
    static const struct dispatch_library one = {.threads = threads_of, .path = "/lib/one"},
                                         other = {.threads = threads_of, .path = "/lib/other"},
                                         none = {.threads = threads_of};
    (void)state;
    threads = 4;
    census_note(&one, "dgemm_", 32);
    assert_record("4 32 dgemm_ /lib/one");
    census_note(&one, "sgemm_", 64);
    assert_int_equal(read_records(), 0);
    threads = 5;
    census_note(&one, "sgemm_", 64);
    assert_record("5 64 sgemm_ /lib/one");
    census_note(&one, "sgemm_", CENSUS_UNKNOWN);
    assert_record("5 -1 sgemm_ /lib/one");
    census_note(&other, "svm_train", 0);
    assert_record("5 0 svm_train /lib/other");
    census_note(&none, "dgemm_", 32);
    assert_int_equal(read_records(), 0);
    for (threads = 4; threads < 6; threads++) { /* all of them are known still */
        census_note(&one, "dgemm_", 32);
        if (threads == 5) {
            census_note(&one, "dgemm_", CENSUS_UNKNOWN);
            census_note(&other, "dgemm_", 32);
        }
    }
    assert_int_equal(read_records(), 0);
}

/* Paths that are right in another folder. */
static void paths(void **state)
{
    static const struct dispatch_library program = {.threads = threads_of, .path = ""},
                                         relative = {.threads = threads_of, .path = "calls"},
                                         missing = {.threads = threads_of, .path = "not/there"};
    char expected[PATH_MAX + 20];
    (void)state;
    threads = 1;
    census_note(&program, "dgemm_", 32);
    snprintf(expected, sizeof expected, "1 32 dgemm_ %s", here);
    assert_record(expected);
    assert_int_equal(chdir(folder), 0);
    census_note(&relative, "dgemm_", 32);
    snprintf(expected, sizeof expected, "1 32 dgemm_ %s", path);
    assert_record(expected);
    census_note(&missing, "dgemm_", 32);
    assert_record("1 32 dgemm_ not/there");
}

static void what_is_left_to_the_program(void **state)
{
    char expected[PATH_MAX + 20];
    (void)state;
    census_note_hold(false); /* no news */
    assert_int_equal(read_records(), 0);
    for (int i = 0; i < 3; i++) {
        const bool held = i % 2 == 0;
        census_note_hold(held);
        snprintf(expected, sizeof expected, "-1 %d - %s", held, here);
        assert_record(expected);
        written--;
        census_note_hold(held);
        assert_int_equal(read_records(), 0);
    }
    census_note_hold(false);
    read_records();
}

/* What cannot be written now is written at a later call. */
static void a_file_that_cannot_be_written(void **state)
{
    static const struct dispatch_library late = {.threads = threads_of, .path = "/lib/late"};
    (void)state;
    assert_int_equal(rename(path, elsewhere), 0);
    threads = 2;
    census_note(&late, "dgemm_", 32);
    census_note_hold(true);
    assert_int_equal(access(path, F_OK), -1); /* the tool makes it */
    assert_int_equal(symlink(elsewhere, path), 0);
    census_note(&late, "dgemm_", 32);
    unlink(path);
    assert_int_equal(rename(elsewhere, path), 0);
    assert_int_equal(read_records(), 0);
    census_note(&late, "dgemm_", 32);
    assert_record("2 32 dgemm_ /lib/late");
    census_note_hold(true);
    assert_int_equal(read_records(), 1);
}

/* The program's own files are as before; it may have closed its input. */
static void open_files(void **state)
{
    static const struct dispatch_library closed = {.threads = threads_of, .path = "/lib/closed"};
    const int input = dup(0), next = dup(input);
    (void)state;
    close(next);
    close(0);
    threads = 3;
    census_note(&closed, "dgemm_", 32);
    assert_int_equal(fcntl(0, F_GETFD), -1);
    assert_int_equal(dup2(input, 0), 0);
    assert_record("3 32 dgemm_ /lib/closed");
    threads = 4;
    census_note(&closed, "dgemm_", 32);
    assert_record("4 32 dgemm_ /lib/closed");
    assert_int_equal(dup(input), next);
    close(next);
    close(input);
}

static void no_more_than_some(void **state)
{
    static const struct dispatch_library any = {.threads = threads_of, .path = "/lib/any"};
    (void)state;
    for (threads = 100; threads < 100 + 2 * MOST; threads++)
        census_note(&any, "dgemm_", 32);
    assert_int_equal(read_records(), MOST - written);
    census_note_hold(false); /* nor are these lost */
    assert_int_equal(read_records(), 1);
}

static int start(void **state)
{
    (void)state;
    if (!mkdtemp(folder) || !realpath("/proc/self/exe", here))
        return -1;
    snprintf(path, sizeof path, "%s/calls", folder);
    snprintf(elsewhere, sizeof elsewhere, "%s/elsewhere", folder);
    FILE *const file = fopen(path, "w");
    census_start(&settings);
    return file ? fclose(file) : -1;
}

static int end(void **state)
{
    (void)state;
    unlink(path);
    unlink(elsewhere);
    return chdir("/") || rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_noted),
        cmocka_unit_test(libraries),
        cmocka_unit_test(paths),
        cmocka_unit_test(what_is_left_to_the_program),
        cmocka_unit_test(a_file_that_cannot_be_written),
        cmocka_unit_test(open_files),
        cmocka_unit_test(no_more_than_some),
    };
    return cmocka_run_group_tests(tests, start, end);
}
