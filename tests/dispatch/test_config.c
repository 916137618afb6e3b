/* The config files: which counts, what their lines may be, and what is said of those that are
 * not. */
#include "tests/lib/settings_fixture.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "dispatch/settings/config.h"
#include "ops/names.h"

static void precedence(void **state)
{
    (void)state;
    write_file(systems, "ACCEL_POLICY=gpu\nACCEL_MEMORY=1G\nACCEL_LOG=json\nACCEL_SUMMARY=1\n"
                        "ACCEL_GPU=a\nACCEL_CPU=a\nACCEL_LEARN=1\n");
    write_file(users_own,
               "ACCEL_MEMORY=2G\nACCEL_LOG=2\nACCEL_CUDA_DIR=/usr\nACCEL_GPU=b\nACCEL_CPU=b\n");
    write_file(named, "ACCEL_LOG=1\nACCEL_ORIGINAL=c\nACCEL_CUDA_DIR=/etc\nACCEL_CPU=\n");
    setenv("ACCEL_CONFIG", named, 1);
    setenv("ACCEL_CUDA_DIR", "/tmp", 1);
    setenv("ACCEL_SUMMARY", "", 1);
    struct accel_settings s = read_now();
    assert_int_equal(s.policy, ACCEL_POLICY_GPU);
    assert_int_equal(s.memory_bytes, (int64_t)2 << 30);
    assert_int_equal(s.log, ACCEL_LOG_DECISIONS);
    assert_string_equal(s.cuda_dir, "/tmp");
    assert_string_equal(s.original, "c");
    assert_true(s.learn);
    assert_string_equal(s.gpu_routines.text, "b");
    /* An empty value is the default, and hides those below. */
    assert_false(s.summary);
    assert_null(s.cpu_routines.text);
    assert_string_equal(complaints(), "");

    /* So does one that cannot be read; what is hidden is not looked at. */
    write_file(systems, "ACCEL_LOG=wrong\n");
    assert_int_equal(read_now().log, ACCEL_LOG_DECISIONS);
    assert_string_equal(complaints(), "");
    setenv("ACCEL_LOG", "wrong", 1);
    assert_int_equal(read_now().log, ACCEL_LOG_OFF);
    assert_int_equal(lines_of(complaints()), 1);

    /* The user's own folder. */
    char path[PATH_MAX];
    clear(NULL);
    write_file(users_own, "ACCEL_LOG=1\n");
    assert_int_equal(read_now().log, ACCEL_LOG_DECISIONS);
    print(path, sizeof path, "%s/.config", folder);
    setenv("XDG_CONFIG_HOME", path, 1);
    setenv("HOME", "/nowhere", 1);
    assert_int_equal(read_now().log, ACCEL_LOG_DECISIONS);
    setenv("XDG_CONFIG_HOME", "/nowhere", 1);
    setenv("HOME", folder, 1);
    assert_int_equal(read_now().log, ACCEL_LOG_OFF);
    setenv("XDG_CONFIG_HOME", ".", 1); /* relative: as if not set */
    assert_int_equal(read_now().log, ACCEL_LOG_DECISIONS);
    unsetenv("HOME");
    assert_int_equal(read_now().log, ACCEL_LOG_OFF);
    sources.system_file = NULL;
    assert_int_equal(read_now().log, ACCEL_LOG_OFF);
    assert_string_equal(complaints(), "");
}

