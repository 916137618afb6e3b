/* Processes that end together: the file has the calls of all, whichever puts its text in place
 * last. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <dirent.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/thread/forks.h"
#include "report/metrics.h"
#include "report/report.h"

static pid_t other;
static int begin_other = -1; /* closed: it begins */

/* In place of libc's: before this process puts its first text in place, the other one calls, writes
 * and ends. */
int rename(const char *from, const char *to)
{
    if (begin_other >= 0) {
        close(begin_other);
        begin_other = -1;
        assert_int_equal(waitpid(other, NULL, 0), other);
    }
    return renameat(AT_FDCWD, from, AT_FDCWD, to);
}

static void call(void)
{
    static const struct accel_routine unknown = {.args = 0};
    static struct accel_call a_call = {.routine = &unknown};
    struct accel_record record = record_of(&a_call, "f", 0, (struct accel_decision){0});
    record.ran = "cpu";
    record.ms = 1;
    report_decision(&record);
}

static int64_t calls_in(const char *folder)
{
    char path[512], line[512];
    int64_t calls = -1;
    DIR *files = opendir(folder);
    assert_non_null(files);
    for (const struct dirent *file; (file = readdir(files));) {
        if (*file->d_name == '.')
            continue;
        assert_int_equal(calls, -1); /* the only file */
        snprintf(path, sizeof path, "%s/%s", folder, file->d_name);
        FILE *text = fopen(path, "r");
        assert_non_null(text);
        while (fgets(line, sizeof line, text))
            if (strncmp(line, "accel_calls_total{", 18) == 0)
                calls = strtol(strrchr(line, ' '), NULL, 10);
        fclose(text);
        assert_int_equal(unlink(path), 0);
    }
    closedir(files);
    return calls;
}

static void the_newest_sums_stay(void **state)
{
    char folder[] = "/tmp/accel-test-metrics-XXXXXX", byte;
    int fd[2];
    (void)state;
    assert_non_null(mkdtemp(folder));
    metrics_start(folder);
    assert_int_equal(pipe(fd), 0);
    other = fork();
    if (other == 0) {
        close(fd[1]);
        forks_child();
        if (read(fd[0], &byte, 1) != 0)
            _exit(1);
        call();
        report_end();
        _exit(0);
    }
    close(fd[0]);
    begin_other = fd[1];
    call();
    report_end();
    assert_int_equal(begin_other, -1);
    assert_int_equal(calls_in(folder), 2);
    assert_int_equal(rmdir(folder), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_newest_sums_stay)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
