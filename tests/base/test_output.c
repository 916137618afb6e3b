/* Lines of several threads in the log's file. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file/file.h"
#include "base/output/output.h"
#include "tests/lib/set_back.h"

enum { PIPE = 4096, LINE = 4 * PIPE };

static char path[PATH_MAX], line[LINE], seen[2 * LINE];
static int reader;
static const char last[] = "last\n";

static void *write_line(void *unused)
{
    output_log(path, line, LINE);
    return unused;
}

static void *read_all(void *unused)
{
    size_t length = 0;
    while (length < LINE + strlen(last) && length < sizeof seen) {
        const ssize_t n = read(reader, seen + length, sizeof seen - length);
        if (n <= 0)
            break;
        length += (size_t)n;
    }
    return unused;
}

static char folder[PATH_MAX];

/* A thread is in the middle of a line, as the FIFO is full. */
static pthread_t write_to_full_fifo(void)
{
    pthread_t writing;
    int waiting = 0;
    assert_true(file_temporary(folder, "output"));
    assert_non_null(mkdtemp(folder));
    assert_true(snprintf(path, sizeof path, "%s/log", folder) < (int)sizeof path);
    assert_int_equal(mkfifo(path, 0600), 0);
    reader = open(path, O_RDONLY | O_NONBLOCK);
    assert_true(reader >= 0);
    assert_int_equal(fcntl(reader, F_SETFL, 0), 0);
    assert_int_equal(fcntl(reader, F_SETPIPE_SZ, PIPE), PIPE);
    memset(line, '-', LINE - 1);
    line[LINE - 1] = '\n';
    output_start();
    assert_int_equal(pthread_create(&writing, NULL, write_line, NULL), 0);
    while (waiting < PIPE)
        assert_int_equal(ioctl(reader, FIONREAD, &waiting), 0);
    return writing;
}

/* What has to be said waits for the line's end, but not for long, though the clock is put back
 * meanwhile. */
static void a_last_line_waits_for_another_thread(void **state)
{
    (void)state;
    pthread_t reading, writing = write_to_full_fifo();
    atomic_store(&output_patience, 1);
    assert_false(output_log_in_time(path, OUTPUT_LINES, last, strlen(last)));
    atomic_store(&output_patience, 300);
    assert_int_equal(pthread_create(&reading, NULL, read_all, NULL), 0);
    assert_true(output_log_in_time(path, OUTPUT_LINES, last, strlen(last)));
    assert_int_equal(pthread_join(writing, NULL), 0);
    assert_int_equal(pthread_join(reading, NULL), 0);
    assert_memory_equal(seen, line, LINE);
    assert_string_equal(seen + LINE, last);
    close(reader);
    unlink(path);
    rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_last_line_waits_for_another_thread),
    };
    atomic_store(&clock_is_set_back, true);
    alarm(600);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