static void forms(void **state)
{
    (void)state;
    struct accel_settings s = read_file("\n  # ACCEL_LOG=2\n\t\n#\n ACCEL_LOG\t=  1 \t\r\n"
                                        "ACCEL_LOG_FILE = \"/tmp/a # b \"\r\n"
                                        "ACCEL_MODEL=/a \"b\" = #c\n"
                                        "ACCEL_GPU=\"\"\nACCEL_CPU=\nACCEL_SUMMARY=1");
    assert_int_equal(s.log, ACCEL_LOG_DECISIONS);
    assert_string_equal(s.log_file, "/tmp/a # b ");
    assert_string_equal(s.model, "/a \"b\" = #c");
    assert_null(s.gpu_routines.text);
    assert_null(s.cpu_routines.text);
    assert_true(s.summary);
    assert_string_equal(complaints(), "");
    /* The last of several lines counts. */
    assert_int_equal(read_file("ACCEL_LOG=1\nACCEL_LOG=wrong\nACCEL_LOG=2\n").log, ACCEL_LOG_MOVES);
    assert_string_equal(complaints(), "");
    read_file("");
    assert_string_equal(complaints(), "");
}

static void bad_lines(void **state)
{
    static const char *const bad[] = {"ACCEL_LOG 1",
                                      "=1",
                                      "ACCEL LOG=1",
                                      "export ACCEL_LOG=1",
                                      "ACCEL_LOG",
                                      "ACCEL_LOG=\"1",
                                      "ACCEL_LOG=\"",
                                      "[accel]",
                                      "ACCEL_LOG=\"1\" # log",
                                      "ACCEL_LOG=\"a\"b\"",
                                      "=",
                                      ("\xef\xbb\xbf"
                                       "ACCEL_LOG=1")};
    static const char *const unknown[][2] = {{"ACCEL_LOGG", "ACCEL_LOG"},
                                             {"accel_log", "ACCEL_LOG"},
                                             {"ACCELPOLICY", "ACCEL_POLICY"},
                                             {"ACCEL_LERN", "ACCEL_LEARN"},
                                             {"LOG", "ACCEL_LOG"},
                                             {"log", "ACCEL_LOG"},
                                             {"log_file", "ACCEL_LOG_FILE"},
                                             {"polcy", "ACCEL_POLICY"},
                                             {"Accel", "ACCEL"},
                                             {"PATH", "ACCEL"},
                                             {"ACCEL_ESTIMATE_DIR", "ACCEL_METRICS_DIR"}};
    char text[500], expected[1000];
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        print(text, sizeof text, "ACCEL_SUMMARY=1\n\n %s \r\nACCEL_POLICY=gpu\n", bad[i]);
        struct accel_settings s = read_file(text);
        assert_true(s.summary);
        assert_int_equal(s.policy, ACCEL_POLICY_GPU);
        assert_int_equal(s.log, ACCEL_LOG_OFF);
        print(expected, sizeof expected,
              "accel: %s:3: %s is not understood; allowed: NAME=value; the line is ignored\n",
              systems, bad[i]);
        assert_string_equal(complaints(), expected);
    }
    for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++) {
        print(text, sizeof text, "ACCEL_SUMMARY=1\n%s=1\nACCEL_POLICY=gpu\n", unknown[i][0]);
        struct accel_settings s = read_file(text);
        assert_true(s.summary);
        assert_int_equal(s.policy, ACCEL_POLICY_GPU);
        print(expected, sizeof expected,
              "accel: %s:2: %s is no setting of this version; the nearest is %s; the line is "
              "ignored\n",
              systems, unknown[i][0], unknown[i][1]);
        assert_string_equal(complaints(), expected);
    }
    read_file("ACCEL_CONFIG=/etc/other.conf\n");
    print(expected, sizeof expected,
          "accel: %s:1: ACCEL_CONFIG counts in the environment alone; the line is ignored\n",
          systems);
    assert_string_equal(complaints(), expected);
    /* Many. */
    text[0] = 0;
    for (int i = 0; i < 20; i++)
        strcat(text, "wrong\n");
    strcat(text, "ACCEL_LOG=1\n");
    assert_int_equal(read_file(text).log, ACCEL_LOG_DECISIONS);
    assert_int_equal(lines_of(complaints()), 17);
    read_now();
    assert_non_null(strstr(complaints(),
                           ":16: wrong is not understood; allowed: NAME=value; the line "
                           "is ignored\naccel: and so on: 4 more of the settings are "
                           "not understood\n"));
}

