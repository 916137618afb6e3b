#define _GNU_SOURCE
/* Whole reads and writes, and folders of paths. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file/file.h"
#include "base/file/file_identity.h"

/* A pipe gives what is in it, not what is asked for. */
static void test_read_goes_on_to_the_end(void **state)
{
    (void)state;
    int ends[2];
    char bytes[8] = "";
    assert_int_equal(pipe(ends), 0);
    pid_t pid = fork();
    if (pid == 0) {
        for (int i = 0; i < 6; i++) {
            if (write(ends[1], &"abcdef"[i], 1) != 1)
                _exit(1);
            usleep(1000);
        }
        _exit(0);
    }
    close(ends[1]);
    assert_int_equal(file_read(ends[0], bytes, 4), 4);
    assert_memory_equal(bytes, "abcd", 4);
    assert_int_equal(file_read(ends[0], bytes, sizeof bytes), 2);
    assert_memory_equal(bytes, "ef", 2);
    assert_int_equal(file_read(ends[0], bytes, sizeof bytes), 0);
    close(ends[0]);
    assert_int_equal(file_read(ends[0], bytes, sizeof bytes), -1);
    assert_int_equal(errno, EBADF);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void test_write_tells_what_is_written(void **state)
{
    (void)state;
    int ends[2];
    size_t written = 99;
    static char many[200000];
    assert_int_equal(pipe2(ends, O_NONBLOCK), 0);
    assert_int_equal(file_write(ends[1], "abc", 3, &written), 0);
    assert_int_equal(written, 3);
    assert_int_equal(file_write(ends[1], many, sizeof many, &written), EAGAIN);
    assert_in_range(written, 1, sizeof many - 1);
    int full = open("/dev/full", O_WRONLY);
    assert_int_equal(file_write(full, "abc", 3, &written), ENOSPC);
    assert_int_equal(written, 0);
    close(full);
    close(ends[0]);
    close(ends[1]);
}

static void test_folder_of_a_path(void **state)
{
    static const char *const paths[][3] = {
        {"a/b/c", "a/b", "c"}, {"c", ".", "c"}, {"/c", "/", "c"}, {"a/", "a", ""}};
    char folder[PATH_MAX], longest[PATH_MAX + 2];
    const char *name;
    (void)state;
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        assert_true(file_folder(paths[i][0], folder, &name));
        assert_string_equal(folder, paths[i][1]);
        assert_string_equal(name, paths[i][2]);
    }
    memset(longest, 'a', sizeof longest);
    longest[PATH_MAX] = '/';
    longest[PATH_MAX + 1] = 0;
    assert_false(file_folder(longest, folder, &name));
    assert_int_equal(errno, ENAMETOOLONG);
}

/* Of a descriptor under this number. Ends a child with 0 where it is another number's then. */
static void move_in_child(int number, rlim_t limit, int least)
{
    const struct rlimit files = {limit, limit};
    struct file_identity file;
    if (dup2(open("/dev/null", O_RDONLY), number) != number || setrlimit(RLIMIT_NOFILE, &files))
        _exit(2);
    file_identify(number, &file);
    const int high = file_move_high(number);
    _exit(!(high >= least && high < (int)limit && file_is(high, &file) &&
            fcntl(high, F_GETFD) == FD_CLOEXEC && (high == number || !file_is(number, &file))));
}

static void test_descriptors_go_to_high_numbers(void **state)
{
    static const struct {
        int number, limit, least;
    } cases[] = {{0, 1000, 200}, {30, 1000, 200}, {0, 50, 3}, {30, 50, 3}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int status;
        pid_t pid = fork();
        if (pid == 0)
            move_in_child(cases[i].number, (rlim_t)cases[i].limit, cases[i].least);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_int_equal(status, 0);
    }
    assert_int_equal(file_move_high(-1), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_read_goes_on_to_the_end),
        cmocka_unit_test(test_write_tells_what_is_written),
        cmocka_unit_test(test_folder_of_a_path),
        cmocka_unit_test(test_descriptors_go_to_high_numbers),
    };
    return cmocka_run_group_tests_name("file", tests, NULL, NULL);
}
