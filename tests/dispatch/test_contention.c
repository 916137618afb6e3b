#define _GNU_SOURCE
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/file/shared_file.h"
#include "dispatch/cost/contention.h"

static char folder[] = "/tmp/accel-load-XXXXXX";
static char path[96];

static int make_folder(void **state)
{
    (void)state;
    snprintf(path, sizeof path, "%s/accel-%d-device", mkdtemp(folder), (int)geteuid());
    return setenv("XDG_RUNTIME_DIR", folder, 1);
}

static int remove_folder(void **state)
{
    (void)state;
    unlink(path);
    return rmdir(folder);
}

/* In a process of its own: 0 where it does what is right, with files of this length at most; a
 * signal's number. */
static int with_limit(rlim_t bytes)
{
    int status;
    pid_t child = fork();
    if (child == 0) {
        const struct rlimit limit = {bytes, bytes};
        sigset_t pending;
        setrlimit(RLIMIT_FSIZE, &limit);
        static struct contention load;
        shared_file_prepare();
        contention_start(&load, "device");
        int number = contention_enter_gpu(&load, 100);
        double ms = contention_gpu_ms(&load);
        contention_leave_gpu(&load, number);
        sigpending(&pending);
        _exit(number < 0 || ms > 100 || ms < 80 || !sigisemptyset(&pending));
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status);
}

/* The page is a file: a limit on their size leaves a process to itself, and does not end it. */
static void a_limit_on_files(void **state)
{
    struct stat st;
    (void)state;
    assert_int_equal(with_limit(0), 0);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_size, 0);
    assert_int_equal(with_limit(RLIM_INFINITY), 0);
    assert_int_equal(stat(path, &st), 0);
    assert_true(st.st_size > 0);
    assert_int_equal(with_limit(0), 0); /* there is room now */
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_limit_on_files)};
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