/* What is said of a file that ACCEL_CONFIG names. */
static const char *said_of(const char *path)
{
    setenv("ACCEL_CONFIG", path, 1);
    setenv("ACCEL_LOG", "1", 1);
    write_file(systems, "ACCEL_SUMMARY=1\n");
    struct accel_settings s = read_now();
    assert_int_equal(s.log, ACCEL_LOG_DECISIONS); /* all else is used */
    assert_true(s.summary);
    return complaints();
}

static void bad_files(void **state)
{
    char expected[2 * PATH_MAX];
    static char large[65538];
    (void)state;
    print(expected, sizeof expected,
          "accel: ACCEL_CONFIG=%s cannot be opened (No such file or directory), and may hold "
          "ACCEL_REQUIRE; the program ends at its first call of BLAS\n",
          named);
    assert_string_equal(said_of(named), expected);
    assert_string_equal(said_of("/dev/null/x"),
                        "accel: ACCEL_CONFIG=/dev/null/x cannot be opened (Not a directory), and "
                        "may hold ACCEL_REQUIRE; the program ends at its first call of BLAS\n");
    print(expected, sizeof expected,
          "accel: ACCEL_CONFIG=%s is not a regular file, and may hold ACCEL_REQUIRE; the program "
          "ends at its first call of BLAS\n",
          folder);
    assert_string_equal(said_of(folder), expected);
    mkfifo(named, 0600);
    print(expected, sizeof expected,
          "accel: ACCEL_CONFIG=%s is not a regular file, and may hold ACCEL_REQUIRE; the program "
          "ends at its first call of BLAS\n",
          named);
    assert_string_equal(said_of(named), expected);
    unlink(named);
    assert_string_equal(said_of("/proc/self/mem"),
                        "accel: ACCEL_CONFIG=/proc/self/mem cannot be read "
                        "(Input/output error), and may hold ACCEL_REQUIRE; the program ends at its "
                        "first call of BLAS\n");
    write_bytes(named, "ACCEL_POLICY=gpu\n\0\n", 19);
    print(expected, sizeof expected,
          "accel: ACCEL_CONFIG=%s has a NUL byte in it, and may hold ACCEL_REQUIRE; the program "
          "ends at its first call of BLAS\n",
          named);
    assert_string_equal(said_of(named), expected);
    assert_int_equal(read_now().policy, ACCEL_POLICY_AUTO);
    memset(large, '#', sizeof large);
    write_bytes(named, large, 65537);
    print(expected, sizeof expected,
          "accel: ACCEL_CONFIG=%s is larger than 64 KiB, and may hold ACCEL_REQUIRE; the program "
          "ends at its first call of BLAS\n",
          named);
    assert_string_equal(said_of(named), expected);
    memcpy(large + 65519, "\nACCEL_POLICY=gpu", 17);
    write_bytes(named, large, 65536);
    assert_string_equal(said_of(named), "");
    assert_int_equal(read_now().policy, ACCEL_POLICY_GPU);

    /* Those that nobody has named are silent where they are not there, and only there. */
    clear(NULL);
    mkdir(systems, 0700);
    mkdir(users_own, 0700);
    print(expected, sizeof expected,
          "accel: %s is not a regular file; it is ignored\n"
          "accel: %s is not a regular file; it is ignored\n",
          users_own, systems);
    read_now();
    assert_string_equal(complaints(), expected);
    rmdir(systems);
    rmdir(users_own);
    setenv("HOME", "/dev/null", 1);
    sources.system_file = "/dev/null/x";
    read_now();
    assert_string_equal(complaints(), "");
    /* One file under two names is read once. */
    clear(NULL);
    write_file(systems, "wrong\n");
    setenv("ACCEL_CONFIG", systems, 1);
    read_now();
    assert_int_equal(lines_of(complaints()), 1);
}

/* A file is at fault by itself, or by an error of the system's: never by an earlier one. */
static void errors_of_files(void **state)
{
    int error = -1;
    (void)state;
    write_file(named, "");
    errno = EIO;
    assert_null(config_load(named, &error));
    assert_int_equal(error, 0);
    assert_true(config_is_known());
    chmod(named, 0646);
    errno = EIO;
    assert_string_equal(config_load(named, &error), "may be written by all");
    assert_int_equal(error, 0);
    assert_true(config_is_known());
    assert_string_equal(config_load(folder, &error), "is not a regular file");
    assert_int_equal(error, 0);
    assert_false(config_is_known());
    assert_string_equal(config_load("/dev/null/x", &error), "cannot be opened");
    assert_int_equal(error, ENOTDIR);
    assert_string_equal(config_load("/proc/self/mem", &error), "cannot be read");
    assert_int_equal(error, EIO);
    assert_false(config_is_known());
}

/* A file that the user names and that has no effect: a promise that may be in it is not dropped. */
static void promises_lost(void **state)
{
    static const char *const promises[] = {"ACCEL_REQUIRE", "ACCEL_VERIFY", "ACCEL_VERIFY_ACTION"};
    char expected[2 * PATH_MAX], line[100];
    (void)state;
    clear(NULL);
    said_of(named);
    assert_true(read_now().broken_promise);
    for (int i = 0; i < 3; i++) {
        clear(NULL);
        print(line, sizeof line, "ACCEL_LOG=2\n%s=cpu\n", promises[i]);
        write_file(named, line);
        chmod(named, 0646);
        print(expected, sizeof expected,
              "accel: ACCEL_CONFIG=%s may be written by all, and names %s; the program ends at its "
              "first call of BLAS\n",
              named, promises[i]);
        assert_string_equal(said_of(named), expected);
        assert_true(read_now().broken_promise);
        /* What the environment says goes before. */
        setenv(promises[i], "", 1);
        assert_false(read_now().broken_promise);
    }
    clear(NULL);
    write_file(named, "");
    chmod(named, 0646);
    said_of(named);
    assert_false(read_now().broken_promise);
    for (int i = 0; i < 3; i++)
        setenv(promises[i], "", 1);
    unlink(named);
    assert_false(read_now().broken_promise);
    /* Where nobody has named the file, others who can write it could end programs. */
    clear(NULL);
    write_file(systems, "ACCEL_REQUIRE=gpu\n");
    write_file(users_own, "ACCEL_REQUIRE=gpu\n");
    chmod(systems, 0646);
    chmod(users_own, 0646);
    assert_false(read_now().broken_promise || read_now().require_gpu);
    assert_int_equal(lines_of(complaints()), 2);
}

/* Files of other people: those that somebody else could change are not read, whoever names them. */
static void others_files(void **state)
{
    char expected[2 * PATH_MAX];
    (void)state;
    write_file(named, "ACCEL_POLICY=gpu\n");
    chmod(named, 0646);
    print(expected, sizeof expected,
          "accel: ACCEL_CONFIG=%s may be written by all; it is ignored\n", named);
    assert_string_equal(said_of(named), expected);
    chmod(named, 0664);
    assert_string_equal(said_of(named), "");
    assert_int_equal(read_now().policy, ACCEL_POLICY_GPU);
    /* What a link leads to counts. */
    clear(NULL);
    write_file(named, "ACCEL_POLICY=gpu\n");
    assert_int_equal(symlink(named, users_own), 0);
    assert_int_equal(read_now().policy, ACCEL_POLICY_GPU);
    chmod(named, 0666);
    assert_int_equal(read_now().policy, ACCEL_POLICY_AUTO);
    print(expected, sizeof expected, "accel: %s may be written by all; it is ignored\n", users_own);
    assert_string_equal(complaints(), expected);
    unlink(users_own);
    if (geteuid() != 0)
        return; /* only root can give files away */
    chmod(named, 0600);
    assert_int_equal(chown(named, 65534, 65534), 0);
    print(expected, sizeof expected,
          "accel: ACCEL_CONFIG=%s belongs to another user; it is ignored\n", named);
    assert_string_equal(said_of(named), expected);
    assert_int_equal(rename(named, users_own), 0);
    unsetenv("ACCEL_CONFIG");
    print(expected, sizeof expected, "accel: %s belongs to another user; it is ignored\n",
          users_own);
    read_now();
    assert_string_equal(complaints(), expected);
}

/* Whatever a damaged file has in it: every line of complaint is one, and no value is out of its
 * set. */
static void check_damaged(const char *text, size_t size)
{
    write_bytes(systems, text, size);
    struct accel_settings s = read_now();
    assert_true(s.log <= ACCEL_LOG_JSON && s.policy <= ACCEL_POLICY_CPU);
    assert_true(s.devices.count >= 0 && s.devices.count <= ACCEL_DEVICES_MAX);
    assert_true(s.devices.kind <= ACCEL_DEVICES_LIST && s.start <= ACCEL_START_PROGRAM);
    assert_true(s.memory_share > 0 && s.memory_share <= 1 && s.memory_bytes >= 0);
    settings_check_routines(&s, accel_routines, accel_routine_count);
    const char *said = complaints();
    assert_true(lines_of(said) <= 17);
    for (const char *line = said; *line; line = strchr(line, '\n') + 1)
        assert_int_equal(strncmp(line, "accel: ", 7), 0);
}

static void damaged_files(void **state)
{
    static const char text[] =
        "# accel.conf\nACCEL = 1\r\nACCEL_LOG=json\nACCEL_LOG_FILE=\"log.%p\"\n"
        "ACCEL_SUMMARY=1\nACCEL_POLICY=cpu\nACCEL_GPU=\"dgemm, lapack:[cz]*\"\n"
        "ACCEL_CPU=blas2:*\nACCEL_REQUIRE=gpu\nACCEL_START=wait\nACCEL_LEARN=1\n"
        "ACCEL_DEVICES=0,2,17\nACCEL_MEMORY=12.5G\nACCEL_MODEL=/tmp/model\n"
        "ACCEL_EXCLUDE=default,foo*\nACCEL_ORIGINAL=a:b\n";
    static char large[65536];
    char damaged[sizeof text];
    size_t size = sizeof text - 1;
    (void)state;
    struct accel_settings s = read_file(text);
    assert_string_equal(complaints(), "");
    assert_int_equal(s.devices.number[2], 17);
    for (size_t i = 0; i < size; i++) {
        check_damaged(text, i);
        memcpy(damaged, text, i);
        memcpy(damaged + i, text + i + 1, size - i - 1);
        check_damaged(damaged, size - 1);
        for (int bit = 0; bit < 8; bit++) {
            memcpy(damaged, text, size);
            damaged[i] = (char)(damaged[i] ^ 1 << bit);
            check_damaged(damaged, size);
        }
    }
    uint32_t random = 1;
    for (int round = 0; round < 50; round++) {
        for (size_t i = 0; i < sizeof large; i++) {
            random = random * 1664525 + 1013904223;
            large[i] =
                round % 2 ? (char)((random >> 24) % 255 + 1) : "=\"\n# ACEL_"[random >> 24 & 7];
        }
        check_damaged(large, sizeof large);
    }
    for (size_t i = 0; i < sizeof large; i++)
        large[i] = "\nA="[i % 3];
    check_damaged(large, sizeof large);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(precedence, clear),
        cmocka_unit_test_setup(forms, clear),
        cmocka_unit_test_setup(bad_lines, clear),
        cmocka_unit_test_setup(bad_files, clear),
        cmocka_unit_test_setup(errors_of_files, clear),
        cmocka_unit_test_setup(promises_lost, clear),
        cmocka_unit_test_setup(others_files, clear),
        cmocka_unit_test_setup(damaged_files, clear),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
